"""Speed and scale: `python -m benchmarks.NAME` prints ratios against a reference that took turns with it."""
