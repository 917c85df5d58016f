"""The demo's second survey: what is popular among made-up people, of words and of baskets."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from sottovoce.ground.extras import imported
from sottovoce.ground.labels import written

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from rich.table import Table as RichTable

    from sottovoce.protocol.plan import Plan
    from sottovoce.results.estimate import Estimate

CROWD_PEOPLE = 100_000
EPSILON = "2"
CROWD_SEED = 1618
LETTERS = "abcdefghijklmnopqrstuvwxyz"
MAX_WORD_LETTERS = 8
DISHES = (
    "pizza", "ramen", "curry", "pasta", "tacos", "salad", "burger", "sushi", "pho", "falafel",
    "dumpling", "goulash", "paella", "risotto", "lasagna", "stew", "dosa", "pierogi", "kimchi",
    "couscous",
)  # fmt: skip
RARE_WORDS = 20_000  # that hardly anybody else says
RARE_SHARE = 0.3  # of the people say one of those
ITEMS = (
    "bread", "milk", "eggs", "apples", "coffee", "butter", "tea", "rice", "bananas", "cheese",
    "onions", "tomatoes", "yoghurt", "chocolate", "salt", "sugar", "flour", "oil", "lentils",
    "oats", "honey", "garlic", "lemons", "carrots", "beer", "wine", "soap", "candles", "pepper",
    "vinegar", "ginger", "mustard", "almonds", "raisins", "olives",
)  # fmt: skip
TOP_WORDS, TOP_ITEMS = 12, 10


@dataclass(frozen=True)
class Liking:
    """What was found of one question, and the true shares of the same values."""

    title: str
    plan: Plan
    found: Estimate
    truth: NDArray[np.float64]
    missing: int  # values of the true top that were not found


def learnt(seed: int | None) -> list[Liking]:
    """Both questions, planned, answered by simulated devices in all their rounds, estimated."""
    from sottovoce.api.surveys import asked
    from sottovoce.schema import Items, Text

    drawn = secrets.randbits(63) if seed is None else seed
    words, baskets = dishes(), shopping()
    text = Text(bytes=MAX_WORD_LETTERS, alphabet=LETTERS)
    shares = {item: float(share) for item, share in zip(ITEMS, baskets.mean(axis=0), strict=True)}
    words_asked = asked("heavy-hitters", attribute="dish", top=TOP_WORDS)
    items_asked = asked("top-items", attribute="basket", top=TOP_ITEMS)
    return [
        _asked("favourite dish, typed freely", {"dish": words}, text, words_asked, drawn,
               _shares(words)),
        _asked("what is in the basket", {"basket": _lists(baskets)}, Items(ITEMS), items_asked,
               drawn, shares),
    ]  # fmt: skip


def dishes() -> NDArray[Any]:
    """Everybody's favourite dish: some are favourites of many, and many only of a few."""
    draws = np.random.Generator(np.random.PCG64(CROWD_SEED))
    letters = np.array(list(LETTERS))
    rare = [
        "".join(letters[draws.integers(0, 26, size)])
        for size in draws.integers(4, MAX_WORD_LETTERS + 1, RARE_WORDS)
    ]
    weights = 1 / np.arange(2, len(DISHES) + 2)
    common = draws.choice(np.array(DISHES, object), CROWD_PEOPLE, p=weights / weights.sum())
    odd = draws.choice(np.array(rare, object), CROWD_PEOPLE)
    return np.asarray(np.where(draws.random(CROWD_PEOPLE) < RARE_SHARE, odd, common))


def shopping() -> NDArray[np.bool_]:
    """What is in everybody's basket, a column for each item."""
    draws = np.random.Generator(np.random.PCG64(CROWD_SEED + 1))
    return np.asarray(draws.random((CROWD_PEOPLE, len(ITEMS))) < 0.9 / np.arange(2, len(ITEMS) + 2))


