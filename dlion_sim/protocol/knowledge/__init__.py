"""Knowledge transfer: whose weights to merge, and when."""
