"""`dlion plot` and `dlion compare`, as people use them."""

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


@pytest.fixture
def lossy(runs):
    return made_up_run(runs / "lossy", extra="transport: dlcp\n", lossy=True)


@pytest.mark.parametrize(
    "arguments",
    [
        ["accuracy", "runs"],
        ["accuracy-at", "runs", "--at", "10 s"],
        ["accuracy-at", "runs"],
        ["trade-off", "runs"],
        ["time-to-accuracy", "runs", "--target", "0.5"],
        ["time-to-accuracy", "runs"],
        ["accuracy", "runs", "--x", "bytes"],
        ["accuracy", "runs/dlion-0", "runs/baseline-0", "--label", "one", "--label", "other"],
        ["links", "runs/dlion-0", "--senders", "east/0", "--receivers", "east"],
        ["batch-sizes", "runs/dlion-0"],
        ["links", "runs/dlion-0"],
        ["deviation", "runs/dlion-0", "runs/dlion-1"],
        ["timeline", "runs/dlion-0", "--from", "2 s", "--to", "4 s"],
        ["heatmap", "runs", "--show", "bytes"],
        ["fct", "runs/lossy"],
        ["queues", "runs/lossy"],
        ["online", "runs/streamed"],
        ["availability", "runs/absent"],
    ],
    ids=" ".join,
)
def test_each_kind_is_drawn(capsys, monkeypatch, runs, arguments, request):
    if "runs/lossy" in arguments:
        request.getfixturevalue("lossy")
    if "runs/streamed" in arguments:
        made_up_run(runs / "streamed", streamed=True)
    if "runs/absent" in arguments:
        made_up_run(runs / "absent", absent=True)
    assert dlion(monkeypatch, "plot", *arguments, "-o", "figure.svg") == 0
    assert capsys.readouterr().out == "plot: figure.svg\n"
    assert (runs.parent / "figure.svg").read_text().startswith("<?xml")


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
def test_what_cannot_be_drawn_is_one_line(capsys, monkeypatch, runs, arguments, words):
    assert dlion(monkeypatch, "plot", *arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert all(word in line for word in words), line


def test_compare_says_on_what_accuracies_were_measured(capsys, monkeypatch, runs):
    monkeypatch.setenv("COLUMNS", "120")

    def headings(output):
        return set(output.split("┡")[0].replace("┃", " ").split())

    assert dlion(monkeypatch, "compare", "runs") == 0
    assert {"test", "accuracy"} <= headings(capsys.readouterr().out)
    made_up_run(runs / "tuned", extra="validation: 0.1\n", evaluated_on="validation")
    assert dlion(monkeypatch, "compare", "runs/tuned") == 0
    assert {"validation", "accuracy"} <= headings(capsys.readouterr().out)
    assert dlion(monkeypatch, "compare", "runs") == 0
    both = capsys.readouterr().out
    assert "evaluated on" in both
    assert "accuracy" in headings(both)
    assert not {"test", "validation"} & headings(both)
    assert [{"test", "validation"} & set(line.split()) for line in both.splitlines() if "dlion" in line] == [
        {"test"},
        {"validation"},
    ]


def test_compare_prints_a_row_a_group(capsys, monkeypatch, runs):
    monkeypatch.setenv("COLUMNS", "120")
    assert dlion(monkeypatch, "compare", "runs", "--target", "0.6") == 0
    output = capsys.readouterr().out
    rows = [line.split() for line in output.splitlines() if "│" in line]
    assert [row[1] for row in rows] == ["baseline", "dlion"]
    # A t-interval over two seeds: 12.7 times the standard error.
    assert "72.5 ± 31.8" in output
    assert " 85.0 " in output
    assert "time to 60 %" in output
    assert "<= 10.0" in output
    assert "~ 2.00 (2)" in output
    assert "1.00 (" not in output  # of Baseline over itself
    assert "4 MB" in output
    assert "ref." in output
    assert "mean of the last 2 evaluations" in output


def test_compare_tells_of_packets_where_there_were_any(capsys, monkeypatch, runs, lossy):
    monkeypatch.setenv("COLUMNS", "140")
    assert dlion(monkeypatch, "compare", "runs") == 0
    output = capsys.readouterr().out
    headings, *_ = output.split("┡")
    assert {"lost", "completion", "99"} <= set(headings.replace("┃", " ").split())
    lost = [line.split("│")[-6:-3] for line in output.splitlines() if "│" in line]
    assert sorted([cell.strip() for cell in row] for row in lost) == [["-"] * 3, ["-"] * 3, ["10 %", "0.2", "0.75"]]
    assert "that receivers did without" in output
    lossy_free = [str(runs / f"dlion-{seed}") for seed in (0, 1)]
    assert dlion(monkeypatch, "compare", *lossy_free) == 0
    assert "completion" not in capsys.readouterr().out


def test_compare_tells_who_was_away_where_somebody_was(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "250")
    made_up_run(tmp_path / "always", system="baseline")
    assert dlion(monkeypatch, "compare", tmp_path) == 0
    assert "goodput" not in capsys.readouterr().out
    made_up_run(tmp_path / "away", absent=True)
    assert dlion(monkeypatch, "compare", tmp_path) == 0
    told = capsys.readouterr().out
    assert all(word in told for word in ("up", "goodput", "work lost", "fetched", "rejoins"))
    (away,) = (line for line in told.splitlines() if "dlion" in line)
    assert [cell.strip() for cell in away.split("│")[-8:-3]] == ["95.0", "3.75", "0.25", "4 kB", "0.5"]
    (always,) = (line for line in told.splitlines() if "baseline" in line)
    assert [cell.strip() for cell in always.split("│")[-8:-3]] == ["-"] * 5
    assert "goodput: samples a second" in told


def test_compare_says_what_is_a_bound_and_what_is_not_significant(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "130")
    for seed in range(3):
        made_up_run(tmp_path / f"b{seed}", (0.1, 0.2, 0.7, 0.7, 0.7), system="baseline", seed=seed)
        made_up_run(tmp_path / f"d{seed}", (0.1, 0.7, 0.7, 0.7, 0.7 - 0.01 * seed), seed=seed)
        made_up_run(tmp_path / f"h{seed}", (0.1, 0.7, 0.7 - 0.3 * seed, 0.1, 0.1), system="hop", seed=seed)
        made_up_run(tmp_path / f"a{seed}", (0.1, 0.3 + 0.01 * seed, 0.3, 0.3, 0.3), system="ako", seed=seed)
        last = 0.65 if seed else 0.7
        made_up_run(tmp_path / f"g{seed}", (0.1, 0.3, 0.4, 0.5, last), system="gaia", seed=seed)
    assert dlion(monkeypatch, "compare", tmp_path, "--target", "0.7") == 0
    output = capsys.readouterr().out
    rows = {line.split()[1]: line.split("│") for line in output.splitlines() if line.startswith("│")}
    assert rows["ako"][5].strip() == "> 40.0 (0 of 3)"
    assert rows["ako"][6].strip() == "< 0.50 (3)"
    assert rows["gaia"][5].strip() == "> 40.0 (1 of 3)"
    assert rows["dlion"][7].strip() == "0.225"
    assert rows["gaia"][7].strip().endswith("*")
    assert "Holm" in output
    assert "restricted mean" in output


def test_compare_fits_eighty_columns(capsys, monkeypatch, runs):
    monkeypatch.setenv("COLUMNS", "80")
    for seed in (0, 1):
        other = {"system": "baseline", "replaced": {"exchange": "gossip:Gossip", "synchronization": "asynchronous"}}
        made_up_run(runs / f"gossip-{seed}", (0.1, 0.2, 0.4), seed=seed, **other)
    assert dlion(monkeypatch, "compare", "runs", "--target", "0.5") == 0
    output = capsys.readouterr().out
    assert max(map(len, output.splitlines())) <= 80
    assert "…" not in output
    assert all(word in output for word in ("gossip:Gossip", "synchronization", "asynchronous", "restricted"))


def test_compare_marks_what_never_exchanged_anything(capsys, monkeypatch, runs):
    monkeypatch.setenv("COLUMNS", "120")
    made_up_run(runs / "diloco", system="diloco", exchanging=False)
    assert dlion(monkeypatch, "compare", "runs") == 0
    output = capsys.readouterr().out
    assert "│ diloco ! │" in output
    assert "! a worker never exchanged anything" in output
    assert "is the run too short for an exchange?" in output


def test_compare_names_what_it_cannot_read_and_shows_the_rest(capsys, monkeypatch, runs):
    (runs / "dlion-1" / "summary.json").write_text("")
    assert dlion(monkeypatch, "compare", "runs") == 1
    output = capsys.readouterr()
    assert "baseline" in output.out
    (line,) = output.err.splitlines()
    assert "dlion-1/summary.json: cannot be read" in line


def test_compare_tells_bytes_over_the_wan_first_and_until_the_target(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "120")
    clouds = ("east", "east", "west")
    made_up_run(tmp_path / "b", (0.1, 0.2, 0.6), system="baseline", workers=3, clouds=clouds)
    made_up_run(tmp_path / "d", (0.1, 0.6, 0.7), workers=3, clouds=clouds)
    assert dlion(monkeypatch, "compare", tmp_path, "--target", "0.5") == 0
    lines = capsys.readouterr().out.splitlines()
    cells = [[cell.strip() for cell in line.split("│")] for line in lines if line.startswith("│")]
    assert [row[-4:-1] for row in cells] == [["4 MB", "4 MB", "4 MB"], ["4 MB", "<= 2 MB", "4 MB"]]
    assert "WAN bytes: from one micro-cloud to another" in "".join(lines)
