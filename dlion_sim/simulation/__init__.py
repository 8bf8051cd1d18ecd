"""The virtual-time driver, compute devices, network and dynamics."""
