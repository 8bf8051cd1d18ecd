"""Speed and scale: `python -m benchmarks.NAME` prints ratios against a reference that alternates with it."""
