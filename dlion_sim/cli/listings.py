"""Lists of systems, models, data sets, devices, catalogs and scenarios."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.text import Text

from dlion_sim.cli.fitting import Fitted
from dlion_sim.scenario import CATALOGS, CORE_FLOPS, DEVICES, Catalog, ComputeTime, load, named, shipped
from dlion_sim.scenario.loading import read_data
from dlion_sim.scenario.shipped import FOLDER, name_of, shipped_sweeps

Listing = Iterator[Fitted | Text]
"""Tables, with notes."""


def devices() -> Listing:
    """The devices for a scenario's `compute`."""
    headings = ["device", "cores", "TFLOP/s sustained", "precision", "peak TFLOP/s", "efficiency", "ms a GFLOP"]
    rows = []
    for name, device in DEVICES.items():
        peak = "" if device.peak_flops is None else f"{device.peak_flops / 1e12:.4g}"
        efficiency = "" if device.efficiency is None else f"{device.efficiency:.0%}"
        sustained = f"{device.sustained_flops / 1e12:.3g}"
        takes = f"{1e12 / device.sustained_flops:.3g}"
        rows.append([name, f"{device.cores:g}", sustained, device.precision, peak, efficiency, takes])
    yield Fitted(headings, rows, title="Devices", numbers=headings[1:3] + headings[4:])
    yield Fitted(["device", "source"], [[name, device.source] for name, device in DEVICES.items()])
    yield Text(
        f"A batch of b samples takes T(b) = alpha + beta * b / cores: alpha is {1000 * ComputeTime().alpha:g} ms on "
        "every device and beta the model's cost on one core (`dlion models`), unless workload.compute_time says "
        "otherwise."
    )
    yield Text(
        "Derived, not measured: cores are the sustained rate over the "
        f"{CORE_FLOPS / 1e9:g} GFLOP/s of one, and that rate is the vendor's stated peak for dense matrices, or what "
        "cores and clock come to where the source says so, times an assumed efficiency. Small models and batches reach "
        "less; what you have measured can be stated instead. A bare core is slow: a Raspberry Pi 5 counts as eight."
    )


def catalogs() -> Listing:
    """The catalogs of instances for `prices.catalog`."""
    headings = ["instance", "region", "GPUs", "vCPUs", "NIC (Gbps)", "price", "spot", "recalled"]
    for name, shipped_catalog in CATALOGS.items():
        rows = []
        for _, row in Catalog.read(name, Path()).rows.iterrows():
            gpus = f"{row['AcceleratorCount']:g} {row['AcceleratorName']}" if row["AcceleratorName"] else ""
            numbers = [row[column] for column in ("vCPUs", "NetworkGbps", "Price", "SpotPrice")]
            cells = ["" if number != number else f"{number:g}" for number in numbers]
            rows.append([row["InstanceType"], row["Region"], gpus, *cells, row["Recalled"]])
        yield Fitted(headings, rows, title=f"{name}, {shipped_catalog.date}", numbers=headings[3:7])
        yield Text(f"{shipped_catalog.source}\n")
    yield Text(
        "Prices are in dollars an hour. A scenario may name any other CSV file with the columns of SkyPilot's vms.csv; "
        "the further columns NetworkGbps, Watts and CarbonIntensity (g of CO2 per kWh) are optional."
    )


def datasets() -> Listing:
    """The data sets for `workload.dataset`."""
    from dlion_sim.learning.datasets import PUBLISHED

    headings = ["data set", "samples", "metric", "outputs", "training", "test", "from"]
    rows = [
        [
            name,
            f"{each.input_kind} {_shape(each.input_shape)}",
            each.task.metric.name,
            f"{each.task.outputs}",
            f"{each.training:,}",
            f"{each.test:,}",
            each.origin,
        ]
        for name, each in PUBLISHED.items()
    ]
    yield Fitted(headings, rows, title="Data sets", numbers=headings[3:6])
    yield Text(
        "Data sets that are not embedded are downloaded at first use, and verified; or DLION_DATA names their folder."
    )


