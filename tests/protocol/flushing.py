"""An exchange's residuals, from outside: what peers still get once it sends everything."""

import torch

from dlion_sim.protocol.messages import Contribution
from dlion_sim.protocol.updates import LocalGradient, Update

EVERYTHING = {"density": 1.0, "threshold": 0.0, "n": 100.0}
"""Parameters of any exchange with which nothing is too small to be sent."""


def let_go(exchange):
    """Send everything from now on."""
    fields = type(exchange.parameters).model_fields
    known = {name: value for name, value in EVERYTHING.items() if name in fields}
    exchange.parameters = exchange.parameters.model_copy(update=known)


def flushed(exchange):
    """By peer, what it still gets [P] while gradients are zero."""
    let_go(exchange)
    size = exchange.setup.replica.layout.size
    left = {peer: torch.zeros(size) for peer in exchange.setup.peers}
    for iteration in range(size):  # a partition may be a single entry
        own = LocalGradient(iteration, 32, torch.zeros(size), seconds=1.0, factor=1 / 3, time=0.0)
        for peer, message in exchange.outgoing(own).messages:
            if isinstance(message.body, Contribution):
                Update.of(message).add_to(left[peer], 1.0)
    return left
