"""Every benchmark runs and prints its table, whatever the figures."""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import nullcontext
from functools import partial
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
import torch

from benchmarks import endurance, gradients, iteration
from dlion_sim.calibration import iterations
from dlion_sim.protocol.worker import Worker
from tests.made_up import made_up_run

ROOT = Path(__file__).parents[2]
NO_FIGURE = {"-", "not installed"}
"""Cells without a reference."""


@pytest.fixture
def columns(monkeypatch, capsys):
    """The table that a benchmark prints: cells by heading."""

    def columns(name: str, *arguments: str | Path) -> dict[str, list[str]]:
        monkeypatch.setattr(sys, "argv", [name, *map(str, arguments or ["--short"])])
        monkeypatch.setenv("COLUMNS", "200")
        monkeypatch.chdir(ROOT)
        import_module(f"benchmarks.{name}").main()
        lines = capsys.readouterr().out.splitlines()
        (headings,) = (line.strip("┃").split("┃") for line in lines if line.startswith("┃"))
        rows = [line.strip("│").split("│") for line in lines if line.startswith("│")]
        return {
            heading.strip(): [cell.strip() for cell in cells]
            for heading, cells in zip(headings, zip(*rows, strict=True), strict=True)
        }

    # A fork of a process that has computed with several threads may hang.
    for pool in ("benchmarks.incast.ProcessPoolExecutor", "benchmarks.stash.ProcessPoolExecutor"):
        monkeypatch.setattr(pool, lambda _: nullcontext(SimpleNamespace(map=map)))
    threads = torch.get_num_threads()
    yield columns
    torch.set_num_threads(threads)


def figures(cells: list[str]) -> list[float]:
    """The first number of each cell, above 0."""
    found = [float(re.match(r"[\d,.]+", cell)[0].replace(",", "")) for cell in cells if cell not in NO_FIGURE]
    assert all(0 < figure < 1e9 for figure in found), cells
    return found


def test_each_benchmark_has_its_test():
    apart = {"__init__", "architectures", "fabric", "instances", "measuring", "rounds", "stash_claims"}
    named = {file.stem for file in (ROOT / "benchmarks").glob("*.py")} - apart
    benchmarks = {
        "bounded_loss",
        "calibration",
        "churn",
        "drift",
        "endurance",
        "gpu",
        "gradients",
        "incast",
        "iteration",
        "live",
        "network",
        "packets",
        "peers",
        "regret",
        "scale",
        "selection",
        "systems",
    }
    assert named == benchmarks | {"drawn", "stash"}


def test_gradients(columns, monkeypatch):
    monkeypatch.setattr(gradients, "alone", lambda function, *arguments: function(*arguments))
    table = columns("gradients")
    systems = [f"{name}{kernels}" for name in ("baseline", "dlion") for kernels in ("", ", PyTorch's kernels")]
    assert table[""][-4:] == systems
    (times,) = (cells for heading, cells in table.items() if heading.startswith("times plain loop"))
    assert len(figures(times)) == len(figures(table["samples/s"])) == len(table[""]) >= 6


def test_iteration(columns):
    before = Worker.handle
    table = columns("iteration")
    assert list(table) == ["workers", "all", *iteration.PARTS]
    assert table["workers"] == ["6"]
    assert all(figures(table[part]) for part in ("all", *iteration.PARTS))
    assert Worker.handle is before


def test_churn(columns, tmp_path):
    columns("churn", "--short", "--output", tmp_path)
    page = (tmp_path / "README.md").read_text()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("|")]
    table = {title: cells for title, _, *cells in zip(*rows, strict=True)}
    assert table[""] == ["dpsgd", "fedavg", "ring_allreduce"]
    events = ["none", "crash", "notice", "rejoin", "new worker", "link, 20 s", "cloud"]
    assert list(table) == ["", *events]
    assert all(figures(table[event][:1]) for event in events)
    assert figures(table["crash"][1:2])
    assert all(table[event][2].startswith("the ring is broken") for event in events[1:])
    assert (ROOT / "results" / "churn" / "README.md").read_text().startswith(page[: page.index("| dpsgd")])
    runs = pd.read_csv(tmp_path / "churn.csv").set_index(["system", "event"])
    assert len(runs) == 3 * 7
    rejoined = runs.loc["dpsgd", "rejoin"]
    assert rejoined["work lost s"] > 0
    assert rejoined["fetched bytes"] > 1000
    assert 0 < rejoined["to notice s"] < rejoined["to join s"] < 1


def test_endurance(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "argv", ["endurance", "--short", "--output", str(tmp_path)])
    monkeypatch.chdir(ROOT)
    endurance.main()
    page = (tmp_path / "README.md").read_text()
    rows = {cells[1].strip(): cells[2:-1] for line in page.splitlines() if len(cells := line.split("|")) > 3}
    for event, count in (("down", 2), ("lost", 6), ("up", 2), ("joined", 2), ("found", 12)):
        assert [int(cell) for cell in rows[f"rows: {event}"]] == [count, count]
    assert [int(cell) for cell in rows["gradients cut"]] == [2, 2]
    live, simulated = (int(cell) for cell in rows["iterations"])
    assert live == pytest.approx(simulated, rel=0.2)
    assert set(rows) >= {"dlion live", "node 0", "node 1"}
    readings = pd.read_csv(tmp_path / "readings.csv")
    assert set(readings["process"]) == {"dlion live", *map(str, range(endurance.SHORT_NODES))}
    # A reading may fall just after a process began.
    assert (readings.groupby("process")["resident"].median() > 1).all()


