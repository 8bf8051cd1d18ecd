"""Stalls of workers: attribution of time, causes of waits, differencing and what-if replay."""
