"""The report of a run on the terminal."""

import json
from dataclasses import replace

import pytest
from rich.console import Console

from dlion_sim.cli.run_report import run_report
from dlion_sim.results import Run
from tests.made_up import AWAY, made_up_run

TARIFF = {
    "per_hour": [1.0, 1.0],
    "step": 1.0,
    "least": 0.0,
    "egress": None,
    "watts": None,
    "carbon": None,
    "spot": [True, False],
}


def printed(capsys, *reports) -> str:
    for report in reports:
        Console(width=300).print(report)
    return capsys.readouterr().out


def with_scenario(run: Run, **keys) -> Run:
    (run.folder / "scenario.yaml").write_text(json.dumps({**run.scenario, **keys}))
    return replace(run)


@pytest.mark.parametrize("seconds_late", [0.1, 0.3])
def test_considerable_lateness_is_reported(tmp_path, capsys, seconds_late):
    """The computations took 24 s in all."""
    late = {"computations": 40, "late": 7, "seconds_late": seconds_late, "most_seconds_late": 0.091}
    run = made_up_run(tmp_path / "live", way="live")
    run = replace(run, summary={**run.summary, "late": late})
    said = "computations were late 7 times of 40, by up to 0.091 s: a machine is too slow or too busy"
    assert (said in printed(capsys, run_report(run))) == (seconds_late > 0.24)
    assert "were late" not in printed(capsys, run_report(made_up_run(tmp_path / "simulated")))


def test_statistics_of_packets_are_a_table(tmp_path, capsys):
    told = printed(capsys, run_report(made_up_run(tmp_path / "lossy", lossy=True)))
    rows = [line.split() for line in told.splitlines() if line.split()[:1] in (["contribution"], ["all"])]
    assert rows == [
        ["contribution", "40", "10", "%", "4", "%", "5", "%", "105", "105", "200"],
        ["all", "40", "10", "%", "4", "%", "5", "%", "200", "125", "750"],
    ]
    Console(width=80).print(run_report(made_up_run(tmp_path / "narrow", lossy=True)))
    headings = ["in", "packets", "messages", "lost", "unsent", "resent", "mean", "ms", "50", "%", "99", "%"]
    assert headings in [line.split() for line in capsys.readouterr().out.splitlines()]
    assert "in packets" not in printed(capsys, run_report(made_up_run(tmp_path / "flows")))


@pytest.mark.parametrize(("up", "said"), [(0.5, "east/0 is away 50% of the time"), (0.9, "waits 40% of its time")])
def test_the_longest_outage_or_wait_is_reported(tmp_path, capsys, up, said):
    run = made_up_run(tmp_path / "run", absent=True)
    spent = {"compute": [6.0, 6.0], "input": [0.0, 0.0], "wait": [4.0, 4.0]}
    run = replace(run, summary={**run.summary, "spent": spent, "availability": {"up": [up, 1.0]}})
    told = printed(capsys, run_report(run))
    assert said in told
    assert f"; `dlion stalls {run.folder}/scenario.yaml -o DIR` shows the c" in told
    assert ("is away" in told) != ("% of its time; " in told)


def test_partial_evaluation_is_reported_with_the_full_result(tmp_path, capsys):
    run = made_up_run(tmp_path / "run")
    assert "samples; on all" not in printed(capsys, run_report(run))
    manifest = {**run.manifest, "evaluation_samples": {"curve": 100, "full": 360}}
    run = replace(run, manifest=manifest, summary={**run.summary, "full_accuracy": {"mean": 0.912}})
    assert "accuracy is on the first 100 of 360 samples; on all at the end: 91.2%" in printed(capsys, run_report(run))


def test_times_to_accuracies_may_be_bounds_or_before_training(tmp_path, capsys):
    told = printed(capsys, run_report(made_up_run(tmp_path / "one", (0.25, 0.85), every=5.0)))
    assert "test accuracy 20% before training, 80% at <= 5 s, 90% not reached" in told
    told = printed(capsys, run_report(made_up_run(tmp_path / "many", (0.1, 0.35, 0.55, 0.85), every=5.0)))
    assert "30% at <= 5 s, 50% at 10 s, 80% at 15 s, 90% not reached" in told


