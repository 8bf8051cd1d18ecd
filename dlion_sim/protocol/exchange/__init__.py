"""Exchange: what of a gradient goes to whom."""

from dlion_sim.protocol.exchange.compressed import DeepGradientCompression, RandomKExchange, TopKExchange
from dlion_sim.protocol.exchange.full import FullExchange
from dlion_sim.protocol.exchange.max_n import MaxNExchange
from dlion_sim.protocol.exchange.parameters import ParameterExchange
from dlion_sim.protocol.exchange.partitions import PartitionedExchange
from dlion_sim.protocol.exchange.periodic import DiLoCoExchange, LocalSgdExchange
from dlion_sim.protocol.exchange.significance import SignificanceExchange

__all__ = [
    "DeepGradientCompression",
    "DiLoCoExchange",
    "FullExchange",
    "LocalSgdExchange",
    "MaxNExchange",
    "ParameterExchange",
    "PartitionedExchange",
    "RandomKExchange",
    "SignificanceExchange",
    "TopKExchange",
]
