"""Hot loops, compiled by numba, and what a device or a collector needs of them in numpy alone."""
