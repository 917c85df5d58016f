"""What `make bench` runs: our speed and memory beside the targets, beside plain numpy, and beside
other packages.
"""
