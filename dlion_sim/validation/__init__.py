"""A scenario run both ways, simulated and emulated, and how far the two are apart."""

from dlion_sim.validation.validate import DOCUMENT, EMULATED, SIMULATED, Validation, held_against, validate

__all__ = ["DOCUMENT", "EMULATED", "SIMULATED", "Validation", "held_against", "validate"]
