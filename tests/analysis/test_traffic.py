"""Rates of links, and the utilization of their routes."""

import pytest

from dlion_sim.analysis.traffic import capacities, interval_rates, mean_rates, utilization
from dlion_sim.results import Run
from dlion_sim.results.run_folder import SCENARIO
from tests.made_up import made_up_run

# Each worker sends 1 MB to the next in each of two intervals of 10 s: 0.8 Mbps.
SCENARIO_OF_THREE = """
name: made-up
duration: 20 s
workload: {dataset: digits}
cluster:
  clouds:
    - {name: east, workers: [{count: 2, nic: {up: 8 Mbps, down: 4 Mbps}}]}
    - {name: west, workers: [{nic: {up: {steps: {0 s: 1 Mbps, 10 s: 3 Mbps}}, down: 8 Mbps}}]}
  wan: {bandwidth: 1 Mbps, rtt: 60 ms}
system: dlion
"""


@pytest.fixture
def run(tmp_path):
    made_up_run(tmp_path / "run", workers=3)
    (tmp_path / "run" / SCENARIO).write_text(SCENARIO_OF_THREE)
    return Run.open(tmp_path / "run")


def test_rates_are_means_over_intervals_and_over_the_run(run):
    assert interval_rates(run)["rate"].tolist() == [8e5] * 6
    rates = mean_rates(run)
    assert rates[["sender", "receiver"]].to_numpy().tolist() == [[0, 1], [1, 2], [2, 0]]
    assert rates["rate"].tolist() == [8e5] * 3
    assert rates["n_percent"].tolist() == [7.5] * 3


def test_rates_are_over_the_senders_own_intervals(run):
    """As live nodes have that may be lost."""
    links = run.links()
    links.loc[(links["sender"] == 1) & (links["virtual_time"] == 20), "virtual_time"] = 10.5
    links.loc[(links["sender"] == 2) & (links["virtual_time"] == 20), "virtual_time"] = 10.501
    object.__setattr__(run, "links", links.copy)
    rates = interval_rates(run).set_index(["sender", "virtual_time"])["rate"].to_dict()
    steady = {(sender, 10.0): 8e5 for sender in range(3)} | {(0, 20.0): 8e5}
    assert rates == pytest.approx(steady | {(1, 10.5): 16e6, (2, 10.501): 8e6 / 0.501})


def test_utilization_is_of_all_traffic_on_a_link(run):
    full = utilization(run).set_index(["sender", "crossed"])["full"].to_dict()
    assert full == pytest.approx(
        {
            (0, "uplink of east/0"): 0.1,
            (0, "downlink of east/1"): 0.2,
            (1, "uplink of east/1"): 0.1,
            (1, "path from east to west"): 0.8,
            (1, "downlink of west/0"): 0.1,
            (2, "uplink of west/0"): 0.4,  # of 2 Mbps on average
            (2, "path from west to east"): 0.8,
            (2, "downlink of east/0"): 0.2,
        }
    )


def test_a_server_shares_the_nic_of_its_worker(run):
    file = run.folder / SCENARIO
    server = "system: {name: parameter_server, topology: {kind: parameter_server, hosts: [1, {cloud: west}]}}"
    # Now 1 and 2 are servers: one on the machine of worker 0, one on its own.
    text = file.read_text().replace("count: 2", "count: 1").replace("system: dlion", server.replace("[1", "[0"))
    file.write_text(text.replace("    - {name: west, workers: [{nic", "    - {name: west, workers: [{count: 1, nic"))
    crossed = utilization(run)
    assert crossed[crossed["sender"] == 0]["crossed"].tolist() == [
        "uplink of east/0",
        "path from east to west",
        "downlink of west/0",
    ]
    assert crossed[crossed["sender"] == 2]["crossed"].tolist() == []


def test_unknown_capacities_have_no_rows(tmp_path, run):
    assert utilization(made_up_run(tmp_path / "no cluster")).empty
    run.manifest["way"] = "live"
    assert utilization(run).empty


def test_capacities_are_means_from_edge_to_edge(run):
    uplink, path, downlink = capacities(run, [(2, 0)], [0.0, 5.0, 15.0, 20.0])[0]
    assert [name for name, _ in (uplink, path, downlink)] == [
        "uplink of west/0",
        "path from west to east",
        "downlink of east/0",
    ]
    assert uplink[1].tolist() == pytest.approx([1e6, 2e6, 3e6])  # from 1 to 3 Mbps at 10 s
    assert path[1].tolist() == pytest.approx([1e6] * 3)


def test_capacities_of_repeating_schedules_cover_all_periods(run):
    file = run.folder / SCENARIO
    file.write_text(file.read_text().replace("10 s: 3 Mbps}", "10 s: 3 Mbps}, repeat: 20 s"))
    uplink = capacities(run, [(2, 0)], [0.0, 20.0, 30.0, 45.0])[0][0]
    assert uplink[1].tolist() == pytest.approx([2e6, 1e6, (10 * 3e6 + 5 * 1e6) / 15])


def test_capacities_of_live_runs_are_unknown(tmp_path):
    assert capacities(made_up_run(tmp_path / "run", workers=3, way="live"), [(2, 0)], [0.0, 1.0]) is None


FAILING = """
availability:
  links: {"east>west": {down: [[5 s, 7 s], [15 s, null]]}}
"""


def test_a_path_has_no_capacity_during_its_outages(run):
    run.manifest["paths_down"] = [
        {"sender": "east", "receiver": "west", "begin": begin, "end": end} for begin, end in ((5.0, 7.0), (15.0, None))
    ]
    full = utilization(run).set_index("crossed")["full"]
    assert full["path from east to west"] == pytest.approx(0.8 / (13 / 20))
    assert full["path from west to east"] == pytest.approx(0.8)
    path = dict(capacities(run, [(1, 2)], [0.0, 6.0, 10.0, 20.0])[0])["path from east to west"]
    assert path.tolist() == pytest.approx([5e6 / 6, 3e6 / 4, 5e6 / 10])


def test_a_path_whose_outages_cannot_be_is_left_out(run):
    run.manifest["paths_down"] = [{"sender": "east", "receiver": "west", "begin": 0.0, "end": 3.0}]
    assert "path from east to west" not in set(utilization(run)["crossed"])


def test_paths_whose_outages_the_manifest_does_not_have_are_left_out(run):
    file = run.folder / SCENARIO
    file.write_text(file.read_text() + FAILING)
    assert set(utilization(run)["crossed"]) >= {"path from west to east", "uplink of east/1"}
    assert "path from east to west" not in set(utilization(run)["crossed"])


def test_a_path_that_may_fail_but_did_not_has_its_whole_capacity(run):
    file = run.folder / SCENARIO
    file.write_text(file.read_text() + FAILING)
    run.manifest["paths_down"] = []
    full = utilization(run).set_index("crossed")["full"]
    assert full["path from east to west"] == pytest.approx(0.8)
