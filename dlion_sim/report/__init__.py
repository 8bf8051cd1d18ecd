"""Runs as a page to look at: one HTML file that opens from disk and asks no network."""

from dlion_sim.report.run_page import run_page
from dlion_sim.report.writing import check_free, write_page

__all__ = ["check_free", "run_page", "write_page"]
