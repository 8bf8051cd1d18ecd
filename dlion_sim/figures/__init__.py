"""Figures of runs."""

from dlion_sim.figures.accuracy import plot_accuracy
from dlion_sim.figures.availability import plot_availability
from dlion_sim.figures.bars import plot_accuracy_at, plot_time_to_accuracy
from dlion_sim.figures.batch_sizes import plot_batch_sizes
from dlion_sim.figures.completion import plot_completion_times
from dlion_sim.figures.curves import plot_accuracies, plot_deviation, plot_online
from dlion_sim.figures.fidelity import plot_fidelity
from dlion_sim.figures.heatmap import plot_heatmap
from dlion_sim.figures.links import plot_links
from dlion_sim.figures.pareto import plot_pareto
from dlion_sim.figures.queues import plot_queues
from dlion_sim.figures.stalls import plot_stalls
from dlion_sim.figures.timeline import plot_timeline
from dlion_sim.figures.trade_off import plot_trade_off
