"""What people run by hand for Mininet: looking into a scenario's network, and validating the simulator by it."""