def test_wan_bytes_come_first(tmp_path, capsys):
    told = printed(capsys, run_report(made_up_run(tmp_path / "run", workers=3, clouds=("east", "east", "west"))))
    assert "4 MB sent over the WAN, 4 MB in all" in told
    assert "24 (8-24)" in told
    headings = [line.split("┃")[5:7] for line in told.splitlines() if "┃" in line][:2]
    assert [" ".join(" ".join(words).split()) for words in zip(*headings, strict=True)] == ["WAN bytes", "bytes in all"]
    workers = [line.split("│")[5:7] for line in told.splitlines() if "/" in line and "│" in line]
    assert [[cell.strip() for cell in row] for row in workers] == [["0 B", "2 MB"], ["2 MB", "2 MB"], ["2 MB", "2 MB"]]
    told = printed(capsys, run_report(made_up_run(tmp_path / "lan")))
    assert "4 MB sent over the LAN" in told
    assert " LAN " in told
    assert "WAN" not in told


def test_outages_joins_lost_work_and_spot_machines_are_reported(tmp_path, capsys):
    run = made_up_run(tmp_path / "run", absent=True)
    path = {"sender": "east", "receiver": "west", "begin": 5.0, "end": 7.5}
    later = {"sender": "west", "receiver": "east", "begin": 50.0, "end": None}
    about = {"tariff": TARIFF, "paths_down": [path, later]}
    told = printed(capsys, run_report(replace(run, manifest={**run.manifest, **about}))).splitlines()
    assert "away: east/0 once, 2 s" in told
    assert "joined: once, 0.5 s after its process began on average, 4 kB of state fetched" in told
    assert "work lost: 0.25 s of computing, 25 of 100 samples wasted, 3 messages cut, 1 message refused" in told
    assert "paths down: east to west once, 2.5 s" in told
    assert "spot: 1 machine, there for 0.005 of 0.00556 hours" in told
    quiet = printed(capsys, run_report(made_up_run(tmp_path / "nothing")))
    assert not any(word in quiet for word in ("away", "joined", "work lost", "paths down", "spot"))


def test_an_outage_without_end_is_reported(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("tests.made_up.AWAY", AWAY[:1])
    told = printed(capsys, run_report(made_up_run(tmp_path / "run", absent=True)))
    assert "away: east/0 once, 19 s, and at the end" in told


def test_a_live_run_is_over_another_network(tmp_path, capsys):
    told = printed(capsys, run_report(made_up_run(tmp_path / "live", way="live")))
    assert "live: over the network of its hosts, loopback on one host, not the scenario's links" in told
    assert "live:" not in printed(capsys, run_report(made_up_run(tmp_path / "simulated")))


def test_outages_and_preemptions_that_do_not_happen_are_named(tmp_path, capsys):
    run = made_up_run(tmp_path / "run")
    run = replace(run, manifest={**run.manifest, "tariff": TARIFF})
    assert "there for 0.00556 of 0.00556 hours; no preemption: those are" in printed(capsys, run_report(run))
    assert "no outage of" not in printed(capsys, run_report(run))
    run = with_scenario(run, availability={"workers": {"east/0": {"down": [["100 s", "200 s"]]}}})
    assert "no outage of `availability` began within the run's 20 s" in printed(capsys, run_report(run))


@pytest.mark.parametrize(("alpha", "cores", "said"), [("0.4 s", 8, True), ("0.2 s", 8, False), ("0.4 s", 4, False)])
def test_a_constant_part_that_hides_differences_of_machines_is_named(tmp_path, capsys, alpha, cores, said):
    workers = [{"compute": {"cores": 4}}, {"compute": {"cores": cores}}]
    of_machines = {"cluster": {"clouds": [{"name": "east", "workers": workers}]}}
    run = with_scenario(made_up_run(tmp_path), workload={"compute_time": {"alpha": alpha}}, **of_machines)
    words = f"67% of the computing time is `workload.compute_time.alpha` ({alpha}), which does not depend on the"
    assert (words in printed(capsys, run_report(run))) == said