def test_peers(columns, monkeypatch):
    monkeypatch.setattr(subprocess, "run", partial(missing, subprocess.run))
    table = columns("peers")
    assert table[""] == ["dlion_sim", "pfl", "flwr"]
    assert table["clients"] == ["20", "-", "-"]
    assert table["s a round"][1:] == ["not installed"] * 2
    assert figures(table["memory, GB"][:1])[0] < 5


def missing(run, command, **options):
    """As `run`, where no peer is installed."""
    peer = command[1:] in (["-c", "import pfl"], ["-c", "import flwr"])
    return SimpleNamespace(returncode=1) if peer else run(command, **options)


def test_drift(columns, tmp_path):
    for seed in (0, 1):
        point = {"workload.stream.drift": "late_class", "system": "dlion", "seed": str(seed)}
        made_up_run(tmp_path / str(seed), (0.2, 0.6, 0.7, 0.8), every=45.0, seed=seed, streamed=True, point=point)
    table = columns("drift", tmp_path, "--output", tmp_path / "out")
    assert (table["drift"], table["system"]) == (["late_class"], ["dlion"])
    assert table["adaptation s"] == ["10 (10 to 10)"]
    rows = pd.read_csv(tmp_path / "out" / "drift.csv")
    assert list(rows) == list(pd.read_csv(ROOT / "results" / "drift" / "drift.csv"))
    assert rows["seed"].tolist() == [0, 1]
    # The class comes at 45 s with 60 %, has 75 % at 135 s, and its level is of the last three evaluations.
    assert rows[["final_level", "to_75_percent_s", "online_90_150"]].to_numpy().tolist() == [[0.7, 90, 0.5]] * 2
    assert (tmp_path / "out" / "online.png").stat().st_size > 5000


def test_bounded_loss(columns):
    table = columns("bounded_loss")
    assert table["lost"] == ["0 %", "0.7 %", "3.3 %"]
    assert all(0 < accuracy < 100 for accuracy in figures(table["accuracy (%)"]))
    assert table["of |g|² lost (%)"][0] == "0"


def test_live(columns):
    table = columns("live")
    assert table[""][-1] == "live nodes"
    assert len(figures(table["GB/s"])) == len(table[""])
    figures(table["times iperf3"])


def test_network(columns):
    table = columns("network")
    assert table["flows"] == ["600"]
    assert len(figures(table["dlion_sim"])) == len(figures(table["virtual end"])) == 1
    figures(table["ratio"])


def test_incast(columns):
    table = columns("incast")
    assert table["transport"][0] == "DCTCP, 10 ms"
    assert len(figures(table["mean"])) == len(figures(table["p99"])) == len(table["transport"]) == 8
    lost = dict(zip(table["transport"], table["lost"], strict=True))
    assert (lost["DCTCP, 10 ms"], lost["DLCP, p = 0, 200 us"]) == ("0.00%", "0.00%")
    assert 0 < float(lost["DLCP, p = 0.1, 200 us"].strip("%")) <= 10


def test_packets(columns):
    table = columns("packets")
    assert table["workload"] == ["leaf-spine of 144, 100 Gbps", "incast of 31, 10 Gbps", "WAN of 6 sites"]
    assert len(figures(table["dlion_sim"])) == len(figures(table["median completion"])) == 3
    figures(table["ratio"])


def test_scale(columns):
    table = columns("scale")
    assert table["workers"] == ["64", "64"]
    assert figures(table["times 64 workers'"]) == [1, 1]
    assert len(figures(table["ms per worker-iteration"])) == len(figures(table["peak memory"])) == 2


def test_selection(columns):
    table = columns("selection")
    assert table[""] == ["one copy", "select and pack", "add all", "add one after another"]
    assert len(figures(table["ms"])) == len(figures(table["times one copy"])) == 4


def test_systems(columns):
    table = columns("systems")
    assert table[""] == ["diloco", "baseline", "demo"]
    assert [float(each) for each in table["messages"]] == [0.5, 5, 5]
    assert figures(table["times diloco"])[0] == figures(table["times baseline"])[1] == 1
    assert len(figures(table["ms"])) == 3


def test_stash(columns):
    table = columns("stash")
    assert table["model"] == ["resnet10"] * 4 + ["vgg11"] * 4
    assert table["instances"][:4] == ["p3.2xlarge", "p3.8xlarge", "p3.16xlarge", "2 x p3.8xlarge"]
    waiting = [float(cell.strip("%")) for cell in table["waiting"]]
    assert waiting[::4] == [0, 0]
    assert all(0 < one < two < 100 for one, two in zip(waiting[2::4], waiting[3::4], strict=True))
    assert len(figures(table["ms"])) == len(figures(table["epoch h"])) == len(figures(table["epoch $"])) == 8


@pytest.mark.gpu
def test_gpu(columns):
    table = columns("gpu")
    assert len(figures(table["samples/s"])) == len(figures(table["times one after another"])) == 3


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("options", [[], ["--accept"]], ids=" ".join)
def test_without_a_gpu_it_is_one_line(options):
    command = [sys.executable, "-m", "benchmarks.gpu", *options]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (2, "this benchmark needs a GPU that PyTorch can use\n")


def test_calibration(columns, monkeypatch):
    monkeypatch.setattr(iterations, "_ROUNDS", 1)
    monkeypatch.setattr(iterations, "_SECONDS", 0.0)
    table = columns("calibration")
    assert [*table] == ["", "calibrated", "simulated", "real", "real, mean", "simulated / real"]
    assert table[""] == ["mlp", "cipher"]
    for calibrated, simulated in zip(figures(table["calibrated"]), figures(table["simulated"]), strict=True):
        assert simulated == pytest.approx(calibrated, rel=0.01)
    assert len(figures(table["real"])) == len(figures(table["simulated / real"])) == 2
