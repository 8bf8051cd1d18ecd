"""Published tables of times, bandwidths and averages, repeated: formulas, and simulations without learning."""

from collections.abc import Mapping

from dlion_sim.studies.reproduction.tables import covenant, goodput, halos, moshpit, utilization
from dlion_sim.studies.reproduction.tables.table import PublishedTable

TABLES: Mapping[str, PublishedTable] = {
    "utilization": utilization.TABLE,
    "halos": halos.TABLE,
    "moshpit": moshpit.TABLE,
    "goodput": goodput.TABLE,
    "covenant": covenant.TABLE,
}
"""All by name."""
