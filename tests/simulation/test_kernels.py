"""The kernels of a run: this package's, or PyTorch's if requested or if there is no compiler."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import cross_entropy

from dlion_sim.assembly import Setting
from dlion_sim.errors import InputError
from dlion_sim.learning import load
from dlion_sim.learning.layers import kernels
from dlion_sim.simulation import resume, simulate
from tests.simulation.scenarios import digits

ALONE = {"clouds": [{"name": "lab", "workers": [{"compute": "4 cores", "nic": "50 Mbps"}]}]}
LEARNT = 0.6
"""An accuracy that guessing does not reach."""


def convolutional(kernels):
    workload = [f"workload.kernels={kernels}", "workload.model=cipher", "workload.optimizer.momentum=0.9"]
    return digits(*workload, "workload.batch_size=32", duration=None, iterations=40, cluster=ALONE)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run by each kernels."""
    folder = tmp_path_factory.mktemp("kernels")
    return {kernels: simulate(convolutional(kernels), folder / kernels, device="cpu") for kernels in ("fast", "torch")}


@pytest.fixture
def cannot_compile(monkeypatch):
    def fails():
        raise NotImplementedError("no such thing\non this machine")

    monkeypatch.setattr(kernels, "prepare", fails)


def losses(run):
    metrics = run.metrics()
    return metrics[metrics["kind"] == "iteration"]["loss"].tolist()


def of_a_plain_loop(iterations):
    """The losses of PyTorch's own loop over the same batches."""
    setting = Setting.of(convolutional("torch"))
    model, data, sampler = setting.model, load("digits"), setting.sampler(0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(iterations):
        indices = torch.from_numpy(sampler.take(32))
        outputs = model(data.transform(data.train_inputs[indices]).contiguous())
        loss = cross_entropy(outputs, data.train_targets[indices])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()


def test_both_train_as_a_plain_loop_does_within_rounding(runs):
    expected = list(of_a_plain_loop(12))  # later on, roundings have grown
    for run in runs.values():
        assert losses(run)[:12] == pytest.approx(expected, rel=1e-3)
        assert run.summary["accuracy"]["mean"] > LEARNT


def test_kernels_differ_in_rounding(runs):
    assert losses(runs["fast"]) != losses(runs["torch"])


def test_kernels_of_pytorch_are_deterministic(runs, tmp_path):
    again = simulate(convolutional("torch"), tmp_path / "again", device="cpu")
    assert losses(again) == losses(runs["torch"])


def test_the_manifest_names_the_kernels(runs):
    assert {kernels: run.manifest["kernels"] for kernels, run in runs.items()} == {"fast": "fast", "torch": "torch"}


def test_small_layers_use_kernels_of_pytorch(caplog):
    assert Setting.of(digits()).kernels == "torch"
    assert caplog.messages == []


def test_a_run_is_not_resumed_with_other_kernels(tmp_path, request):
    asked = iter([False] * 30 + [True])
    early = simulate(convolutional("fast"), tmp_path / "run", device="cpu", interrupted=lambda: next(asked, True))
    assert early.manifest["status"] == "interrupted"
    before = {file: file.read_bytes() for file in early.folder.iterdir()}
    request.getfixturevalue("cannot_compile")
    with pytest.raises(InputError, match="was saved with kernels fast, and here is torch"):
        resume(early.folder)
    assert {file: file.read_bytes() for file in early.folder.iterdir()} == before
