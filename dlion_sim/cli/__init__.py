"""The `dlion` command."""
