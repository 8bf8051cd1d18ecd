"""What holds scenarios up, by runs that differ in one thing and by the timeline of one run."""

import json
from contextlib import nullcontext

import pytest

from dlion_sim.analysis.stalls.attribution import stalls
from dlion_sim.analysis.stalls.differencing import STEPS, WITH_CHURN, differences
from dlion_sim.errors import InputError
from dlion_sim.learning.process import frozen_objects
from dlion_sim.protocol.systems import SYSTEMS
from dlion_sim.results import Run
from dlion_sim.scenario import to_data
from dlion_sim.simulation import simulate
from dlion_sim.studies.stalls import DOCUMENT, explain, variants
from tests.simulation.checkpointing.test_checkpoint import After
from tests.simulation.scenarios import digits

IN_STEP = ["baseline", "ring_allreduce", "parameter_server"]
FED = "workload.input={prep_rate: 60, disk: 1 MB/s, sample_bytes: 20 kB}"
ALIKE = "cluster.clouds.1.workers.0.compute=24 cores"


@pytest.fixture(scope="module", autouse=True)
def once_frozen():
    """Or each of many runs walks all objects of the tests' process, which takes longer than it does."""
    with frozen_objects():
        yield


def explained(folder, *overrides, iterations=12, availability=None, **options):
    return explain(
        digits(*overrides, availability=availability),
        folder,
        iterations=iterations,
        observing=lambda scenario: nullcontext(lambda progress: None),
        **options,
    )


