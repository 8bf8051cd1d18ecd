"""The data of the page of many runs: results, curves, axes, incomplete runs."""

import json
import re

import msgspec
import numpy as np
import pytest

from dlion_sim.errors import InputError
from dlion_sim.report import Collected, many_page
from dlion_sim.report.many import curves
from dlion_sim.report.many.page import many_data
from dlion_sim.results import find_runs, mark
from tests.made_up import made_up_run
from tests.report.sweeps import begun_run, made_up_sweep, priced_run

HOSTILE = [
    "</script><script>alert(1)</script>",
    "\"quoted\" & 'quoted' <b>bold</b>",
    "long " * 60,
    "\u05e2\u05d1\u05e8\u05d9\u05ea",
]


def told(folder, target=None):
    """As JSON has it."""
    return json.loads(msgspec.json.encode(many_data(Collected.of(find_runs([folder])), target)))


def rows(data, key="system"):
    (axis,) = (each for each in data["axes"] if each["heading"] == key)
    return {axis["values"][place]: group for place, group in zip(axis["places"], data["groups"], strict=True)}


def test_a_row_has_the_results_over_seeds(tmp_path):
    for seed, last in enumerate((0.7, 0.8, 0.9)):
        made_up_run(tmp_path / f"dlion{seed}", (0.1, last, last, last), seed=seed)
    made_up_run(tmp_path / "gaia", (0.1, 0.2, 0.3, 0.9), system="gaia")
    data = told(tmp_path, 0.75)
    assert data["counts"] == "4 completed"
    assert data["target"] == "target: 75 % test accuracy"
    assert [(each["heading"], each["more"]) for each in data["quantities"]] == [
        ("Test accuracy (%)", True),
        ("Time to 75 % (s)", False),
        ("LAN bytes (MB)", False),
        ("LAN bytes to 75 % (MB)", False),
    ]
    of = rows(data)
    assert of["dlion"]["runs"] == "3"
    outcome = of["dlion"]["outcome"]
    assert outcome["final"]["value"] == pytest.approx(80)
    assert outcome["final"]["high"] - 80 == pytest.approx(4.303 * 10 / np.sqrt(3), rel=1e-3)
    assert outcome["final"]["text"] == "80.0 ± 24.8"
    assert (outcome["time"]["text"], outcome["time"]["bound"]) == ("> 16.7", ">")
    assert of["gaia"]["outcome"]["time"] == {"value": 30.0, "low": None, "high": None, "bound": "", "text": "30.0"}


def test_runs_that_are_not_representative_are_marked(tmp_path):
    made_up_run(tmp_path / "dlion")
    made_up_run(tmp_path / "gaia", system="gaia", status="interrupted")
    made_up_run(tmp_path / "diloco", system="diloco", exchanging=False)
    made_up_run(tmp_path / "ako", system="ako", diverged=True)
    of = rows(told(tmp_path))
    assert {name: group["tells"] for name, group in of.items()} == {
        "dlion": True,
        "gaia": True,
        "diloco": False,
        "ako": False,
    }


def test_axes_are_ordered_by_magnitude(tmp_path):
    made_up_sweep(tmp_path, bandwidths=("100 Mbps", "20 Mbps", "5 Mbps"))
    data = told(tmp_path)
    bandwidth, system = data["axes"]
    assert bandwidth["heading"] == "bandwidth"
    assert bandwidth["values"] == ["5 Mbps", "20 Mbps", "100 Mbps"]
    assert system["values"] == ["baseline", "dlion"]
    assert system["colours"] == ["#000000", "#3f90da"]
    assert system["dark"][0] != "#000000"
    assert bandwidth["places"] == [0, 0, 1, 1, 2, 2]
    assert system["places"] == [0, 1, 0, 1, 0, 1]
    assert len({group["id"] for group in data["groups"]}) == 6
    assert data["groups"][0]["name"] == "bandwidth 5 Mbps, baseline"


def test_systems_with_other_settings_differ_in_colour(tmp_path):
    systems = ["baseline", "ako", "gaia", "hop", "dpsgd", "adpsgd", "diloco", "sparta"]
    for system in systems:
        made_up_run(tmp_path / system, system=system)
    for size in (8, 16):
        made_up_run(tmp_path / f"dlion{size}", extra=f"batch_size: {size}")
    colouring = told(tmp_path)["colouring"]
    assert colouring["heading"].startswith("system and ")
    assert len({*colouring["places"]}) == len({*colouring["colours"]}) == len(systems) + 2
    assert "dlion, batch size 8" in colouring["values"]


def test_runs_of_one_system_are_coloured_by_their_axis(tmp_path):
    for bandwidth in ("5 Mbps", "20 Mbps"):
        made_up_run(tmp_path / bandwidth, extra=bandwidth, point={"cluster.wan.bandwidth": bandwidth})
    colouring = told(tmp_path)["colouring"]
    assert colouring["heading"] == "bandwidth"
    assert len({*colouring["colours"]}) == 2


def test_the_target_is_the_best_that_half_of_the_runs_reached(tmp_path):
    made_up_sweep(tmp_path)
    assert told(tmp_path)["target"].endswith("test accuracy, the best that half of the completed runs reached")
    with pytest.raises(InputError, match="no accuracy is 80"):
        told(tmp_path, 80.0)


def test_curves_are_means_with_the_range_of_the_seeds(tmp_path):
    for seed, last in enumerate((0.4, 0.8)):
        made_up_run(tmp_path / f"{seed}", (0.1, last), seed=seed, every=60.0 * 60)
    time, sent = told(tmp_path)["curves"]
    assert (time["key"], time["title"], time["unit"]) == ("time", "Virtual time", "min")
    assert time["groups"] == [{"x": [0, 60], "mean": [10, 60], "low": [10, 40], "high": [10, 80]}]
    assert (sent["unit"], sent["groups"][0]["x"]) == ("MB", [0, 2])


