"""Exchange: what of a gradient goes to whom."""
