"""`python -m dlion_sim` is `dlion`."""

from dlion_sim.cli.main import main

main()
