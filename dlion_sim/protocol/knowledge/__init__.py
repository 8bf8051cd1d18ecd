"""Knowledge transfer: whose weights to merge, and when. Each file registers what is in it."""
