"""Instances of Amazon EC2 in 2020 as micro-clouds of GPUs: their connections inside, and between two instances.

GPUs, prices and networks are those of the catalog `aws-2020-p2p3`. All values below are recalled, not measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.architectures import NETWORKS
from dlion_sim.scenario import Scenario, from_data
from dlion_sim.scenario.catalog import Catalog, Instance
from dlion_sim.scenario.devices import GPUS

CATALOG = "aws-2020-p2p3"
PCIE_GBPS = 96.0
"""The shared root of all GPUs, in each direction: PCIe 3.0 x16 without its packets' overhead."""
NVLINK_GBPS = 200.0
"""An NVLink of a V100, in each direction."""
PCIE_HOP, NVLINK_HOP = 10e-6, 4e-6
"""From GPU to GPU (s): an all-reduce of a few bytes takes some 300 us among sixteen over PCIe, 60 us among eight."""
NETWORK_RTT = 200e-6
"""Between instances, over TCP (s)."""
BATCH, BATCH_OF_BERT = 32, 4
"""Samples per GPU, as in Stash's scripts."""
IMAGES, QUESTIONS = 1_281_166, 87_599
"""Samples of an epoch of ImageNet, and of SQuAD 1.1."""
NVLINKS = {"p3.8xlarge": 4, "p3.16xlarge": 6}
"""NVLinks of a GPU to others of the instance; in a quarter of the cube mesh, two lead out of it."""


@dataclass(frozen=True)
class Placement:
    """Instances that train together."""

    instance: str
    count: int = 1

    @property
    def name(self) -> str:
        """The name in tables."""
        return self.instance if self.count == 1 else f"{self.count} x {self.instance}"

    @property
    def gpus(self) -> int:
        """The number of GPUs."""
        return self.count * int(_instance(self.instance).gpus)

    @property
    def price(self) -> float:
        """The price per hour."""
        return self.count * _instance(self.instance).price


def _instance(instance: str) -> Instance:
    return Catalog.read(CATALOG, Path()).instance(instance, None, spot=False)


ALONE = {"K80": Placement("p2.xlarge"), "V100": Placement("p3.2xlarge")}
"""Instances of one GPU, without communication."""
ONE = (Placement("p2.8xlarge"), Placement("p2.16xlarge"), Placement("p3.8xlarge"), Placement("p3.16xlarge"))
TWO = {Placement("p2.8xlarge", 2): Placement("p2.16xlarge"), Placement("p3.8xlarge", 2): Placement("p3.16xlarge")}
"""Two instances, and one with as many GPUs at the same price."""


def gpu(placement: Placement) -> str:
    """The kind of its GPUs."""
    return str(_instance(placement.instance).gpu)


def batch(network: str) -> int:
    """Samples per GPU in an iteration."""
    return BATCH_OF_BERT if network == "bert_large" else BATCH


def samples(network: str) -> int:
    """Samples of an epoch."""
    return QUESTIONS if network == "bert_large" else IMAGES


def scenario(network: str, placement: Placement) -> Scenario:
    """A ring of all GPUs, which reduces each variable separately."""
    machine_type = _instance(placement.instance)
    links = NVLINKS.get(placement.instance)
    hop = NVLINK_HOP if links else PCIE_HOP
    machine = {
        "count": int(machine_type.gpus),
        "compute": GPUS[str(machine_type.gpu)],
        "nic": f"{links * NVLINK_GBPS if links else PCIE_GBPS} Gbps",
    }
    lan: dict[str, Any] = {"rtt": f"{2e6 * hop} us"} | ({} if links else {"bandwidth": f"{PCIE_GBPS} Gbps"})
    clouds = [{"name": f"node{number}", "workers": [machine], "lan": lan} for number in range(placement.count)]
    cluster: dict[str, Any] = {"clouds": clouds}
    if placement.count > 1:
        assert machine_type.network_bps is not None
        cluster["wan"] = {"bandwidth": f"{machine_type.network_bps / 1e9} Gbps", "rtt": f"{1e6 * NETWORK_RTT} us"}
    real = NETWORKS[network]
    return from_data(
        {
            "name": f"{network}-{placement.name.replace(' ', '')}",
            "iterations": 1,
            "record_transfers": False,
            "workload": {
                "dataset": "digits",
                "model": f"benchmarks.architectures:{network}",
                "batch_size": batch(network),
                "cost_as": {"parameters": real.parameters, "flops": f"{real.training_flops} FLOP"},
            },
            "cluster": cluster,
            "system": {"name": "ring_allreduce", "exchange": {"kind": "ring_allreduce", "bucket_bytes": "1 B"}},
        }
    )
