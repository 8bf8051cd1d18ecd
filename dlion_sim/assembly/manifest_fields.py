"""The fields of the manifest that are common to simulated, live and emulated runs."""

from __future__ import annotations

from typing import Any

import torch

from dlion_sim import own_code
from dlion_sim.assembly.setting import Setting
from dlion_sim.assembly.shards import classes_of, owners_of
from dlion_sim.learning import class_histogram
from dlion_sim.learning.accelerator import name_of
from dlion_sim.learning.arithmetic import arithmetic
from dlion_sim.learning.tasks import Classification
from dlion_sim.scenario import Dlcp, tariff
from dlion_sim.scenario.system import ServerHost


def manifest_fields(setting: Setting) -> dict[str, Any]:
    """The fields by key."""
    labels = classes_of(setting.dataset)
    classes = task.classes if isinstance(task := setting.dataset.task, Classification) else 1
    clouds = [worker.cloud for worker in setting.scenario.cluster.workers]
    cost_as = setting.scenario.workload.cost_as
    held_out = None if setting.validation is None else class_histogram(labels, [setting.validation], classes)[0]
    return {
        "scenario": setting.scenario.name,
        "system": setting.scenario.system.name,
        "replaced": dict(setting.system.replaced),
        "transport": setting.scenario.transport.kind,
        "seed": setting.scenario.seed,
        "device": str(setting.device),
        "threads": torch.get_num_threads(),
        "arithmetic": arithmetic(setting.device),
        "device_name": name_of(setting.device),
        "kernels": setting.kernels,
        "workers": [worker.name for worker in setting.scenario.cluster.workers],
        "servers": [f"server {number}" for number in range(setting.workers, setting.participants)],
        "clouds": [*clouds, *(host.cloud if isinstance(host, ServerHost) else clouds[host] for host in setting.hosts)],
        "parameters": setting.layout.size,
        **({"variables": list(setting.layout.names)} if isinstance(setting.scenario.transport, Dlcp) else {}),
        "core_seconds_per_sample": setting.core_seconds_per_sample,
        **({"cost_as": cost_as.model_dump(mode="json")} if cost_as else {}),
        **({"tariff": prices} if (prices := tariff(setting.scenario)) else {}),
        "partition": class_histogram(labels, setting.shards, classes),
        **({"owners": owners} if (owners := owners_of(setting.scenario, setting.dataset, setting.shards)) else {}),
        "training_samples": setting.training_samples,
        **({"drift": setting.stream.changes} if setting.stream else {}),
        **({} if (down := setting.outages.of_paths) is None else {"paths_down": down}),
        "metric": setting.dataset.task.metric.fields,
        "own_code": {
            path: {"name": name, "source": own_code.digest(own_code.module_of(name))}
            for path, name in setting.scenario.references.items()
        },
        **({} if setting.evaluated_server is None else {"evaluated_server": setting.evaluated_server}),
        "evaluated_on": setting.scenario.workload.evaluated_on,
        "evaluation_samples": setting.evaluation_samples,
        "validation": held_out,
    }
