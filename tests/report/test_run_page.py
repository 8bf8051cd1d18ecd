"""The data of the page of one run."""

import json
import shutil

import pytest

from dlion_sim.report.page import embedded
from dlion_sim.report.run_page import SECTIONS, run_data, run_page
from dlion_sim.results import Run
from tests.made_up import made_up_run
from tests.report.large import large_run
from tests.report.test_timeline import unpacked
from tests.results.test_cost import TARIFF

HOSTILE = "</script><script>alert(1)</script>\"'" + "n" * 300 + "שלום"


def changed(run, **manifest):
    """The run with other things in its manifest."""
    file = run.folder / "manifest.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **manifest}))
    return Run.open(run.folder)


def test_the_summary_has_the_main_results(tmp_path):
    data = run_data(made_up_run(tmp_path / "run", (0.1, 0.5, 0.8)))
    facts = {fact["label"]: fact["value"] for fact in data["headline"]["facts"]}
    assert facts == {
        "test accuracy": "80.0%",
        "time to 80 %": "20 s",
        "virtual time": "20 s",
        "sent over the LAN": "4 MB",
    }
    assert data["headline"]["facts"][0]["note"] == "79.0% to 81.0% over the workers, at the end"
    assert data["title"] == "made-up · dlion · seed 0"
    assert "waits 40% of its time" in data["headline"]["bottleneck"]
    assert data["headline"]["warnings"] == []


def test_a_failed_run_has_its_reason(tmp_path):
    run = made_up_run(tmp_path / "run", status="failed")
    file = run.folder / "summary.json"
    file.write_text(json.dumps({**run.summary, "stopped_by": "the ring is broken; system: baseline can continue"}))
    warning = "Results are incomplete: the run failed: the ring is broken; system: baseline can continue."
    assert warning in run_data(Run.open(run.folder))["headline"]["warnings"]


def test_a_missed_target_is_shown(tmp_path):
    run = made_up_run(tmp_path / "run", extra="target_accuracy: 0.95\n")
    facts = {fact["label"]: fact["value"] for fact in run_data(run)["headline"]["facts"]}
    assert facts["time to 95 %"] == "not reached"


def test_the_metric_is_over_time_bytes_and_cost(tmp_path):
    run = made_up_run(tmp_path / "run", (0.1, 0.5, 0.8))
    metric = run_data(run)["metric"]
    assert metric["times"] == [0.0, 10.0, 20.0]
    assert metric["mean"] == pytest.approx([10.0, 50.0, 80.0])
    assert metric["low"] == pytest.approx([9.0, 49.0, 79.0])
    assert metric["bytes"] == [0.0, 2e6, 4e6]
    assert metric["cost"] is None
    assert [unpacked(worker).tolist() for worker in metric["workers"]] == [
        pytest.approx([9.0, 49.0, 79.0]),
        pytest.approx([11.0, 51.0, 81.0]),
    ]
    priced = run_data(changed(run, clouds=["east", "east"], tariff=TARIFF))["metric"]
    assert len(priced["cost"]) == 3
    assert priced["cost"] == sorted(priced["cost"])


def test_quantities_of_iterations_have_a_line_per_worker(tmp_path):
    lines = run_data(made_up_run(tmp_path / "run"))["lines"]
    assert [quantity["name"] for quantity in lines][-1] == "N of Max-N, by sender"
    assert all([line["name"] for line in quantity["lines"]] == ["east/0", "east/1"] for quantity in lines)
    (n_percent,) = (quantity for quantity in lines if quantity["unit"] == "%")
    assert unpacked(n_percent["lines"][0]["values"]).tolist() == [5.0, 10.0]


@pytest.mark.parametrize("what", ["alone", "running", "unmeasured", "live", "streamed", "lossy"])
def test_runs_of_all_kinds_have_a_page(tmp_path, what):
    kinds = {
        "alone": {"workers": 1},
        "unmeasured": {"accuracies": ()},
        "streamed": {"streamed": True},
        "live": {"way": "live"},
        "lossy": {"lossy": True},
    }
    run = made_up_run(tmp_path / "run", **kinds.get(what, {}))
    if what == "running":
        (run.folder / "summary.json").unlink()
        run = changed(run, status="running")
    data = run_data(run)
    assert json.loads(embedded(data))["end"] > 0
    assert {section.view for section in SECTIONS} <= {"brush", "map", *data}
    if what == "running":
        assert "did not end (killed, or still in progress); " in data["headline"]["warnings"][0]


def test_hostile_names_are_only_data(tmp_path):
    run = large_run(tmp_path / "run", workers=2, iterations=10, name="plain")
    run = changed(run, scenario=HOSTILE, workers=[f"{HOSTILE}/{n}" for n in range(2)], clouds=[HOSTILE] * 2)
    data = run_data(run)
    text = embedded(data)
    assert "<" not in text
    back = json.loads(text)
    assert back["timeline"]["workers"] == [f"{HOSTILE}/0", f"{HOSTILE}/1"]
    assert back["title"].startswith(HOSTILE)


def test_a_page_does_not_depend_on_its_folder(tmp_path):
    pytest.importorskip("plotly")
    run = made_up_run(tmp_path / "run")
    shutil.copytree(run.folder, tmp_path / "elsewhere")
    assert run_page(run) == run_page(Run.open(tmp_path / "elsewhere"))


def test_a_page_of_many_workers_is_small(tmp_path):
    data = run_data(large_run(tmp_path / "run", workers=1000, iterations=220))
    # Of 440,000 spans. The library takes 5 MB more.
    assert 250_000 < data["timeline"]["first"][-1] <= 300_000
    assert len(embedded(data)) < 8_000_000


def test_a_page_does_not_grow_with_iterations(tmp_path, monkeypatch):
    monkeypatch.setattr("dlion_sim.report.timeline._MOST_CELLS", 400)
    monkeypatch.setattr("dlion_sim.report.lines._BUCKETS", 50)
    sizes = [len(embedded(run_data(large_run(tmp_path / str(n), workers=2, iterations=n)))) for n in (1000, 4000)]
    assert sizes[1] < 1.1 * sizes[0]


def test_owners_of_samples_are_named(tmp_path):
    run = made_up_run(tmp_path / "run")
    names = run.manifest["workers"]
    counts = [[1, 2], [3, 4]]
    assert run_data(changed(run, partition=counts))["partition"] == {"workers": names, "counts": counts}
    many = {str(owner): 1 for owner in range(7)}
    data = run_data(changed(run, partition=counts, owners=[{"3": 3}, many]))["partition"]
    assert data["workers"] == [f"{names[0]} (owner 3)", f"{names[1]} (owners 0, 1, 2, 3, ... (7 in all))"]
    assert data["counts"] == counts


def test_wan_bytes_come_first(tmp_path):
    data = run_data(made_up_run(tmp_path / "run", clouds=("east", "west")))
    facts = {fact["label"]: (fact["value"], fact["note"]) for fact in data["headline"]["facts"]}
    assert facts["sent over the WAN"] == ("4 MB", "of 4 MB in all, by 2 workers")
    assert data["metric"]["bytes_name"] == "WAN bytes"
    assert (data["metric"]["traffic"], data["metric"]["bytes"]) == ("Sent over the WAN by all workers", [0, 2e6, 4e6])