def models() -> Listing:
    """The models for `workload.model`, for each shape of samples."""
    import torch

    from dlion_sim.learning import build, training_flops
    from dlion_sim.learning.datasets import PUBLISHED, InputKind
    from dlion_sim.learning.models import MODELS

    shapes: dict[tuple[InputKind, tuple[int, ...], int], list[str]] = {}
    for dataset, each in PUBLISHED.items():
        shapes.setdefault((each.input_kind, each.input_shape, each.task.outputs), []).append(dataset)
    headings = ["model", "data sets", "parameters", "gradient (MB)", "MFLOP a sample", "beta (ms)"]
    rows = []
    for name, architecture in MODELS.items():
        for (kind, shape, outputs), names in shapes.items():
            if kind not in architecture.takes:
                continue
            model = build(name, shape, outputs, seed=0)
            parameters = sum(each.numel() for each in model.parameters())
            dtype = torch.int64 if kind == "tokens" else torch.float32
            flops = training_flops(model, torch.empty(1, *shape, dtype=dtype))
            size, beta = f"{4 * parameters / 1e6:.3g}", f"{1000 * flops / CORE_FLOPS:.3g}"
            rows.append([name, ", ".join(names), f"{parameters:,}", size, f"{flops / 1e6:.3g}", beta])
    what = {name: " ".join((made.make.__doc__ or "").split("\n\n")[0].split()) for name, made in MODELS.items()}
    yield Fitted(headings, rows, title="Models", numbers=headings[2:])
    yield Fitted(["model", "layers"], list(what.items()))
    yield Text(
        "A gradient's size is that of its float32 entries. FLOPs are of forward and backward pass, counted (a "
        f"multiply-add is two); beta is what they take on one core, at {CORE_FLOPS / 1e9:g} GFLOP/s."
    )


def scenarios() -> Listing:
    """The shipped scenarios and sweeps."""
    rows = []
    for file in shipped():
        scenario = load(file)
        workload = f"{named(scenario.workload.model)[0]} on {named(scenario.workload.dataset)[0]}"
        rows.append([name_of(file), str(len(scenario.cluster.workers)), workload, scenario.description])
    yield Fitted(["name", "workers", "workload", "description"], rows, title="Scenarios", numbers=["workers"])
    sweeps: dict[str, Any] = {name_of(file): read_data(file) for file in shipped_sweeps()}
    rows = [[name, sweep["description"]] for name, sweep in sweeps.items()]
    yield Fitted(["name", "description"], rows, title="Sweeps")
    yield Text(f"They are files in {FOLDER}, to copy and change; `dlion schema` prints the keys of a scenario.")
    yield Text("Sweeps that repeat papers' experiments, reproduction/E6 and so on, are listed by `dlion reproduce`.")


def systems() -> Listing:
    """The systems with their choices, and each choice with its parameters."""
    from dlion_sim.protocol.registry import CATEGORIES, REGISTRY
    from dlion_sim.protocol.systems import SYSTEMS

    rows = [
        [name, *map(_written, system.choices.values()), system.topology.kind, system.source]
        for name, system in sorted(SYSTEMS.items())
    ]
    yield Fitted(["system", *CATEGORIES, "topology", "from"], rows, title="Systems")
    for category, kinds in REGISTRY.items():
        rows, bold = [], []
        for kind, choice in sorted(kinds.items()):
            bold.append(len(rows))
            rows.append([kind, "", "", " ".join((choice.__doc__ or "").split("\n\n")[0].split())])
            for name, field in choice.Parameters.model_fields.items():
                default = "" if field.default is None else str(field.default)
                rows.append(["", name, default, field.description or ""])
        yield Fitted(["kind", "parameter", "default", "meaning"], rows, title=category, bold=bold)
    yield Text(
        "A choice may also be a class of your own, as module:Class, of a file in the current folder; see "
        "the docstrings of dlion_sim.protocol.choices."
    )


def _written(choice: Mapping[str, Any]) -> str:
    """A kind with the parameters that a system sets."""
    settings = ", ".join(f"{key} {value}" for key, value in choice.items() if key != "kind")
    return f"{choice['kind']} ({settings})" if settings else str(choice["kind"])


def _shape(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))
