"""What workers waited for: attribution of time, causes of waits, and what-if replay."""
