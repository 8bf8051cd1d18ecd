"""Stalls of scenarios, by run differencing and by one run's timeline."""

import json
from contextlib import nullcontext
from pathlib import Path

import pytest

from dlion_sim.analysis.stalls.attribution import stalls
from dlion_sim.analysis.stalls.differencing import STEPS, WITH_CHURN, differences
from dlion_sim.errors import InputError
from dlion_sim.protocol.systems import SYSTEMS
from dlion_sim.results import Run
from dlion_sim.scenario import to_data
from dlion_sim.simulation import simulate
from dlion_sim.studies.stalls import DOCUMENT, explain, variants
from dlion_sim.studies.stalls.variants import faster_variant
from tests.simulation.checkpointing.test_checkpoint import GIVEN, After
from tests.simulation.scenarios import digits

IN_STEP = ["baseline", "ring_allreduce", "parameter_server"]
FED = "workload.input={prep_rate: 60, disk: 1 MB/s, sample_bytes: 20 kB}"
ALIKE = "cluster.clouds.1.workers.0.compute=24 cores"


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


def test_both_methods_agree_on_systems_in_step(in_step):
    results = in_step.results
    assert results["in_step"]
    assert results["differencing"]["interconnect"]["seconds"] > 0
    assert results["differencing"]["network"]["seconds"] > 0
    assert results["differencing"]["fetch"]["seconds"] > 0
    assert {what: found["gap"] for what, found in results["check"].items()} == pytest.approx(
        dict.fromkeys(results["check"], 0.0), abs=0.03
    )


def test_kinds_sum_to_the_workers_time(in_step):
    workers = json.loads(in_step.document.read_text())["workers"]
    run, stalled = in_step.base.run, in_step.base
    for number, results in enumerate(workers):
        ends = run.iterations().query(f"worker == {number}")["virtual_time"].tolist()
        assert sum(results["shares"].values()) == pytest.approx(1)
        whole = ends[4 + stalled.iterations[number]] - ends[4]
        assert sum(results["seconds"].values()) == pytest.approx(whole, rel=0.01)
    assert in_step.figure.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("system", [name for name in SYSTEMS if ":" not in name])
def test_kinds_sum_to_the_workers_time_for_every_system(tmp_path, system):
    given = {"name": system, **GIVEN.get(system, {})}
    run = simulate(digits("duration=null", "iterations=12", system=given), tmp_path / "run")
    found = stalls(run)
    ended = run.metrics().query("kind != 'evaluation'").groupby("worker")["virtual_time"].max()
    assert found.totals.tolist() == pytest.approx(ended.tolist(), rel=0.01)
    assert found.shares.sum(axis=1).tolist() == pytest.approx([1.0] * 3)
    assert (found.seconds >= 0).all(axis=None)
    if system == "fedavg":  # whose workers rest between rounds
        spent = run.metrics().groupby("worker")[["compute_seconds", "wait_seconds"]].sum().sum(axis=1)
        assert (found.totals - found.seconds["other"]).tolist() == pytest.approx(spent[:3].tolist())
    else:
        assert (found.shares["other"] < 0.01).all()


def test_differencing_is_as_published():
    seconds = dict(zip(STEPS, [1.0, 2.0, 10.0, 12.0, 15.0, 20.0], strict=True))
    found = differences(seconds)
    assert found["seconds"].tolist() == [1, 8, 2, 3, 5]
    assert found.loc["interconnect", "share"] == 0.5
    assert found.loc["network", "slowdown"] == 4  # as much as 400 %
    assert found.loc["network", "share"] == 0.8
    assert found.loc["fetch", "share"] == pytest.approx(3 / 15)  # T2 - T3


def test_both_methods_find_unequal_machines(tmp_path):
    slow = "workload.compute_time.beta=2 s"
    results = explained(tmp_path, "system=ring_allreduce", "cluster.clouds.1.workers.0.compute=16 cores", slow).results
    assert results["check"]["straggler"]["difference"] > 0.1
    assert results["check"]["straggler"]["gap"] < 0.03
    assert results["counterfactuals"]["equal-machines"]["saved_share"] > 0


