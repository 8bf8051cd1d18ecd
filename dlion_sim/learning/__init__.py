"""Models, datasets, partitions, flat buffers, gradients and evaluation. No time, no workers."""
