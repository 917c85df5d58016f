"""Every way to release there is, in the order in which ``auto`` prefers them where it cannot tell.

A new one is a class in a file of this folder, a line here, and a row of docs/guarantees.md.
"""

from __future__ import annotations

from sottovoce.central.method import ReleaseMethod
from sottovoce.central.priview import PriView
from sottovoce.central.residual import Residual
from sottovoce.central.tuples import DpMarginals
from sottovoce.central.union import SetUnion

METHODS: tuple[ReleaseMethod, ...] = (SetUnion(), DpMarginals(), Residual(), PriView())