def test_runs_with_prices_have_costs(tmp_path):
    priced_run(tmp_path / "a")
    data = told(tmp_path)
    assert [each["key"] for each in data["quantities"]] == [
        "final",
        "time",
        "bytes_sent",
        "bytes_sent_to_target",
        "cost",
        "cost_to_target",
    ]
    assert [curve["key"] for curve in data["curves"]] == ["time", "bytes", "cost"]
    assert data["groups"][0]["outcome"]["cost"]["value"] == pytest.approx(20 * 2 / 3600)
    assert data["curves"][2]["groups"][0]["x"][-1] == pytest.approx(20 * 2 / 3600, rel=1e-4)


def test_incomplete_runs_have_reasons(tmp_path):
    made_up_run(tmp_path / "a-done")
    made_up_run(tmp_path / "b-stopped", status="interrupted", seed=1)
    made_up_run(tmp_path / "c-failed", seed=2)
    mark(tmp_path / "c-failed", "failed", problem="batch_size: 1000 is more than there are samples")
    made_up_run(tmp_path / "d-broken", seed=3)
    (tmp_path / "d-broken/manifest.json").write_text("{")
    data = told(tmp_path)
    assert data["counts"] == "1 completed, 1 interrupted, 1 failed, 1 unreadable"
    assert data["groups"][0]["runs"] == "1 of 3"
    stopped, failed, broken = data["unfinished"]
    assert stopped == {"run": "b-stopped", "status": "interrupted", "why": "at 20 s"}
    assert failed == {"run": "c-failed", "status": "failed", "why": "batch_size: 1000 is more than there are samples"}
    assert (broken["run"], broken["status"]) == ("d-broken", "unreadable")
    assert "manifest.json: cannot be read" in broken["why"]


def test_a_run_in_progress_is_shown_so_far(tmp_path):
    begun_run(made_up_run(tmp_path / "whole"), tmp_path / "sweep/begun", until=10.0).close()
    data = told(tmp_path / "sweep")
    (group,) = data["groups"]
    assert (data["counts"], group["runs"]) == ("1 running", "0 of 1")
    assert group["outcome"]["final"]["text"] == "50.0"
    assert group["outcome"]["bytes_sent"]["text"] == "> 2"
    assert data["curves"][0]["groups"][0]["x"] == [0, 10]
    assert data["unfinished"] == [{"run": "begun", "status": "running", "why": "at 10 s of 60 s"}]


def test_without_runs_there_is_a_page():
    data = many_data(Collected.of([]))
    assert (data["title"], data["counts"], data["groups"]) == ("0 runs", "", [])
    assert "0 runs" in many_page(Collected.of([]))


def test_runs_of_several_metrics_are_refused(tmp_path):
    made_up_run(tmp_path / "a")
    other = made_up_run(tmp_path / "b", seed=1)
    manifest = {**other.manifest, "metric": {"name": "perplexity", "higher_is_better": False}}
    (tmp_path / "b/manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InputError, match="is evaluated by perplexity"):
        told(tmp_path)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_only_data(tmp_path, name):
    made_up_run(tmp_path / "a", scenario="x", system=name, point={"axis": name})
    made_up_run(tmp_path / "b", scenario="x", system="dlion", point={"axis": "other"})
    page = many_page(Collected.of(find_runs([tmp_path])))
    embedded = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1]
    assert name in json.loads(embedded)["axes"][0]["values"]
    assert not re.search("[<>&]", embedded)
    assert page.count("alert(1)") == embedded.count("alert(1)")


def test_the_same_runs_give_the_same_page(tmp_path):
    made_up_sweep(tmp_path)
    collected = Collected.of(find_runs([tmp_path]))
    assert many_page(collected) == many_page(collected)


def test_many_groups_share_the_maximum_of_points(tmp_path, monkeypatch):
    monkeypatch.setattr(curves, "_MAX_POINTS", 40)
    monkeypatch.setattr(curves, "_MIN_OF_LINE", 8)
    bends = [0.1, *(0.3 + 0.01 * (number % 3) for number in range(19))]
    for seed, system in enumerate(("ako", "baseline", "dlion", "gaia")):
        made_up_run(tmp_path / system, bends, system=system, seed=seed)
    over_time = told(tmp_path)["curves"][0]["groups"]
    assert max(len(each["x"]) for each in over_time) <= 10


def test_values_of_other_axes_have_looks_in_order(tmp_path):
    made_up_sweep(tmp_path, systems=["dlion"], seeds=1)
    bandwidth, system = told(tmp_path)["axes"]
    assert bandwidth["colours"] == ["#0072B2", "#D55E00", "#009E73"]
    assert bandwidth["dashes"] == ["solid", "dash", "dot"]
    assert system["values"] == ["dlion"]


def test_bytes_over_the_wan_come_before_all_bytes(tmp_path):
    made_up_run(tmp_path / "a", workers=3, clouds=("east", "east", "west"))
    data = told(tmp_path, 0.5)
    headings = [each["heading"] for each in data["quantities"]]
    assert headings[2:] == ["WAN bytes (MB)", "WAN bytes to 50 % (MB)", "Bytes in all (MB)"]
    outcome = data["groups"][0]["outcome"]
    assert [outcome[key]["text"] for key in ("wan_bytes", "wan_bytes_to_target", "bytes_sent")] == ["4", "<= 2", "4"]
    sent = data["curves"][1]
    assert (sent["key"], sent["title"]) == ("wan_bytes", "Sent over the WAN by all workers")
    assert sent["groups"][0]["x"] == [0, 2, 4]
