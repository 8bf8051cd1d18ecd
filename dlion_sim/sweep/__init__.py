"""Sweeps: scenarios that differ along axes, run in parallel, and resumed from their folders alone."""

from dlion_sim.sweep import metric, space
from dlion_sim.sweep.checking import check, check_data, check_system, equal_points
from dlion_sim.sweep.estimating import Estimate, estimate, run_seconds
from dlion_sim.sweep.job import Ended, Executor, Job, Progressed, Started, run_all
from dlion_sim.sweep.loading import SearchSpec, load_search, load_sweep
from dlion_sim.sweep.lock import locked
from dlion_sim.sweep.points import Base, Point
from dlion_sim.sweep.processes import LocalProcesses, cores
from dlion_sim.sweep.search import Search
from dlion_sim.sweep.state import Found, State, survey