def test_without_recorded_messages_there_is_no_check(tmp_path):
    results = explained(tmp_path, "system=ring_allreduce", ALIKE, "record_transfers=false", iterations=8).results
    assert results["check"] is None
    assert results["agreement"] == "differences of runs are not checked by one timeline: messages are not recorded"


def test_an_asynchronous_system_has_times_to_the_same_loss_and_no_check(tmp_path):
    results = explained(tmp_path, "system=dlion").results
    assert not results["in_step"]
    assert results["check"] is None
    assert "depends on how far ahead workers are" in results["agreement"]
    assert {"R4", "equal-machines"} <= set(results["loss"]["seconds"])
    assert all(seconds > 0 for seconds in results["loss"]["seconds"].values())


def test_equal_variants_run_once():
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


def test_each_variant_lacks_its_cause():
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


def test_without_round_trips_messages_take_none(tmp_path):
    """Also of a matrix."""
    ends = []
    for place, rtt in enumerate(("rtt: 0 s", "rtt_matrix: {east: {west: 300 ms}}")):
        _, planned = variants(digits("system=baseline", ALIKE, f"cluster.wan={{bandwidth: 20 Mbps, {rtt}}}"), 6)
        (without,) = (variant.scenario for variant in planned if variant.name == "no-round-trips")
        ends.append(simulate(without, tmp_path / str(place)).outcome["virtual_seconds"])
    assert ends[0] == ends[1]


def test_a_single_worker_has_no_fabric_and_no_egress():
    priced = [f"cluster.clouds.{number}.workers.0.price=1" for number in range(2)]
    fabric = "cluster.clouds.0.lan={fabric: {leaves: 2, spines: 2}}"
    _, planned = variants(digits(fabric, "prices.egress={east: 0.1, west: 0.2}", *priced), 12)
    assert [len(variant.scenario.cluster.workers) for variant in planned if variant.name == "R0"] == [1]


def test_a_single_worker_has_no_data_of_other_clouds():
    lies = "workload.partition={kind: owners, at: {east: [0, 1], west: 2}}"
    drift = "[{kind: late_class, clouds: [west], class: 1, from: 1 s}]"
    comes = f"workload.stream={{arrivals: {{rate: 9/s, of: {{west: 5/s}}}}, drift: {drift}}}"
    for given in (lies, comes):
        _, planned = variants(digits(given), 12)
        assert [len(variant.scenario.cluster.workers) for variant in planned if variant.name == "R0"] == [1]
        assert "west" in str(to_data(planned[0].scenario)["workload"])


@pytest.mark.parametrize("transport", ["reliable", "dlcp", "pfabric"])
def test_both_methods_agree_over_packets(tmp_path, transport):
    packets = ("network.model=packets", f"transport={transport}", "cluster.wan={bandwidth: 20 Mbps, rtt: 2 ms}")
    results = explained(tmp_path, "system=parameter_server", ALIKE, *packets, iterations=8).results
    assert results["check"]["communication"]["difference"] > 0
    assert results["check"]["communication"]["gap"] < 0.03


def test_completed_variants_stay_and_interrupted_ones_resume(tmp_path):
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


