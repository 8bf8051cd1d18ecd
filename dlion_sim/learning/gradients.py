"""Gradients of replicas, evaluated together as late as possible."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from dlion_sim.learning.datasets import Dataset
from dlion_sim.learning.flat import Replica
from dlion_sim.learning.pool import ModelPool


@dataclass(frozen=True, eq=False)
class Ticket:
    """A gradient that was asked for: of `replica` as it was in `version`, over the training samples `indices`."""

    replica: Replica
    version: int
    indices: npt.NDArray[np.int64]


class GradientExecutor:
    """Computes the mean cross-entropy over a batch and its gradient, for any number of replicas of `model`.

    `submit` only notes what is wanted. The first `result` that is not there yet evaluates everything submitted so far,
    in one go. Losses and gradients do not depend, to the bit, on what was evaluated together or by how many `threads`
    (default: as many as torch uses).
    """

    def __init__(self, model: nn.Module, dataset: Dataset, device: torch.device, *, threads: int | None = None) -> None:
        self._dataset = dataset.to(device)
        self._pool = ModelPool(model, device, threads)
        self._pending: dict[Ticket, None] = {}
        self._results: dict[Ticket, tuple[float, Tensor]] = {}

    def submit(self, replica: Replica, indices: npt.NDArray[np.int64]) -> Ticket:
        """Ask for the gradient of `replica` over the training samples `indices` [B].

        The replica must not be written before the gradient is evaluated.
        """
        ticket = Ticket(replica, replica.version, indices)
        self._pending[ticket] = None
        return ticket

    def result(self, ticket: Ticket) -> tuple[float, Tensor]:
        """The loss and the gradient [P], which is the caller's to keep and write. To be asked once a ticket.

        Raises RuntimeError if a replica was written between `submit` and its evaluation, KeyError for a ticket that was
        discarded or already read.
        """
        if ticket in self._pending:
            self._evaluate()
        return self._results.pop(ticket)

    def discard(self, ticket: Ticket) -> None:
        """Forget a ticket whose result nobody will read."""
        self._pending.pop(ticket, None)
        self._results.pop(ticket, None)

    def close(self) -> None:
        """End the threads."""
        self._pool.close()

    def _evaluate(self) -> None:
        tickets = list(self._pending)
        for ticket in tickets:
            if ticket.replica.version != ticket.version:
                raise RuntimeError(
                    f"a replica was written before its gradient was evaluated: submitted at version {ticket.version}, "
                    f"now {ticket.replica.version}"
                )
        losses, gradients = zip(*self._pool.map(self._gradient, tickets), strict=True)
        # All losses leave the device at once: reading one waits for what was queued before it.
        self._results |= zip(tickets, zip(torch.stack(losses).tolist(), gradients, strict=True), strict=True)
        self._pending.clear()

    def _gradient(self, model: nn.Module, ticket: Ticket) -> tuple[Tensor, Tensor]:
        dataset, replica = self._dataset, ticket.replica
        indices = torch.from_numpy(ticket.indices).to(dataset.train_labels.device)
        # The flat vector is the leaf and the variables are its parts, so that autograd returns one flat gradient.
        flat = replica.parameters.detach().requires_grad_()
        images = dataset.normalise(dataset.train_images[indices])
        logits = functional_call(model, replica.layout.named_views(flat), images)
        loss = cross_entropy(logits, dataset.train_labels[indices])
        (gradient,) = torch.autograd.grad(loss, flat)
        return loss.detach(), gradient
