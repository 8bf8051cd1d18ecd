"""Runs as a page to look at: one HTML file that opens from disk and asks no network."""