@pytest.fixture(scope="module", params=IN_STEP)
def in_step(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    return explained(folder, f"system={request.param}", ALIKE, FED, "cluster.wan={bandwidth: 20 Mbps, rtt: 2 ms}")


def test_both_ways_agree_on_systems_that_are_in_step(in_step):
    told = in_step.results
    assert told["in_step"]
    assert told["differencing"]["interconnect"]["seconds"] > 0
    assert told["differencing"]["network"]["seconds"] > 0
    assert told["differencing"]["fetch"]["seconds"] > 0
    assert {what: found["gap"] for what, found in told["check"].items()} == pytest.approx(
        dict.fromkeys(told["check"], 0.0), abs=0.03
    )


def test_the_parts_sum_to_the_whole(in_step):
    workers = json.loads(in_step.document.read_text())["workers"]
    run, stalled = in_step.base.run, in_step.base
    for number, told in enumerate(workers):
        ends = run.iterations().query(f"worker == {number}")["virtual_time"].tolist()
        assert sum(told["shares"].values()) == pytest.approx(1)
        whole = ends[4 + stalled.iterations[number]] - ends[4]
        assert sum(told["seconds"].values()) == pytest.approx(whole, rel=0.01)
    assert in_step.figure.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("system", [name for name in SYSTEMS if ":" not in name])
def test_the_parts_sum_to_the_whole_whatever_the_system(tmp_path, system):
    run = simulate(digits(f"system={system}", "duration=null", "iterations=12"), tmp_path / "run")
    found = stalls(run)
    ended = run.metrics().query("kind != 'evaluation'").groupby("worker")["virtual_time"].max()
    assert found.totals.tolist() == pytest.approx(ended.tolist(), rel=0.01)
    assert found.shares.sum(axis=1).tolist() == pytest.approx([1.0] * 3)
    assert (found.seconds >= 0).all(axis=None)
    assert (found.shares["other"] < 0.01).all()


def test_differencing_is_as_it_was_published():
    seconds = dict(zip(STEPS, [1.0, 2.0, 10.0, 12.0, 15.0, 20.0], strict=True))
    found = differences(seconds)
    assert found["seconds"].tolist() == [1, 8, 2, 3, 5]
    assert found.loc["interconnect", "share"] == 0.5
    assert found.loc["network", "slowdown"] == 4  # as much as 400 %
    assert found.loc["network", "share"] == 0.8
    assert found.loc["fetch", "share"] == pytest.approx(3 / 15)  # T2 - T3


def test_unequal_machines_are_told_by_both_ways_where_nothing_hides_them(tmp_path):
    slow = "workload.compute_time.beta=2 s"
    told = explained(tmp_path, "system=ring_allreduce", "cluster.clouds.1.workers.0.compute=16 cores", slow).results
    assert told["check"]["straggler"]["difference"] > 0.1
    assert told["check"]["straggler"]["gap"] < 0.03
    assert told["counterfactuals"]["equal-machines"]["saved_share"] > 0


def test_without_a_record_of_messages_there_is_no_check_by_a_timeline(tmp_path):
    told = explained(tmp_path, "system=ring_allreduce", ALIKE, "record_transfers=false", iterations=8).results
    assert told["check"] is None
    assert told["agreement"] == "differences of runs are not checked by one timeline: messages are not recorded"


def test_an_asynchronous_system_is_told_as_one_with_the_times_to_the_same_loss(tmp_path):
    told = explained(tmp_path, "system=dlion").results
    assert not told["in_step"]
    assert told["check"] is None
    assert "depends on how far ahead workers are" in told["agreement"]
    assert {"R4", "equal-machines"} <= set(told["loss"]["seconds"])
    assert all(seconds > 0 for seconds in told["loss"]["seconds"].values())


def test_what_takes_nothing_away_is_not_run():
    names, planned = variants(digits("system=baseline", ALIKE), 12)
    assert names["R4"] == names["R3"] == names["R2"] == names["R1x"] == names["equal-machines"] == "R4"
    assert [variant.name for variant in planned] == [
        "R4",
        "R0",
        "R1",
        "unlimited-paths",
        "no-round-trips",
        "unlimited-nics",
    ]


def test_each_variant_takes_away_what_it_says():
    names, planned = variants(digits("system=dlion", FED), 12)
    data = {variant.name: to_data(variant.scenario) for variant in planned}
    assert "input" not in data[names["R1x"]]["workload"]
    assert data[names["R3"]]["workload"]["input"] == {"prep_rate": 60, "cache": 0.0}
    assert data["R1"]["cluster"]["wan"] == {"bandwidth": "unlimited", "rtt": "200 us", "paths": []}
    assert len(data["R0"]["cluster"]["clouds"]) == 1
    assert data["R0"]["system"]["name"] == "baseline"
    assert data["R2"]["system"]["batching"] == "fixed"
    cores = [float(cloud["workers"][0]["compute"]["cores"].split()[0]) for cloud in data["R2"]["cluster"]["clouds"]]
    assert cores == pytest.approx([3 / (2 / 24 + 1 / 4)] * 2)
    assert data["no-round-trips"]["cluster"]["wan"]["rtt"] == "0 s"
    assert data["unlimited-paths"]["cluster"]["wan"]["bandwidth"] == "unlimited"
    assert data["R4"]["workload"]["input"]["cache"] == 0.0


def test_one_worker_alone_has_no_leaves_and_no_clouds_that_traffic_is_paid_to():
    priced = [f"cluster.clouds.{number}.workers.0.price=1" for number in range(2)]
    fabric = "cluster.clouds.0.lan={fabric: {leaves: 2, spines: 2}}"
    _, planned = variants(digits(fabric, "prices.egress={east: 0.1, west: 0.2}", *priced), 12)
    assert [len(variant.scenario.cluster.workers) for variant in planned if variant.name == "R0"] == [1]


def test_one_worker_alone_has_no_samples_that_lie_or_come_elsewhere():
    lies = "workload.partition={kind: owners, at: {east: [0, 1], west: 2}}"
    drift = "[{kind: late_class, clouds: [west], class: 1, from: 1 s}]"
    comes = f"workload.stream={{arrivals: {{rate: 9/s, of: {{west: 5/s}}}}, drift: {drift}}}"
    for given in (lies, comes):
        _, planned = variants(digits(given), 12)
        assert [len(variant.scenario.cluster.workers) for variant in planned if variant.name == "R0"] == [1]
        assert "west" in str(to_data(planned[0].scenario)["workload"])


@pytest.mark.parametrize("transport", ["reliable", "dlcp", "pfabric"])
def test_both_ways_agree_over_packets(tmp_path, transport):
    packets = ("network.model=packets", f"transport={transport}", "cluster.wan={bandwidth: 20 Mbps, rtt: 2 ms}")
    told = explained(tmp_path, "system=parameter_server", ALIKE, *packets, iterations=8).results
    assert told["check"]["communication"]["difference"] > 0
    assert told["check"]["communication"]["gap"] < 0.03


def test_what_is_complete_is_not_run_again_and_what_was_ended_goes_on(tmp_path):
    options = ("system=baseline", ALIKE)
    assert explained(tmp_path / "a", *options, interrupted=After(60)) is None
    assert not (tmp_path / "a" / DOCUMENT).exists()
    begun = Run.open(tmp_path / "a" / "R4")
    assert begun.manifest["status"] == "interrupted"
    one = explained(tmp_path / "a", *options)
    assert "resumed_at" in Run.open(tmp_path / "a" / "R4").manifest
    written = {file: file.stat().st_mtime_ns for file in tmp_path.glob("a/*/manifest.json")}
    again = explained(tmp_path / "a", *options)
    assert written == {file: file.stat().st_mtime_ns for file in written}
    assert again.results == one.results


def test_runs_of_another_scenario_stay_unless_forced(tmp_path):
    explained(tmp_path, "system=baseline", ALIKE, interrupted=After(20))
    before = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*")}
    with pytest.raises(
        InputError, match="holds a run of another scenario, or of other iterations; allowed: another folder; `force`"
    ):
        explained(tmp_path, "system=baseline", ALIKE, "seed=2")
    assert before == {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*")}
    explained(tmp_path, "system=baseline", ALIKE, "seed=2", force=True, interrupted=After(20))
    assert Run.open(tmp_path / "R4").manifest["seed"] == 2


def test_a_file_is_no_folder_for_runs(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is a file"):
        explained(tmp_path / "file", "system=baseline")


def test_a_scenario_that_can_never_end_is_refused(tmp_path):
    gone = "cluster.wan.bandwidth={steps: {0 s: 1 Mbps, 100 ms: 0 Mbps}}"
    with pytest.raises(InputError, match="ended before all iterations: stall"):
        explained(tmp_path, "system=baseline", gone)


def away(begin, back, **more):
    return {"workers": {"west/0": {"down": [[begin, back]]}}, **more}


def test_churn_is_what_iterations_take_longer_where_machines_go(tmp_path):
    """Two workers wait for the third one, which is away for 2 s of 10 iterations."""
    told = explained(
        tmp_path, "system=baseline", ALIKE, iterations=15, availability=away("0.6 s", "2.6 s", on_loss="wait")
    ).results
    steps, churn = told["iteration_seconds"], told["differencing"]["churn"]
    assert [*told["iteration_seconds"]] == [*STEPS, WITH_CHURN]
    assert churn["seconds"] == pytest.approx(steps["R5"]["mean"] - steps["R4"]["mean"])
    assert churn["seconds"] == pytest.approx(2 / 10, rel=0.2)
    assert told["counterfactuals"]["nobody-goes"]["saved_share"] == pytest.approx(churn["share"])
    by_timeline = sum(worker["seconds"]["churn"] for worker in told["workers"])
    count = sum(worker["iterations"] for worker in told["workers"])
    assert by_timeline / count == pytest.approx(churn["seconds"], rel=0.1)
    assert told["check"]["straggler"]["gap"] < 0.03
    assert "mostly for outages" in told["told"]


def test_who_is_gone_for_good_does_fewer_iterations_and_all_time_counts_over_all_of_them(tmp_path):
    """Those who stay are in one micro-cloud, and so much faster without it that an iteration costs less."""
    found = explained(tmp_path, "system=baseline", ALIKE, iterations=15, availability=away("0.6 s", None))
    stalled, taken = found.base, found.results["iteration_seconds"]["R5"]["mean"]
    assert stalled.iterations[0] == 10 > stalled.iterations[2]
    assert taken == pytest.approx(stalled.totals.sum() / sum(stalled.iterations.values()))
    assert found.results["differencing"]["churn"]["seconds"] < 0


def test_only_the_scenario_as_it_is_has_machines_that_go():
    names, planned = variants(digits("system=baseline", ALIKE, availability=away("1 s", "2 s")), 12)
    assert names["nobody-goes"] == names["R4"] == "R4"
    assert planned[0].name == names[WITH_CHURN] == "R5"
    assert [each.name for each in planned if each.scenario.availability] == [
        "R5",
        "unlimited-paths",
        "no-round-trips",
        "unlimited-nics",
    ]


def test_who_waits_for_who_never_comes_back_never_ends(tmp_path):
    gone = away("0.5 s", None, on_loss="wait")
    with pytest.raises(InputError, match="R5: ended before all iterations: stall"):
        explained(tmp_path, "system=baseline", ALIKE, availability=gone)


def test_links_that_break_without_end_are_refused():
    breaks = {"links": {"east-west": {"process": "exponential", "up": "1 s", "down": "0.2 s"}}}
    with pytest.raises(InputError, match=r"links\.east-west: has outages without end, but .* by iterations"):
        variants(digits(availability=breaks), 12)
