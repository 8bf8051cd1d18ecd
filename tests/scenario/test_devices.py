"""Devices by name: what they are charged at follows from stated figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from dlion_sim.errors import InputError
from dlion_sim.scenario import DEVICES, Schedule, load

COMPUTE = "cluster.clouds.0.workers.0.compute"


@pytest.mark.parametrize(
    ("name", "peak_tflops", "precision"),
    [
        ("v100", 15.7, "FP32"),
        ("a100", 19.5, "FP32"),
        ("a100-tf32", 156, "TF32"),
        ("h100", 67, "FP32"),
        ("h100-tf32", 494.7, "TF32"),
    ],
)
def test_a_gpu_sustains_three_tenths_of_its_stated_peak(name: str, peak_tflops: float, precision: str) -> None:
    device = DEVICES[name]
    assert (device.peak_flops, device.precision) == (pytest.approx(peak_tflops * 1e12), precision)
    assert device.sustained_flops == pytest.approx(0.3 * peak_tflops * 1e12, rel=1e-3)
    assert device.efficiency == pytest.approx(0.3, rel=1e-3)
    assert "NVIDIA" in device.source


def test_the_devices_of_the_papers_environments_are_as_ever() -> None:
    assert (DEVICES["p2.xlarge"].cores, DEVICES["p2.8xlarge"].cores) == (630.0, 5040.0)
    assert DEVICES["p2.xlarge"].efficiency == pytest.approx(0.274, abs=5e-4)


def test_a_core_is_one_core(file: Path) -> None:
    cores = load(file, [f"{COMPUTE}=cpu-core"]).cluster.workers[0].compute.cores
    assert cores == Schedule.constant(1.0)
    assert DEVICES["cpu-core"].efficiency is None


def test_a_machine_may_be_one_device_and_then_another(file: Path) -> None:
    cores = load(file, [f"{COMPUTE}={{steps: {{0 s: p2.8xlarge, 10 s: p2.xlarge, 20 s: 4}}}}"]).cluster.workers[0]
    assert cores.compute.cores.steps == ((0.0, 5040.0), (10.0, 630.0), (20.0, 4.0))


def test_an_unknown_device_is_refused_with_the_nearest(file: Path) -> None:
    with pytest.raises(InputError, match=r"did you mean 'a100'\?; write e.g. '24 cores' or one of: .*h100"):
        load(file, [f"{COMPUTE}=A100"])


@pytest.mark.parametrize(
    ("name", "peak_gflops", "vendor", "is_derived"),
    [
        ("rtx3090", 35_600, "NVIDIA", False),
        ("rtx4090", 82_600, "NVIDIA", False),
        ("l4", 30_300, "NVIDIA", False),
        ("t4", 8_100, "NVIDIA", False),
        ("jetson-agx-orin", 5_300, "NVIDIA", False),
        ("jetson-orin-nano", 1_024 * 2 * 0.625, "NVIDIA", True),
        ("jetson-orin-nano-super", 1_024 * 2 * 1.02, "NVIDIA", True),
        ("raspberry-pi-4", 4 * 8 * 1.8, "Raspberry Pi", True),
        ("raspberry-pi-5", 4 * 16 * 2.4, "Raspberry Pi", True),
    ],
)
def test_devices_that_people_have(file: Path, name: str, peak_gflops: float, vendor: str, is_derived: bool) -> None:
    device = DEVICES[name]
    assert (device.peak_flops, device.precision) == (pytest.approx(peak_gflops * 1e9), "FP32")
    assert device.efficiency == pytest.approx(0.3 if vendor == "NVIDIA" else 0.1, rel=0.02)
    assert vendor in device.source
    assert ("derived" in device.source) is is_derived
    cores = load(file, [f"{COMPUTE}={name}"]).cluster.workers[0].compute.cores
    assert cores == Schedule.constant(device.cores)
