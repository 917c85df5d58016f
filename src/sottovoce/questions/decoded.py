"""What a list of candidates was decoded to, said of its table."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

from sottovoce.oracles.cohorts import DECODERS, Decoded
from sottovoce.results.cells import Total
from sottovoce.results.estimate import Table


def marked(table: Table, decoded: Decoded, decoder: str) -> Table:
    """The table of decoded values, with what is left for anything off the list, and its marks."""
    if decoder != DECODERS[0]:
        return table.repaired(table.values, decoder)
    rest = None
    if decoded.rest is not None:
        frequency, variance = decoded.rest
        rest = Total(frequency, sqrt(variance))
    is_told = decoded.is_unbiased
    return replace(table, off_list=rest, is_unbiased=is_told, is_reconstructed=not is_told)
