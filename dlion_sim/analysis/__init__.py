"""Comparisons between run folders."""

from dlion_sim.analysis.comparison import comparison, duration_until, final, time_to_target
from dlion_sim.analysis.cost import at_prices_of
from dlion_sim.analysis.fidelity import Fidelity, compare
from dlion_sim.analysis.groups import (
    Group,
    group_runs,
    in_order,
    label_text,
    labelled,
    metric_name,
    metric_of,
    varying,
    with_own_optimizers,
)
from dlion_sim.analysis.targets import Target, chosen_target, common_target
