"""Knowledge transfer: whose weights to merge, and when."""

from dlion_sim.protocol.knowledge.direct import DirectKnowledgeTransfer
from dlion_sim.protocol.knowledge.none import NoTransfer
from dlion_sim.protocol.knowledge.weight_exchange import WeightExchange

__all__ = ["DirectKnowledgeTransfer", "NoTransfer", "WeightExchange"]
