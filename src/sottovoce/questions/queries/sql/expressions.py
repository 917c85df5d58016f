"""What is added up: a sum of products, each of a public number and of whispered ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlglot import exp

from sottovoce.ground.extras import imported
from sottovoce.questions.queries.evidence import Floats
from sottovoce.questions.queries.sql.columns import QueryColumns, check_size, written
from sottovoce.questions.queries.sql.predicates import MAX_ATOM_CELLS
from sottovoce.questions.queries.sql.spans import refused

MAX_PRODUCTS = 64
LARGEST_NUMBER = 1e50  # that is added up: the variances of sums of squares stay finite
MAX_SQUARED_PRODUCTS = 16  # of an expression whose square is added up

# a function of whispered columns: (which ones, its value for all combinations of theirs)
WhisperedFactor = tuple[tuple[int, ...], Floats]


@dataclass(frozen=True, eq=False)
class Weight:
    """A public number of each report, (people,)."""

    key: str  # the same for the same expression
    values: Floats

    def times(self, other: Weight | None) -> Weight:
        """The product of two."""
        if other is None:
            return self
        first, second = sorted((self, other), key=lambda each: each.key)
        return Weight(f"({first.key}) * ({second.key})", first.values * second.values)

    def minus(self, number: float) -> Weight:
        """All of them less a number."""
        return self if number == 0 else Weight(f"({self.key}) - {number!r}", self.values - number)


@dataclass(frozen=True, eq=False)
class Product:
    """A number times a weight times functions of whispered columns."""

    number: float = 1.0
    weight: Weight | None = None
    whispered: tuple[WhisperedFactor, ...] = ()

    def times(self, other: Product) -> Product:
        """The product of two."""
        weight = self.weight
        if other.weight is not None:
            weight = other.weight.times(weight)
        return Product(self.number * other.number, weight, self.whispered + other.whispered)


ONE = (Product(),)
Products = tuple[Product, ...]  # their sum


def multiplied(left: Products, right: Products) -> Products:
    """The product of two sums of products."""
    return tuple(one.times(other) for one in left for other in right)


@dataclass(frozen=True, eq=False)
class ProductSum:
    """An expression as a sum of products, and which of its parts are NULL for somebody."""

    products: Products
    nullable: tuple[exp.Expr, ...]


def read_sum(node: exp.Expr, columns: QueryColumns, text: str) -> ProductSum:
    """The products of a resolved expression, with the values that DuckDB gives to each factor."""
    found: list[Product] = []
    nullable: dict[str, exp.Expr] = {}
    for sign, factors in _split(node, columns, text):
        product = Product(sign)
        for factor in factors:
            product = product.times(_factor(factor, columns, text, nullable))
        found.append(product)
    return ProductSum(tuple(found), tuple(nullable.values()))


_Split = list[tuple[float, tuple[exp.Expr, ...]]]


def _split(node: exp.Expr, columns: QueryColumns, text: str) -> _Split:
    """Signed products of expressions, each of public columns or of whispered ones alone."""
    dims, publics = columns.dimensions(node), columns.publics(node)
    if not dims or (not publics and len(dims) == 1):
        return [(1.0, (node,))]
    if isinstance(node, exp.Paren):
        return _split(node.this, columns, text)
    if isinstance(node, exp.Neg):
        return _scaled(_split(node.this, columns, text), -1.0)
    if isinstance(node, exp.Add | exp.Sub):
        sign = 1.0 if isinstance(node, exp.Add) else -1.0
        left = _split(node.this, columns, text)
        right = _scaled(_split(node.expression, columns, text), sign)
        _check_products(len(left) + len(right), node, text)
        return left + right
    if isinstance(node, exp.Mul):
        left = _split(node.this, columns, text)
        right = _split(node.expression, columns, text)
        _check_products(len(left) * len(right), node, text)
        return [(a * b, x + y) for a, x in left for b, y in right]
    if isinstance(node, exp.Div):
        below = node.expression
        below_dims, below_publics = columns.dimensions(below), columns.publics(below)
        if not below_dims or not below_publics:
            inverse = exp.Div(this=exp.Literal.number("1.0"), expression=exp.paren(below.copy()))
            return [(a, (*x, inverse)) for a, x in _split(node.this, columns, text)]
    if not publics:
        return [(1.0, (node,))]
    raise refused(
        "public and whispered columns stand together in what is no sum of products",
        node,
        text,
        "for a sum over some people write SUM(amount) FILTER (WHERE age > 30)",
    )


def _check_products(count: int, node: exp.Expr, text: str) -> None:
    """Refuse too many products before they are made."""
    if count > MAX_PRODUCTS:
        raise refused(f"the expression has more than {MAX_PRODUCTS} products", node, text)


def _scaled(listed: _Split, sign: float) -> _Split:
    return [(number * sign, factors) for number, factors in listed]


def _factor(
    node: exp.Expr, columns: QueryColumns, text: str, nullable: dict[str, exp.Expr]
) -> Product:
    """One factor with its values; where it is NULL, nobody is counted."""
    dims = columns.dimensions(node)
    if columns.publics(node):
        values, has_null = columns.weights.get(
            written(node), lambda: _public_numbers(node, columns, text)
        )
        if has_null:
            nullable[written(node)] = node
        return Product(weight=Weight(written(node), values))
    sizes = [len(columns.dimension(number).values) for number in dims]
    if len(dims) > 1:
        check_size(sizes, MAX_ATOM_CELLS, node, text)
    _, column = columns.over_domain(node, f"({written(node)})", text)
    values = _numbers(column, node, text)
    if column.null_count:
        nullable[written(node)] = node
    if not dims:
        return Product(number=float(values[0]))
    return Product(whispered=((dims, values.reshape(sizes)),))


def _public_numbers(node: exp.Expr, columns: QueryColumns, text: str) -> tuple[Floats, bool]:
    """(a public expression's number for each report, whether it is NULL for somebody)."""
    if isinstance(node, exp.Column):
        stored = columns.stored_numbers(node)
        if stored is not None:  # as it travelled: nothing is to be computed
            return stored, False
    column = columns.over_rows(node, f"({written(node)})", text)
    return _numbers(column, node, text), column.null_count > 0


def _numbers(column: Any, node: exp.Expr, text: str) -> Floats:
    """An Arrow column as numbers; NULL as 0."""
    pa = imported("pyarrow")
    kind = column.type
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        if not pa.types.is_null(kind):
            raise refused("text stands where a number is needed", node, text)
        column = column.cast(pa.int8())
    filled = imported("pyarrow.compute").fill_null(column.cast(pa.float64(), safe=False), 0.0)
    values: Floats = np.asarray(filled.to_numpy(zero_copy_only=False), float)
    if not np.isfinite(values).all():
        raise refused(
            "the expression is infinite or no number for some values",
            node,
            text,
            "for example: x / NULLIF(y, 0) leaves out who would divide by 0",
        )
    if np.abs(values).max(initial=0.0) > LARGEST_NUMBER:
        raise refused(f"the expression exceeds {LARGEST_NUMBER:g} for some values", node, text)
    return values
