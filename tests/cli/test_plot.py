"""`dlion plot`: each kind is drawn, quietly or not; bad input is one line."""

import pytest

from tests.command import dlion
from tests.made_up import made_up_run


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for seed in (0, 1):
        made_up_run(tmp_path / f"runs/baseline-{seed}", (0.1, 0.3, 0.6), system="baseline", seed=seed)
        made_up_run(tmp_path / f"runs/dlion-{seed}", (0.1, 0.6, 0.8 + 0.1 * seed), seed=seed)
    return tmp_path / "runs"


@pytest.mark.parametrize(
    "arguments",
    [
        ["accuracy", "runs"],
        ["accuracy", "runs", "--x", "bytes"],
        ["accuracy", "runs/dlion-0", "runs/baseline-0", "--label", "one", "--label", "other"],
        ["accuracy-at", "runs"],
        ["accuracy-at", "runs", "--at", "10 s"],
        ["trade-off", "runs"],
        ["time-to-accuracy", "runs"],
        ["time-to-accuracy", "runs", "--target", "0.5"],
        ["links", "runs/dlion-0", "--senders", "east/0", "--receivers", "east"],
        ["batch-sizes", "runs/dlion-0"],
        ["deviation", "runs/dlion-0", "runs/dlion-1"],
        ["timeline", "runs/dlion-0", "--from", "2 s", "--to", "4 s"],
        ["heatmap", "runs", "--show", "bytes"],
        ["fct", "runs/other"],
        ["queues", "runs/other"],
        ["online", "runs/other"],
        ["availability", "runs/other"],
    ],
    ids=" ".join,
)
def test_each_kind_is_drawn(capfd, monkeypatch, runs, arguments):
    if "runs/other" in arguments:
        made_up_run(runs / "other", lossy=True, streamed=True, absent=True)
    assert dlion(monkeypatch, "plot", *arguments, "-o", "figure.svg", "-q") == 0
    assert capfd.readouterr() == ("", "")
    assert (runs.parent / "figure.svg").read_text().startswith("<?xml")


def test_the_file_is_printed(capsys, monkeypatch, runs):
    assert dlion(monkeypatch, "plot", "accuracy", "runs", "-o", "figure.svg") == 0
    assert capsys.readouterr().out == "plot: figure.svg\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["online", "runs", "-o", "a.png"], ["has no stream of samples", "stream"]),
        (["accuracy", "missing", "-o", "a.png"], ["missing", "is not a run folder"]),
        (["accuracy", "runs", "-o", "a.gif"], ["a.gif", "allowed: .png, .svg, .pdf"]),
        (["accuracy-at", "runs", "-o", "a.png", "--at", "5 parsecs"], ["--at", "80 ms"]),
        (["accuracy", "runs", "-o", "a.png", "--x", "epochs"], ["-0", "has no number of training samples"]),
        (["accuracy", "runs", "-o", "a.png", "--label", "x", "--label", "y"], ["--label", "2 labels for 1 path"]),
        (["links", "runs/dlion-0", "-o", "a.png", "--senders", "west"], ["--senders", "'west'", "allowed: east"]),
        (["links", "runs", "-o", "a.png"], ["runs", "is not a run folder"]),
        (["heatmap", "runs", "-o", "a.png", "--x", "colour"], ["--x colour", "allowed: system"]),
        (["fct", "runs", "-o", "a.png"], ["runs/", "has no record of messages; allowed: one with record_transfers"]),
        (["queues", "runs/dlion-0", "-o", "a.png"], ["runs/dlion-0: has no queues", "network: {model: packets}"]),
    ],
)
def test_bad_input_is_one_line(capsys, monkeypatch, runs, arguments, words):
    assert dlion(monkeypatch, "plot", *arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert all(word in line for word in words), line
