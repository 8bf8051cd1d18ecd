"""Sizes: for measurements, or for a rehearsal."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from torch import nn

from dlion_sim.learning import Dataset, load, model_for


@dataclass(frozen=True)
class Scale:
    """Sizes of measurements, and the device."""

    device: Literal["cuda", "cpu"]
    images: str
    """The data set of images, as in a scenario."""
    models: dict[str, dict[str, Any]]
    """Models with their parameters."""
    runs: tuple[str, ...]
    """The models of runs that are repeated."""
    workers: tuple[int, ...]
    batch: int
    seconds: float
    """Duration of a measurement, in each of the `turns`."""
    turns: int
    window: float
    """Seconds of a run that are profiled."""
    iterations: int
    """Iterations of whole runs."""
    nodes: int
    live: str
    """The nodes' training time, by the clock."""
    context: dict[str, Any] = field(default_factory=dict)
    """Parameters of the data set of texts."""
    overrides: tuple[str, ...] = ()
    """Overrides of the paper's scenario."""

    def problem(self, model: str, seed: int = 0) -> tuple[nn.Module, Dataset]:
        """A model with the initial parameters of that seed, and its data set."""
        from benchmarks.gpu_accept import data

        if model == "gpt":
            dataset = load("shakespeare", **self.context)
        elif model == "mlp":
            dataset = load("digits")
        else:
            dataset = getattr(data, self.images.partition(":")[2])()
        return model_for(model, dataset, seed, **self.models[model]), dataset

    def scenario(self, model: str, workers: int, **keys: Any) -> dict[str, Any]:
        """The data of a scenario of that model with DLion."""
        dataset = {"mlp": "digits", "gpt": {"name": "shakespeare", **self.context}}.get(model, self.images)
        machine = {"compute": "24 cores", "nic": "1 Gbps"}
        return {
            "name": f"gpu-{model}",
            "iterations": self.iterations,
            "workload": {
                "dataset": dataset,
                "model": {"name": model, **self.models[model]} if self.models[model] else model,
                "batch_size": self.batch,
                "evaluate_every": "5 s",
                "evaluation_samples": 50,
                "compute_time": {"alpha": "10 ms", "beta": "40 ms"},
            },
            "cluster": {
                "clouds": [
                    {"name": "east", "workers": [{"count": workers - workers // 2, **machine}]},
                    {"name": "west", "workers": [{"count": workers // 2, **machine}]},
                ],
                "wan": {"bandwidth": "100 Mbps", "rtt": "30 ms"},
            },
            "system": "dlion",
            **keys,
        }


ON_GPU = Scale(
    device="cuda",
    images="benchmarks.gpu_accept.data:images",
    models={"mlp": {}, "cipher": {}, "resnet18": {}, "gpt": {}},
    runs=("mlp", "cipher", "gpt"),
    workers=(64, 16, 4),
    batch=32,
    seconds=0.4,
    turns=3,
    window=1.5,
    iterations=20,
    nodes=8,
    live="12 s",
)
REHEARSAL = Scale(
    device="cpu",
    images="benchmarks.gpu_accept.data:few_images",
    models={"mlp": {}, "cipher": {}, "gpt": {"layers": 1, "heads": 2, "width": 16}},
    runs=("mlp",),
    workers=(2,),
    batch=2,
    seconds=0.0,
    turns=1,
    window=0.2,
    iterations=2,
    nodes=2,
    live="1 s",
    context={"context": 16},
    overrides=("workload.dataset=benchmarks.gpu_accept.data:few_images", "duration=100 ms"),
)
