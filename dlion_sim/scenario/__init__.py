"""What a scenario YAML may say: plain data, human units at the edge, SI inside."""
