"""For all tests."""

from __future__ import annotations

import os

# Processes beside a collector let others go first. Where others never end, as on a busy machine,
# tests would wait long.
os.environ.setdefault("SOTTOVOCE_NICE", "0")
