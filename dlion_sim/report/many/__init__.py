"""The page of many runs: sweeps, or any runs to be compared."""
