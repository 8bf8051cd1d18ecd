"""Costs in summaries, comparisons and tables."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pandas as pd
import pytest

from dlion_sim.analysis import at_prices_of, comparison, group_runs
from dlion_sim.analysis.cost import costs_until
from dlion_sim.analysis.curves import against, mean_metric
from dlion_sim.errors import InputError
from dlion_sim.results import Frames, Run
from dlion_sim.scenario import dump, load
from dlion_sim.simulation import resume, simulate
from tests.command import dlion
from tests.made_up import made_up_run
from tests.simulation.checkpointing.test_checkpoint import After
from tests.simulation.scenarios import digits

CLOUDS = [
    {"name": "east", "workers": [{"count": 2, "instance": "p3.2xlarge", "compute": "24 cores", "nic": "50 Mbps"}]},
    {"name": "west", "workers": [{"instance": "p2.xlarge", "compute": "4 cores", "nic": "20 Mbps"}]},
]
EGRESS = {"east": 2.0, "west": {"east": 9.0}}
PRICES = {"catalog": "aws-2020-p2p3", "egress": EGRESS, "billing": {"step": "1 s", "least": "0 s"}}
PER_HOUR = 2 * 3.06 + 0.90


def priced(**keys: object) -> str:
    wan = {"bandwidth": "40 Mbps", "rtt": "60 ms"}
    return dump(digits("system=baseline", cluster={"clouds": CLOUDS, "wan": wan}, prices=PRICES, **keys))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("runs")
    (folder / "priced.yaml").write_text(priced())
    return simulate(load(folder / "priced.yaml"), folder / "run")


def test_the_summary_has_the_cost(run: Run) -> None:
    cost = run.outcome["cost"]
    links = run.links()
    sent = [
        links.loc[(links["sender_cloud"] == a) & (links["receiver_cloud"] == b), "bytes"].sum()
        for a, b in (("east", "west"), ("west", "east"))
    ]
    assert min(sent) > 0
    assert cost == pytest.approx(
        {
            "total": 4 / 3600 * PER_HOUR + (2 * sent[0] + 9 * sent[1]) / 1e9,
            "machines": 4 / 3600 * PER_HOUR,
            "machine_hours": 3 * 4 / 3600,
            "egress": (2 * sent[0] + 9 * sent[1]) / 1e9,
            "egress_gb": sum(sent) / 1e9,
        }
    )
    assert Frames((run,)).summaries["cost"].iloc[0] == cost["total"]
    assert run.outcome["bytes_sent"] > sum(sent)  # what stays within east costs nothing


def test_prices_change_only_the_cost(run: Run, tmp_path: Path) -> None:
    scenario = load(run.folder / "scenario.yaml").model_copy(update={"prices": None})
    free = [
        cloud.model_copy(update={"workers": [group.model_copy(update={"price": None}) for group in cloud.workers]})
        for cloud in scenario.cluster.clouds
    ]
    cluster = scenario.cluster.model_copy(update={"clouds": free})
    other = simulate(scenario.model_copy(update={"cluster": cluster}), tmp_path / "free")
    assert run.links().equals(other.links())
    assert run.metrics().drop(columns="wall_time").equals(other.metrics().drop(columns="wall_time"))
    of_time = {"wall_seconds", "evaluation_share", "samples_per_wall_second"}
    assert set(run.outcome) - set(other.outcome) == {"cost"}
    assert {key: other.outcome[key] for key in set(other.outcome) - of_time} == {
        key: run.outcome[key] for key in set(other.outcome) - of_time
    }


def test_a_resumed_run_costs_the_same(run: Run, tmp_path: Path) -> None:
    scenario = load(run.folder / "scenario.yaml")
    stopped = simulate(scenario, tmp_path / "run", interrupted=After(40))
    assert stopped.outcome["status"] == "interrupted"
    assert 0 < stopped.outcome["cost"]["total"] < run.outcome["cost"]["total"]
    assert resume(tmp_path / "run").outcome["cost"] == run.outcome["cost"]


def test_costs_until_a_time_are_those_of_a_run_that_ends_then(run: Run) -> None:
    costs = costs_until(run, [0.0, 1.5, 2.0, 4.0])
    assert costs == sorted(costs)
    assert costs[0] == 0
    assert costs[1] == pytest.approx(2 / 3600 * PER_HOUR)  # a begun second is a whole one
    assert costs[-1] == pytest.approx(run.outcome["cost"]["total"])
    curve = against(run, mean_metric(run), "cost")
    assert curve.index[-1] == pytest.approx(run.outcome["cost"]["total"])


def test_a_comparison_has_costs_of_runs_and_of_targets(run: Run) -> None:
    target = float(mean_metric(run).iloc[1])
    (row,) = comparison(group_runs([run]), target).to_dict("records")
    assert row["cost"] == run.outcome["cost"]["total"]
    assert row["cost_to_target"] == pytest.approx(costs_until(run, [2.0])[0])
    (row,) = comparison(group_runs([run]), 1.0).to_dict("records")
    assert math.isnan(row["cost_to_target"])


def test_a_run_can_be_priced_by_another_catalog(run: Run, tmp_path: Path) -> None:
    heads = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,Price,SpotPrice,Region,Watts"
    rows = ["p3.2xlarge,Gaudi,1,8,10,,here,300", "p2.xlarge,K80,1,4,1,,here,100"]
    catalog = tmp_path / "own.csv"
    catalog.write_text("\n".join([heads, *rows]))
    cost = at_prices_of(run, str(catalog)).outcome["cost"]
    assert cost["machines"] == pytest.approx(21 * 4 / 3600)
    assert cost["egress"] == pytest.approx(run.outcome["cost"]["egress"])
    assert cost["energy_kwh"] == pytest.approx(700 * 4 / 3.6e6)
    assert run.outcome["cost"]["machines"] == pytest.approx(PER_HOUR * 4 / 3600)  # is as it was


def test_runs_without_prices_have_no_cost(tmp_path: Path) -> None:
    run = made_up_run(tmp_path / "run", extra="cluster: {clouds: [{name: east, workers: [{count: 2}]}]}\n")
    (row,) = comparison(group_runs([run]), 0.5).to_dict("records")
    assert math.isnan(row["cost"])
    assert math.isnan(row["cost_to_target"])
    with pytest.raises(InputError, match="has no prices; allowed: runs of scenarios with prices"):
        costs_until(run, [1.0])
    with pytest.raises(InputError, match="names no instances"):
        at_prices_of(run, "aws-2020-p2p3")


@pytest.mark.parametrize(
    ("tariff", "words"),
    [
        ({"step": 0.0}, "tariff.step"),
        ({"per_hour": ["much"]}, "tariff.per_hour"),
        ({"egress": {"east": {}}}, "tariff.egress: lacks a price"),
    ],
)
def test_a_damaged_tariff_is_refused(run: Run, tmp_path: Path, tariff: dict[str, object], words: str) -> None:
    for file in run.folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    manifest = json.loads((run.folder / "manifest.json").read_text())
    manifest["tariff"] |= tariff
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InputError, match=words):
        costs_until(Run.open(tmp_path), [1.0])


def test_unknown_clouds_are_refused(run: Run) -> None:
    class OtherClouds(Run):
        def links(self) -> pd.DataFrame:
            return run.links().assign(sender_cloud="north")

    other = OtherClouds(run.folder, run.manifest, run.summary)
    with pytest.raises(InputError, match="clouds: are not those of its scenario"):
        at_prices_of(other, "aws-2020-p2p3")


def test_the_command_line_has_costs(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    (tmp_path / "priced.yaml").write_text(priced(duration="1 s"))
    assert dlion(monkeypatch, "run", tmp_path / "priced.yaml", "-o", tmp_path / "out") == 0
    assert "cost 0.00" in capsys.readouterr().out
    assert dlion(monkeypatch, "compare", run.folder) == 0
    output = capsys.readouterr().out
    assert "cost to" in output
    assert "cost: of machines' billed time" in output
    assert dlion(monkeypatch, "plot", "accuracy", run.folder, "--x", "cost", "-o", tmp_path / "a.svg", "-q") == 0
    assert "Cost" in (tmp_path / "a.svg").read_text()
    assert dlion(monkeypatch, "compare", run.folder, "--catalog", "aws-2022") == 2
    assert "--catalog aws-2022: there is no catalog 'aws-2022'" in capsys.readouterr().err


def test_a_restarting_spot_machine_is_billed(tmp_path: Path) -> None:
    clouds = [{"name": "east", "workers": [{"price": 3600, "spot": True}, {"price": 3600}]}]
    absent = {"workers": {"east/0": {"down": [["1 s", "2 s"]]}}, "restart": "1 s"}
    scenario = digits(cluster={"clouds": clouds}, prices={"billing": {"least": "0 s"}}, availability=absent)
    run = simulate(scenario, tmp_path / "run")
    assert run.outcome["availability"]["up"] == pytest.approx([0.5, 1])
    assert run.outcome["cost"]["machines"] == pytest.approx(3 + 4)
    assert costs_until(run, [2.0, 3.0, 4.0]) == pytest.approx([1 + 2, 2 + 3, 3 + 4])


def test_spot_machines_are_not_billed_during_outages(tmp_path: Path) -> None:
    clouds = [{"name": "east", "workers": [{"price": 3600, "spot": True}, {"count": 2, "price": 3600}]}]
    down = {"east/0": {"down": [["1 s", "2 s"], ["3 s", None]]}, "east/1": {"down": [["1 s", None]]}}
    scenario = digits(
        system="ako", cluster={"clouds": clouds}, prices={"billing": {"least": "0 s"}}, availability={"workers": down}
    )
    run = simulate(scenario, tmp_path / "run")
    assert run.outcome["availability"]["up"][0] == pytest.approx(0.5)
    assert run.outcome["cost"]["machines"] == pytest.approx(4 + 4 + 2)
    assert costs_until(run, [1.0, 2.0, 3.0, 4.0]) == pytest.approx([3, 5, 8, 10])
