"""What a typical population looks like, for predictions before anybody is asked.

Frequencies of an attribute are taken as drawn from a symmetric Dirichlet law, attributes as loosely
tied. The constants are averages over public data sets; docs/marginals.md says how far predictions
were off.
"""

from __future__ import annotations

from math import prod

from sottovoce.questions.marginals.workload import Places, Workload

EVENNESS = 0.5  # the Dirichlet law's parameter: some values are rare
PAIR_TIE = 0.10  # root mean square correlation of two attributes
TRIPLE_TIE = 0.03  # of three, beyond what their pairs say
# mean squared correlation of two attributes of which nothing is known: any from -1 to 1
UNKNOWN_TIE = 1 / 3


def squared_mass(work: Workload, places: Places) -> float:
    """The expected sum of squared frequencies of a table, its attributes independent."""
    # E[sum f^2] = (a + 1) / (K a + 1) for a Dirichlet law of parameter a over K values
    return prod((EVENNESS + 1) / (work.sizes[place] * EVENNESS + 1) for place in places)


def spread(work: Workload, places: Places) -> float:
    """The expected squared distance of a table from the uniform one."""
    return squared_mass(work, places) - 1 / work.cells(places)


def contrast_spread(size: int) -> float:
    """The expected variance of an orthonormal contrast of ``size`` values among people."""
    # for a Dirichlet law of parameter a over K values
    #   E[sum p c^2 - (sum p c)^2] = 1/K - 1/(K (K a + 1)) = a / (K a + 1)
    return EVENNESS / (size * EVENNESS + 1)
