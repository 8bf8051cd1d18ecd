"""Exchange: which entries of a gradient are sent to which peers. Each file registers its kinds."""
