"""Knowledge transfer: which workers' weights are merged, and when. Each file registers its kinds."""
