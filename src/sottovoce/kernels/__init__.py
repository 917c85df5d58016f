"""Hot loops, compiled by numba. Nothing outside this folder imports numba; every loop releases the GIL."""
