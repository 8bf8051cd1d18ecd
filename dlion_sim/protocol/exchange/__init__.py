"""Exchange: what of a gradient goes to whom."""

from dlion_sim.protocol.exchange.compressed import DeepGradientCompression, RandomKExchange, TopKExchange
from dlion_sim.protocol.exchange.full import FullExchange
from dlion_sim.protocol.exchange.max_n import MaxNExchange
from dlion_sim.protocol.exchange.pairwise import PairwiseExchange
from dlion_sim.protocol.exchange.parameter_server import ParameterServerExchange
from dlion_sim.protocol.exchange.parameters import ParameterExchange
from dlion_sim.protocol.exchange.partitions import PartitionedExchange
from dlion_sim.protocol.exchange.periodic import DiLoCoExchange, LocalSgdExchange
from dlion_sim.protocol.exchange.ring import RingAllReduceExchange
from dlion_sim.protocol.exchange.significance import SignificanceExchange

__all__ = [
    "DeepGradientCompression",
    "DiLoCoExchange",
    "FullExchange",
    "LocalSgdExchange",
    "MaxNExchange",
    "PairwiseExchange",
    "ParameterExchange",
    "ParameterServerExchange",
    "PartitionedExchange",
    "RandomKExchange",
    "RingAllReduceExchange",
    "SignificanceExchange",
    "TopKExchange",
]
