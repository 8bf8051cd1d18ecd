"""The model that workers train, and what it costs, as a scenario says."""

from __future__ import annotations

from pathlib import Path

from torch import nn

from dlion_sim.learning import Dataset, Layout, model_for, training_flops
from dlion_sim.learning.lora import adapted, load_base
from dlion_sim.learning.randomness import seeded
from dlion_sim.scenario import CORE_FLOPS, Workload, named
from dlion_sim.streams import stream_seed


def model_of(workload: Workload, dataset: Dataset, seed: int) -> tuple[nn.Module, Workload]:
    """The model with everybody's initial parameters, and the workload with what only the model tells of it.

    Raises InputError where the model or what is to be trained of it does not fit.
    """
    name, parameters = named(workload.model)
    model = model_for(name, dataset, stream_seed(seed, "model"), **parameters)
    lora = workload.lora
    if lora is not None:
        if lora.base is not None:
            digest = load_base(model, Path(lora.base), lora.base_sha256)
            lora = lora.model_copy(update={"base_sha256": digest})
        with seeded(stream_seed(seed, "lora")):
            adapted(model, lora.rank, lora.alpha, lora.targets)
    return model, _costed(workload.model_copy(update={"lora": lora}), model, dataset)


def _costed(workload: Workload, model: nn.Module, dataset: Dataset) -> Workload:
    """The workload with all that its cost is made of."""
    cost_as, compute_time = workload.cost_as, workload.compute_time
    if cost_as is not None and cost_as.flops is None:
        flops = training_flops(model, dataset.sample) * cost_as.parameters / Layout.of(model).size
        cost_as = cost_as.model_copy(update={"flops": flops})
    if compute_time.beta is None:
        larger = cost_as.flops if cost_as else None
        beta = (larger or training_flops(model, dataset.sample)) / CORE_FLOPS
        compute_time = compute_time.model_copy(update={"beta": beta})
    return workload.model_copy(update={"compute_time": compute_time, "cost_as": cost_as})