def test_runs_of_another_scenario_are_replaced_only_by_force(tmp_path):
    explained(tmp_path, "system=baseline", ALIKE, interrupted=After(20))
    before = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*")}
    with pytest.raises(
        InputError, match="holds a run of another scenario, or of other iterations; allowed: another folder; `force`"
    ):
        explained(tmp_path, "system=baseline", ALIKE, "seed=2")
    assert before == {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*")}
    explained(tmp_path, "system=baseline", ALIKE, "seed=2", force=True, interrupted=After(20))
    assert Run.open(tmp_path / "R4").manifest["seed"] == 2


@pytest.mark.parametrize(
    ("file", "setting"), [("stalled.py", "workload.model=stalled:net"), ("base.pt", "workload.lora.base=base.pt")]
)
def test_variants_of_files_with_another_content_are_others(tmp_path, monkeypatch, file, setting):
    monkeypatch.chdir(tmp_path)
    digests = []
    for content in ("1", "2"):
        Path(file).write_text(content)
        given = digits(setting)
        planned = [*variants(given, 12)[1], faster_variant(given, 12, "path from east to west")]
        digests += [each.digest for each in planned]
    assert len({*digests}) == len(digests)


def test_a_file_as_folder_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is a file"):
        explained(tmp_path / "file", "system=baseline")


def test_a_stalled_scenario_is_an_error(tmp_path):
    gone = "cluster.wan.bandwidth={steps: {0 s: 1 Mbps, 100 ms: 0 Mbps}}"
    with pytest.raises(InputError, match="ended before all iterations: stall"):
        explained(tmp_path, "system=baseline", gone)


def outage(begin, back, **more):
    return {"workers": {"west/0": {"down": [[begin, back]]}}, **more}


def test_churn_is_the_additional_time_with_outages(tmp_path):
    """Two workers wait for the third one during its outage of 2 s, over 10 iterations."""
    results = explained(
        tmp_path, "system=baseline", ALIKE, iterations=15, availability=outage("0.6 s", "2.6 s", on_loss="wait")
    ).results
    steps, churn = results["iteration_seconds"], results["differencing"]["churn"]
    assert [*results["iteration_seconds"]] == [*STEPS, WITH_CHURN]
    assert churn["seconds"] == pytest.approx(steps["R5"]["mean"] - steps["R4"]["mean"])
    assert churn["seconds"] == pytest.approx(2 / 10, rel=0.2)
    assert results["counterfactuals"]["no-outages"]["saved_share"] == pytest.approx(churn["share"])
    by_timeline = sum(worker["seconds"]["churn"] for worker in results["workers"])
    count = sum(worker["iterations"] for worker in results["workers"])
    assert by_timeline / count == pytest.approx(churn["seconds"], rel=0.1)
    assert results["check"]["straggler"]["gap"] < 0.03
    assert "mostly for outages" in results["summary"]


def test_an_outage_without_end_counts_over_all_iterations(tmp_path):
    """The others are in one micro-cloud, so an iteration without the third worker is faster."""
    found = explained(tmp_path, "system=baseline", ALIKE, iterations=15, availability=outage("0.6 s", None))
    stalled, taken = found.base, found.results["iteration_seconds"]["R5"]["mean"]
    assert stalled.iterations[0] == 10 > stalled.iterations[2]
    assert taken == pytest.approx(stalled.totals.sum() / sum(stalled.iterations.values()))
    assert found.results["differencing"]["churn"]["seconds"] < 0


def test_only_the_unchanged_scenario_has_outages():
    names, planned = variants(digits("system=baseline", ALIKE, availability=outage("1 s", "2 s")), 12)
    assert names["no-outages"] == names["R4"] == "R4"
    assert planned[0].name == names[WITH_CHURN] == "R5"
    assert [each.name for each in planned if each.scenario.availability] == [
        "R5",
        "unlimited-paths",
        "no-round-trips",
        "unlimited-nics",
    ]


def test_waiting_for_a_worker_that_never_returns_is_an_error(tmp_path):
    gone = outage("0.5 s", None, on_loss="wait")
    with pytest.raises(InputError, match="R5: ended before all iterations: stall"):
        explained(tmp_path, "system=baseline", ALIKE, availability=gone)


def test_link_outages_without_end_are_refused():
    breaks = {"links": {"east-west": {"process": "exponential", "up": "1 s", "down": "0.2 s"}}}
    with pytest.raises(InputError, match=r"links\.east-west: has outages without end, but .* by iterations"):
        variants(digits(availability=breaks), 12)
