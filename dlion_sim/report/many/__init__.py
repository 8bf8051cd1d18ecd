"""The page of many runs: a sweep, or any runs to compare."""
