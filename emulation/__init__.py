"""What people run by hand for Mininet: drawing scenarios, and holding the simulator against the emulator on them."""
