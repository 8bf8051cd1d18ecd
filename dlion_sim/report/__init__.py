"""HTML pages of runs: a self-contained file, or served while the runs are in progress."""

from dlion_sim.report.many.page import Collected, many_page
from dlion_sim.report.page import check_free, plotly_script, write_page
from dlion_sim.report.run_page import run_page
from dlion_sim.report.watching import PageServer, Watched
