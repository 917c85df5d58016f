"""For all tests."""

from __future__ import annotations

import os

# Processes beside a collector let others go first. Where others never end, as on a busy machine,
# tests would wait long.
os.environ.setdefault("SOTTOVOCE_NICE", "0")

# Two workers on two cores: linear algebra with threads of its own makes them wait for each other.
# Before numpy is loaded; commands and servers that tests start have it from here.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
