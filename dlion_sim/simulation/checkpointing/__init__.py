"""A simulation saved to a file, and resumed to the bit."""
