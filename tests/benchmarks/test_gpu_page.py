"""docs/gpu.md has measured figures, and marks missing ones."""

import importlib.util
from pathlib import Path

import pytest

from benchmarks.gpu_accept.busy import union
from benchmarks.gpu_accept.goals import goals
from benchmarks.gpu_accept.record import read

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def maker():
    spec = importlib.util.spec_from_file_location("make_gpu_page", ROOT / "docs" / "make_gpu_page.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rows(page, first):
    lines = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("|")]
    return [line for line in lines if line[0] == first]


def step(name, *rows, status="passed", message=""):
    return {"name": name, "status": status, "seconds": 12.3, "message": message, "rows": list(rows)}


def test_the_page_is_that_of_the_results(maker):
    assert (ROOT / "docs" / "gpu.md").read_text() == maker.page(read(maker.RESULTS)), (
        "run: python docs/make_gpu_page.py"
    )


def test_without_results_nothing_is_measured(maker):
    page = maker.page({})
    assert "**Not measured**: this has not been run on a GPU yet." in page
    assert "|" not in page
    assert all(goal.what in page for goal in goals({}))


def test_measured_figures_are_beside_their_goals(maker):
    results = {"status": "cut off by its limit", "started": "2026-01-02T03:04:05", "seconds": 480.1}
    fused = {"model": "mlp", "workers": 64, "one_by_one": 1000.0, "fused": 12345.0, "fused_gib": 1.5}
    slow = {"model": "cipher", "workers": 64, "one_by_one": 1000.0, "fused": 4900.0}
    results["steps"] = [
        step("machine", {"gpu": "Big GPU", "torch": "2.11", "cuda": "13.0"}),
        step("rates", fused, slow, status="failed", message="a | b"),
    ]
    page = maker.page(results)
    assert "Measured on Big GPU, PyTorch 2.11, CUDA 13.0, 2026-01-02, in 480 s: cut off by its limit." in page
    assert rows(page, "mlp")[2] == ["mlp", "64", "1,000", "12,345", "12.3", "not measured", "1.50"]
    assert rows(page, "rates")[0][2:] == ["failed: a \\| b", "12"]
    assert rows(page, "nodes")[0][2:] == ["not measured"] * 2
    assert [goal.outcome for goal in goals(results)] == ["reached", "missed", "not measured"]


def test_overlapping_kernels_count_once():
    assert union([(5.0, 7.0), (0.0, 2.0), (1.0, 3.0), (1.0, 2.0)]) == 5.0
    assert union([]) == 0.0
