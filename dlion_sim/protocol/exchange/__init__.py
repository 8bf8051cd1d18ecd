"""Exchange: what of a gradient goes to whom. Each file registers what is in it."""
