"""What reports add up to: integers that merge by addition."""
