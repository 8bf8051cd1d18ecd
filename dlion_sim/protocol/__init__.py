"""What a worker does, sans-I/O: events in, actions out; the four choices that make a system."""
