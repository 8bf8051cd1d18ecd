"""Instances of Amazon EC2 of 2020 as micro-clouds of GPUs: what joins them inside, and two instances with each other.

GPUs, prices and networks are those of the catalog `aws-2020-p2p3`. Everything below is recalled, and nowhere measured.
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
"""Of the root that all GPUs share, in each direction: PCIe 3.0 x16 less what its packets take."""
NVLINK_GBPS = 200.0
"""Of an NVLink of a V100, in each direction."""
PCIE_HOP, NVLINK_HOP = 10e-6, 4e-6
"""From GPU to GPU (s): an all-reduce of a few bytes takes some 300 us among sixteen over PCIe, 60 us among eight."""
NETWORK_RTT = 200e-6
"""Between instances, over TCP (s)."""
BATCH, BATCH_OF_BERT = 32, 4
"""Of a GPU, in samples, as in Stash's scripts."""
IMAGES, QUESTIONS = 1_281_166, 87_599
"""An epoch of ImageNet, and of SQuAD 1.1."""
NVLINKS = {"p3.8xlarge": 4, "p3.16xlarge": 6}
"""Of a GPU, to others of the instance: in a quarter of the cube mesh two lead out of it."""


@dataclass(frozen=True)
class Placement:
    """Instances that train together."""

    instance: str
    count: int = 1

    @property
    def name(self) -> str:
        """As tables have it."""
        return self.instance if self.count == 1 else f"{self.count} x {self.instance}"

    @property
    def gpus(self) -> int:
        """Of all of them."""
        return self.count * int(_told(self.instance).gpus)

    @property
    def price(self) -> float:
        """Of an hour of all of them."""
        return self.count * _told(self.instance).price


def _told(instance: str) -> Instance:
    return Catalog.read(CATALOG, Path()).instance(instance, None, spot=False)


ALONE = {"K80": Placement("p2.xlarge"), "V100": Placement("p3.2xlarge")}
"""Instances of one GPU, which wait for nothing."""
ONE = (Placement("p2.8xlarge"), Placement("p2.16xlarge"), Placement("p3.8xlarge"), Placement("p3.16xlarge"))
TWO = {Placement("p2.8xlarge", 2): Placement("p2.16xlarge"), Placement("p3.8xlarge", 2): Placement("p3.16xlarge")}
"""Two instances, and the one with as many GPUs at the same price."""


def gpu(placement: Placement) -> str:
    """What kind of GPU it has."""
    return str(_told(placement.instance).gpu)


def batch(network: str) -> int:
    """Samples of a GPU in an iteration."""
    return BATCH_OF_BERT if network == "bert_large" else BATCH


def samples(network: str) -> int:
    """In an epoch."""
    return QUESTIONS if network == "bert_large" else IMAGES


def scenario(network: str, placement: Placement) -> Scenario:
    """A ring of all GPUs, which passes around each variable by itself."""
    told = _told(placement.instance)
    links = NVLINKS.get(placement.instance)
    hop = NVLINK_HOP if links else PCIE_HOP
    machine = {
        "count": int(told.gpus),
        "compute": GPUS[str(told.gpu)],
        "nic": f"{links * NVLINK_GBPS if links else PCIE_GBPS} Gbps",
    }
    lan: dict[str, Any] = {"rtt": f"{2e6 * hop} us"} | ({} if links else {"bandwidth": f"{PCIE_GBPS} Gbps"})
    clouds = [{"name": f"node{number}", "workers": [machine], "lan": lan} for number in range(placement.count)]
    cluster: dict[str, Any] = {"clouds": clouds}
    if placement.count > 1:
        assert told.network_bps is not None
        cluster["wan"] = {"bandwidth": f"{told.network_bps / 1e9} Gbps", "rtt": f"{1e6 * NETWORK_RTT} us"}
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
