"""SQL over a fitted table: an analyst's text in, a table with standard errors out.

The stages are files: ``parse`` (text to parts of a SELECT), ``columns`` and ``outline`` (names),
``predicates`` (conditions), ``rows`` (what runs in clear), ``masks`` or ``normal_form`` (conditions
to selections), ``fits`` and ``linear`` (selections to estimates), ``measures`` and ``quantiles``
(estimates to aggregates), ``ordering`` and ``answer``.
"""

from __future__ import annotations

from sottovoce.questions.queries.sql.errors import SqlError

__all__ = ["SqlError"]