def _lists(held: NDArray[np.bool_]) -> Any:
    pa = imported("pyarrow")

    owners, items = np.nonzero(held)
    starts = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=len(held)))])
    return pa.ListArray.from_arrays(
        pa.array(starts, pa.int32()), pa.array(np.array(ITEMS, object)[items])
    )


def _shares(words: NDArray[Any]) -> dict[Any, float]:
    values, counts = np.unique(words.astype(str), return_counts=True)
    return dict(zip(values.tolist(), (counts / len(words)).tolist(), strict=True))


def _asked(
    title: str,
    table: Mapping[str, Any],
    attribute: Any,
    question: Any,
    seed: int,
    shares: Mapping[Any, float],
) -> Liking:
    from sottovoce.api.planning import plan, simulate_rounds
    from sottovoce.schema import Schema

    (name,) = table
    made = plan(Schema(**{name: attribute}), question, epsilon=EPSILON, people=CROWD_PEOPLE)
    found: Any = simulate_rounds(made, table, seed)
    labels = list(found.table.labels)
    best = sorted(shares, key=lambda value: -shares[value])[: question.top]
    truth = np.array([shares.get(label, 0.0) for label in labels])
    return Liking(title, made, found, truth, len(set(best) - set(labels)))


def _rows(liking: Liking) -> list[tuple[str, ...]]:
    """Value, mark, truth, estimate, standard error, expected false, for every value found."""
    table, marks = liking.found.table, liking.found.marks or ()
    return [
        (
            written(table.labels[place]),
            "*" if mark.significant else "",
            f"{liking.truth[place]:.2%}",
            f"{table.values[place]:.2%}",
            f"{table.std_error[place]:.2%}",
            f"{mark.expected_false:.2g}",
        )
        for place, mark in enumerate(marks)
    ]


HEADS = ("value", "", "truth", "estimate", "std error", "expected false")


def likings_table(liking: Liking) -> RichTable:
    """What was found beside the truth, for the terminal."""
    from rich.markup import escape as plain

    from sottovoce.console.tables import grid

    out = grid(
        f"What is popular: {liking.title} ({CROWD_PEOPLE:,} people, epsilon {EPSILON})",
        HEADS,
        words=("value", ""),
    )
    for row in _rows(liking):
        out.add_row(*map(plain, row))
    out.caption = f"* significant; {summary(liking)}"
    return out


def summary(liking: Liking) -> str:
    """What was missed, and what was found that is not there."""
    marks = np.array([mark.significant for mark in liking.found.marks or ()], bool)
    false = int((marks & (liking.truth == 0)).sum())
    top = liking.plan.question.top  # type: ignore[attr-defined]
    return (
        f"{top - liking.missing} of the true {top} found, {int(marks.sum())} marked, {false} of "
        "those held by nobody"
    )


def section(likings: Sequence[Liking]) -> str:
    """Both for the page."""
    from sottovoce.demo.pictures import inline
    from sottovoce.results.plots import popular

    sections = []
    for liking in likings:
        chart = popular(liking.found, truth=liking.truth).properties(title="")
        sections.append(
            f'<section class="card"><h3>{escape(liking.title)}</h3>'
            f'<p class="note">{escape(summary(liking))}.</p>'
            f'<div class="plot popular">{inline(chart)}</div>'
            f"<details><summary>all {len(liking.truth)} figures, and the plan</summary>"
            f'<div class="wide">{_html(_rows(liking))}</div>'
            f"<pre>{escape(str(liking.plan))}</pre></details></section>"
        )
    return "".join(sections)


def _html(rows: Sequence[Sequence[str]]) -> str:
    head = "".join(
        f'<th class="word">{name}</th>' if name in ("value", "") else f"<th>{name}</th>"
        for name in HEADS
    )
    body = "".join(
        "<tr>"
        + "".join(f"<td{_left(place)}>{escape(cell)}</td>" for place, cell in enumerate(row))
        + "</tr>"
        for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def _left(place: int) -> str:
    return ' class="word"' if place < 2 else ""
