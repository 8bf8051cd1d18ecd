"""Devices by name, and as many cores as compute as fast. All of these speeds are derived; none was measured here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

CORE_FLOPS = 1.9e9
"""Effective FLOP/s of one core, from which a model's cost is charged where the scenario states none.

Derived from TF.AKO's published runs: a 125 MFLOP training step, plus one more forward pass, on batches of 104 took
about 0.38 s on a server with 24 logical cores.
"""

EFFICIENCY = 0.3
"""The part of its peak at which a GPU trains: an assumption, near the 27 % that p2.xlarge stands for."""


@dataclass(frozen=True)
class Device:
    """A machine's processor; a computation on it takes as long as on so many cores."""

    cores: float
    precision: str
    source: str
    """Whose figure it is, and of what."""
    peak_flops: float | None = None
    """FLOP/s as the vendor states them, for dense matrices; None: not what the cores are derived from."""

    @property
    def sustained_flops(self) -> float:
        """FLOP/s that a model's training is charged at."""
        return self.cores * CORE_FLOPS

    @property
    def efficiency(self) -> float | None:
        """The part of the peak that is sustained."""
        return self.sustained_flops / self.peak_flops if self.peak_flops else None


def _gpu(tflops: float, precision: str, source: str) -> Device:
    peak = tflops * 1e12
    return Device(round(EFFICIENCY * peak / CORE_FLOPS), precision, f"NVIDIA, {source}", peak)


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
}
"""What a scenario's `compute` may name."""

GPUS: Mapping[str, str] = {
    "K80": "p2.xlarge",
    "V100": "v100",
    "A100": "a100",
    "A100-80GB": "a100",
    "H100": "h100",
}
"""The device that one GPU of that name in a catalog of instances is; a K80 there is half a board."""
