"""Hot loops, compiled by numba (``compiled``), and what a device or a collector needs of them in numpy alone."""
