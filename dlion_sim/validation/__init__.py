"""A scenario run both ways, simulated and emulated, and how far the two are apart."""

from dlion_sim.validation.validate import DOCUMENT, Validation, held_against, validate

__all__ = ["DOCUMENT", "Validation", "held_against", "validate"]
