"""Whose fault it is when something happens that must not: the peer's, or that of the driver around a participant."""

from __future__ import annotations


class MalformedMessageError(ValueError):
    """The peer sent bytes that are no valid message of this run, or one that makes no sense from it."""


class LocalProtocolError(RuntimeError):
    """The driver told a participant of what cannot happen to it as it is."""
