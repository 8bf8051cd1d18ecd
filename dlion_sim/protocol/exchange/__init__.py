"""Exchange: what of a gradient goes to whom."""

from dlion_sim.protocol.exchange.full import FullExchange
from dlion_sim.protocol.exchange.max_n import MaxNExchange

__all__ = ["FullExchange", "MaxNExchange"]
