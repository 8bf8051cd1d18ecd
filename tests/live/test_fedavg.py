"""Federated averaging, simulated and by real processes: the server is evaluated, and the same workers take part."""

import pytest

from dlion_sim.analysis.curves import worker_deviation
from dlion_sim.analysis.export import export_trace
from dlion_sim.errors import InputError
from dlion_sim.live.coordinate import run_locally
from dlion_sim.simulation import simulate
from tests.simulation.scenarios import digits

EQUAL = {"clouds": [{"name": "a", "workers": [{"count": 5, "compute": "100 cores"}]}]}


def federated(**keys):
    topology = {"kind": "parameter_server", "hosts": [{"cloud": "a"}]}
    system = {"name": "fedavg", "exchange": {"participation": 0.4, "epochs": 0.1}, "topology": topology}
    return digits("workload.evaluate_every=0.5 s", cluster=EQUAL, system=system, **keys)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fedavg")
    scenario = federated(duration="4 s")
    return simulate(scenario, folder / "simulated"), run_locally(scenario, folder / "live")


@pytest.mark.parametrize("which", [0, 1], ids=["simulated", "live"])
def test_only_the_servers_parameters_are_evaluated(runs, which):
    run = runs[which]
    evaluations = run.evaluations()
    assert {*evaluations["worker"]} == {5}
    assert {*evaluations["worker_name"]} == {"server 5"}
    rounds = evaluations["iteration"].tolist()
    assert rounds == sorted(rounds)
    assert rounds[-1] > 5
    assert run.summary["accuracy"]["mean"] > 0.6
    assert run.without_exchange == []
    with pytest.raises(InputError, match="its server's parameters"):
        worker_deviation(run)


def test_its_evaluations_are_exported_under_its_name(runs, tmp_path):
    export_trace(runs, tmp_path / "traces")
    for file in (tmp_path / "traces").glob("*.json"):
        assert "test accuracy of server 5" in file.read_text()


def test_the_same_cohorts_train_in_the_same_order(runs):
    """Rounds wait for all of a cohort, so that delays change when they are, but not who is in them."""

    def cohorts(run):
        invited = run.transfers().query("kind == 'invitation'").sort_values("begin")["receiver"].tolist()
        return [{*invited[place : place + 2]} for place in range(0, 20, 2)]

    assert cohorts(runs[0]) == cohorts(runs[1])
    assert {*map(len, cohorts(runs[0]))} == {2}
