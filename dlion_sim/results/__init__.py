"""The run folder: writing and reading."""
