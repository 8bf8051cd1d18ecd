"""Devices by name, and the number of cores of the same speed. All speeds are derived, not measured."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from dataclasses import dataclass

from dlion_sim.errors import did_you_mean

CORE_FLOPS = 1.9e9
"""Effective FLOP/s of one core, from which a model's cost is charged where the scenario states none.

Derived from TF.AKO's published runs: a 125 MFLOP training step, plus one more forward pass, on batches of 104 took
about 0.38 s on a server with 24 logical cores.
"""

EFFICIENCY = 0.3
"""Share of its peak at which a GPU trains: an assumption, near the 27 % of p2.xlarge."""

CPU_EFFICIENCY = 0.1
"""Share of its peak at which an Arm CPU trains: an assumption. A core of a Raspberry Pi 4 then has three quarters of
`CORE_FLOPS`, one of a Raspberry Pi 5 twice that."""


@dataclass(frozen=True)
class Device:
    """A processor, whose computations take as long as on that number of cores."""

    cores: float
    precision: str
    source: str
    """Source of the figure; recalled: from memory of that document."""
    peak_flops: float | None = None
    """Peak FLOP/s for dense matrices, stated by the vendor or derived as the source says; None: cores are not derived
    from it."""

    @property
    def sustained_flops(self) -> float:
        """FLOP/s at which training is charged."""
        return self.cores * CORE_FLOPS

    @property
    def efficiency(self) -> float | None:
        """Sustained share of the peak."""
        return self.sustained_flops / self.peak_flops if self.peak_flops else None


def _gpu(tflops: float, precision: str, source: str) -> Device:
    return _device(tflops * 1e12, precision, f"NVIDIA, {source}")


def _by_clock(cores: int, flop: int, ghz: float, source: str, efficiency: float = EFFICIENCY) -> Device:
    """From cores, FLOP per cycle and clock, for vendors that state no peak."""
    derived = f"{source}; peak derived: {cores:,} x {flop} FLOP x {ghz:g} GHz"
    return _device(cores * flop * ghz * 1e9, "FP32", derived, efficiency)


def _device(peak: float, precision: str, source: str, efficiency: float = EFFICIENCY) -> Device:
    cores = efficiency * peak / CORE_FLOPS
    return Device(float(round(cores) if cores >= 100 else round(cores, 1)), precision, source, peak)


def _p2(gpus: int, boards: str) -> Device:
    """So many GK210, halves of a K80. Assumptions: one sustains about 1.2 TFLOP/s, and they do as much more."""
    source = f"NVIDIA, Tesla K80 datasheet with GPU Boost, {boards}"
    return Device(gpus * 630.0, "FP32", source, gpus * 8.74e12 / 2)


DEVICES: Mapping[str, Device] = {
    "cpu-core": Device(1.0, "FP32", "derived from TF.AKO's published runs"),
    "p2.xlarge": _p2(1, "half a board"),
    "p2.8xlarge": _p2(8, "four boards"),
    "v100": _gpu(15.7, "FP32", "Tesla V100 datasheet, SXM2"),
    "a100": _gpu(19.5, "FP32", "A100 datasheet, SXM4"),
    "a100-tf32": _gpu(156, "TF32", "A100 datasheet, SXM4"),
    "h100": _gpu(67, "FP32", "H100 datasheet, SXM5"),
    "h100-tf32": _gpu(494.7, "TF32", "H100 architecture white paper, SXM5"),
    "t4": _gpu(8.1, "FP32", "T4 datasheet (recalled)"),
    "l4": _gpu(30.3, "FP32", "L4 datasheet (recalled)"),
    "rtx3090": _gpu(35.6, "FP32", "Ampere GA102 architecture white paper, GeForce RTX 3090 (recalled)"),
    "rtx4090": _gpu(82.6, "FP32", "Ada architecture white paper, GeForce RTX 4090 (recalled)"),
    "jetson-agx-orin": _gpu(5.3, "FP32", "Jetson AGX Orin series technical brief, 64 GB (recalled)"),
    "jetson-orin-nano": _by_clock(1024, 2, 0.625, "NVIDIA, Jetson Orin Nano series data sheet, 8 GB (recalled)"),
    "jetson-orin-nano-super": _by_clock(1024, 2, 1.02, "NVIDIA, Jetson Orin Nano Super developer kit, 25 W (recalled)"),
    "raspberry-pi-4": _by_clock(
        4, 8, 1.8, "Raspberry Pi 4 Model B specifications, four Cortex-A72 (recalled)", CPU_EFFICIENCY
    ),
    "raspberry-pi-5": _by_clock(
        4, 16, 2.4, "Raspberry Pi 5 specifications, four Cortex-A76 (recalled)", CPU_EFFICIENCY
    ),
}
"""The names that a scenario's `compute` accepts."""

GPUS: Mapping[str, str] = {
    "K80": "p2.xlarge",
    "V100": "v100",
    "A100": "a100",
    "A100-80GB": "a100",
    "H100": "h100",
    "T4": "t4",
    "L4": "l4",
    "RTX3090": "rtx3090",
    "RTX4090": "rtx4090",
}
"""Device by GPU name in catalogs of instances; a K80 there is half a board."""


def cores_of(given: object) -> object:
    """The cores of a device's name; anything else unchanged. Raises ValueError for an unknown name."""
    if not isinstance(given, str) or not given[:1].isalpha():
        return given
    if given in DEVICES:
        return DEVICES[given].cores
    raise ValueError(
        f"{reprlib.repr(given)} is neither a number of cores nor a device{did_you_mean(given.lower(), DEVICES)}; "
        f"write e.g. '24 cores' or one of: {', '.join(DEVICES)}"
    )
