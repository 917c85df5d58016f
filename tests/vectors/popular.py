"""Plans that read spellings and sets: windows, prefixes, padded samples, in all the shapes they may
have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import sottovoce as sv
from sottovoce.protocol.encodings import (
    Ask,
    Cells,
    Drawn,
    Encoding,
    Extensions,
    Held,
    Padded,
    Window,
)
from sottovoce.protocol.families import Family, Listed
from sottovoce.protocol.families.base import Cohort
from sottovoce.protocol.plan import Plan
from sottovoce.protocol.series import Series
from sottovoce.schema import Integer, Items, Text
from tests.vectors.asks import Build, asking
from tests.vectors.case import Case, Record, each_coin

NUMBERS = sv.Schema(
    address=Integer(128),
    longer=Integer(127),
    word=Integer(64),
    odd=Integer(33),
    bit=Integer(1),
    level=sv.Ordinal(-3, 9),
)
NUMBERS_RECORDS: tuple[Record, ...] = tuple(
    dict(zip(NUMBERS, values, strict=True))
    for values in (
        ("0", "0", "0", 0, 0, -3),
        (str(2**128 - 1), str(2**127 - 1), str(2**64 - 1), 2**33 - 1, 1, 9),
        (
            "42540766411282592856903984951653826561",
            " +12345678901234567890123456789 ",
            2**53,
            "8589934591",
            "1",
            0,
        ),
        (str(0xFE80 << 112 | 0x1234), 9_007_199_254_740_991, str(2**63), 4.0, 0, "5"),
    )
)
TEXTS = sv.Schema(
    word=Text(bytes=16),
    cut=Text(bytes=7, longer="cut"),
    plain=Text(bytes=9, alphabet="abcdefghijklmnopqrstuvwxyz_", other="_", longer="cut"),
    notes=Text(bytes=13, alphabet="aeioué\U0001f3b9"),
    either=Text(bytes=15, alphabet="01", other="1"),
    colour=sv.Categorical(["red", "green", "blue", "grey", "pink"]),
    flag=sv.Boolean(),
)
TEXTS_RECORDS: tuple[Record, ...] = tuple(
    dict(zip(TEXTS, values, strict=True))
    for values in (
        ("", "", "", "", "", "red", False),
        (
            "0123456789abcdef",
            "perché\U0001f3b9",
            "sottovoce, ma non troppo",
            "aeiouaeiouaei",
            "0" * 15,
            "pink",
            True,
        ),
        (
            "è già",
            "abc\U0001f3b9",
            "Adagio \U0001f3b9",
            "é\U0001f3b9éé",
            "\U0001f3b9",
            "green",
            "yes",
        ),  # 7 bytes
        (
            "\U0001f3b9\U0001f3b9\U0001f3b9\U0001f3b9",
            "abcd\U0001f3b9",
            "è",
            "\U0001f3b9a",
            "20",
            "blue",
            1,
        ),  # cut at 4
        ("a", "abcdefé", "z", "i", "1010", "grey", 0),  # cut at 6
    )
)
BASKETS = sv.Schema(
    basket=Items(["milk", "bread", "tea", "salt", "eggs", "jam", 7]), tags=Items(range(100, 400, 7))
)
BASKETS_RECORDS: tuple[Record, ...] = (
    {"basket": [], "tags": []},
    {"basket": ["tea", "milk", "tea", "tea", "milk"], "tags": [107, 100, 107.0]},
    {
        "basket": ["jam", "eggs", "salt", "tea", "bread", "milk", 7],
        "tags": list(range(394, 99, -7)),
    },
    {"basket": " milk ;salt; 7", "tags": "107; 121"},
    {"basket": "  ", "tags": "100"},
    {"basket": ["eggs", "salt", "7"], "tags": ["128", 135]},
)
ITEMSETS = ((0,), (2,), (0, 2), (3, 4), (0, 2, 3), (1,), (0, 1, 2, 3, 4, 5, 6), (6,))


def window(
    schema: sv.Schema, name: str, start: int, fresh: int, *tag: int, scrambled: bool = False
) -> Window:
    return Window(name, schema[name].spelling_bits, start, fresh, *tag, scrambled=scrambled)


def ask(encoding: Encoding, epsilon: Decimal | str, name: str = "grr", **options: Any) -> Ask:
    return Ask(encoding, sv.oracle(name, size=encoding.size, epsilon=epsilon, **options))


def listed(*encodings: tuple[Encoding, str]) -> Build:
    """A cohort for each encoding, through the oracle of that name."""

    def build(schema: sv.Schema, epsilon: Decimal) -> Family:
        return Listed(
            [
                Cohort((ask(each, epsilon, name),), 1 + place % 2)
                for place, (each, name) in enumerate(encodings)
            ]
        )

    return build


def popular() -> list[Case]:
    """Every such plan."""
    return [*_numbers(), *_texts(), *_sets(), *_amplified(), *_rounds()]


def _numbers() -> Iterator[Case]:
    def of(name: str, start: int, fresh: int, *tag: int, scrambled: bool = False) -> Window:
        return window(NUMBERS, name, start, fresh, *tag, scrambled=scrambled)

    build = listed(
        (of("address", 0, 16), "olh"),
        (of("address", 16, 12, 8, 16, scrambled=True), "olh"),
        (of("address", 100, 28, 32, 128), "olh-seeded"),
        (of("address", 63, 32, 32, 65, scrambled=True), "olh-wide"),
        (of("address", 0, 128), "olh-wide"),
        (of("address", 5, 100, scrambled=True), "olh-wide"),
    )
    yield from each_coin(
        "windows", lambda coin: asking("windows", NUMBERS, build, "2", coin), NUMBERS_RECORDS, 20
    )
    build = listed(
        (of("odd", 3, 5, 4, 20, scrambled=True), "grr"),
        (of("odd", 0, 33, scrambled=True), "olh-seeded"),
        (of("longer", 60, 9, 3, 127, scrambled=True), "hr"),
        (of("longer", 0, 127, scrambled=True), "olh-wide"),
        (of("word", 60, 4, 16, 64, scrambled=True), "hrr"),
        (of("bit", 0, 1, scrambled=True), "rr"),
        (of("bit", 0, 1, 3, 1, scrambled=True), "grr"),
        (of("level", 1, 3, scrambled=True), "oue"),
        (of("level", 0, 4), "ss"),
    )
    plan = asking("windows of odd numbers of bits", NUMBERS, build, "6", "device")
    yield Case("windows of odd numbers of bits", plan, NUMBERS_RECORDS, 32)

    def codes(schema: sv.Schema, epsilon: Decimal) -> Family:
        asks = [
            ask(Cells.of(schema, name), epsilon / 2, "olh-wide", hash_bits=12)
            for name in ("address", "bit")
        ]
        return Listed([Cohort(tuple(asks))])

    yield from each_coin(
        "codes of 128 bits",
        lambda coin: asking("codes", NUMBERS, codes, "3", coin),
        NUMBERS_RECORDS,
    )

    def pairs(schema: sv.Schema, epsilon: Decimal) -> Family:
        hashed = ask(of("word", 0, 64, scrambled=True), epsilon / 2, "olh-wide")
        return Listed(
            [
                Cohort((ask(of("word", start, 8), epsilon / 4, "olh"), hashed), weight)
                for start, weight in ((0, 1), (8, 2), (56, 3))
            ],
            keep="rows",
        )

    yield from each_coin(
        "segments", lambda coin: asking("segments", NUMBERS, pairs, "4", coin), NUMBERS_RECORDS, 12
    )
    yield from _prefixes()


def _prefixes() -> Iterator[Case]:
    def of(name: str, fresh: int, *prefixes: tuple[int, int]) -> Extensions:
        return Extensions(name, NUMBERS[name].spelling_bits, fresh, prefixes)

    build = listed(
        (of("address", 4, (0, 0)), "grr"),
        (of("address", 2, (16, 0xFE80), (3, 1), (64, 0), (100, 2**100 - 1)), "oue"),
        (of("address", 1, (127, 2**127 - 1), (127, 0)), "ss"),
        (of("address", 16, (112, 0), (112, 0xFE80 << 96), (8, 255)), "olh"),
        (of("odd", 3, (30, 0), (1, 1), (30, 2**29 - 1)), "grr"),
    )
    yield from each_coin(
        "prefixes", lambda coin: asking("prefixes", NUMBERS, build, "3", coin), NUMBERS_RECORDS, 20
    )


def _texts() -> Iterator[Case]:
    def whole(name: str, tag: int = 0, *, scrambled: bool = False) -> Window:
        bits = TEXTS[name].spelling_bits
        return window(TEXTS, name, 0, min(bits, 24), tag, bits if tag else 0, scrambled=scrambled)

    build = listed(
        (whole("word"), "grr"),
        (whole("word", 32), "olh-seeded"),
        (window(TEXTS, "word", 0, 128), "olh-wide"),
        (whole("cut"), "grr"),
        (window(TEXTS, "cut", 24, 32, 16, 56, scrambled=True), "olh-seeded"),
        (window(TEXTS, "plain", 0, TEXTS["plain"].spelling_bits), "olh-wide"),
        (window(TEXTS, "notes", 0, TEXTS["notes"].spelling_bits), "olh-wide"),
        (window(TEXTS, "either", 0, TEXTS["either"].spelling_bits), "olh-wide"),
        (whole("colour", scrambled=True), "grr"),
        (whole("flag"), "rr"),
    )
    yield from each_coin(
        "spellings", lambda coin: asking("spellings", TEXTS, build, "9", coin), TEXTS_RECORDS, 50
    )
    build = listed(
        *(
            (Cells.of(TEXTS, name), "olh-seeded")
            for name in ("word", "cut", "plain", "notes", "either")
        )
    )
    yield Case("fingerprints", asking("fingerprints", TEXTS, build, "9"), TEXTS_RECORDS, 20)


def _padded(length: int, candidates: Any = None, name: str = "basket", **amplified: Any) -> Padded:
    return Padded(name, BASKETS[name].size, candidates, length, **amplified)


def _sets() -> Iterator[Case]:
    singles = ((6,), (0,), (3,))
    build = listed(
        (_padded(1), "grr"),
        (_padded(3), "grr"),
        (_padded(5, singles), "oue"),
        (_padded(2, ITEMSETS), "olh"),
        (_padded(9, ITEMSETS), "ss"),
        (_padded(4, name="tags"), "hr"),
        (_padded(65_536, name="tags"), "olh-seeded"),
        (Held("basket", 7, None, 4), "grr"),
        (Held("basket", 7, singles, 1), "rr"),
        (Held("basket", 7, ITEMSETS, 8), "oue"),
        (Held("tags", 43, None, 65_536), "olh"),
    )
    yield from each_coin(
        "sets", lambda coin: asking("sets", BASKETS, build, "5", coin), BASKETS_RECORDS, 54
    )

    make = _maker("whole sets", _whole_sets, "1.5")
    yield from each_coin("whole sets", make, BASKETS_RECORDS, 36)

    def both(schema: sv.Schema, epsilon: Decimal) -> Family:
        half = epsilon / 2
        asks = ask(_padded(2, ITEMSETS), half), ask(Held("tags", 43, None, 6), half, "oue")
        return Listed([Cohort(asks)])

    yield from each_coin(
        "two asks of sets",
        lambda coin: asking("two asks", BASKETS, both, "2", coin),
        BASKETS_RECORDS,
        6,
    )


def _whole_sets(schema: sv.Schema, epsilon: Decimal) -> Family:
    """Sets that are whispered whole: shorter than their length, as long, and longer; of many and of
    few answers.
    """
    drawn = (
        (Drawn("basket", 7, None, 1), {}),
        (Drawn("basket", 7, None, 3), {}),
        (Drawn("basket", 7, ITEMSETS, 2), {}),
        (Drawn("basket", 7, None, 9), {"hash_size": 10}),
        (Drawn("tags", 43, None, 20), {}),
        (Drawn("tags", 43, None, 43), {"hash_size": 65_536}),
    )
    return Listed(
        [
            Cohort((ask(each, epsilon, "olh-sets", length=each.length, **more),))
            for each, more in drawn
        ]
    )


def _amplifying(*padded: Padded) -> Build:
    """A cohort for each, through the oracle that its epsilon amplifies to."""

    def build(schema: sv.Schema, epsilon: Decimal) -> Family:
        return Listed(
            [Cohort((Ask(each, each.oracle(each.epsilon or epsilon)),)) for each in padded]
        )

    return build


def _amplified() -> Iterator[Case]:
    epsilon = Decimal("1.2")
    shapes: tuple[tuple[int, Any, str], ...] = (
        (1, None, "basket"), (4, None, "basket"), (10, ITEMSETS, "basket"), (300, None, "tags"),
    )  # fmt: skip
    build = _amplifying(*(_padded(*shape, epsilon=epsilon) for shape in shapes))
    make = _maker("amplified sets", build, "1.2")
    yield from each_coin("amplified sets", make, BASKETS_RECORDS, 24)
    deltas = (
        Fraction(1, 1001),
        Fraction(3, 10**9),
        Fraction(1, 2000),
        Fraction(9, 9200),
        Fraction(1, 2**53),
    )
    asked = [_padded(*shape, epsilon=epsilon, delta=delta) for shape in shapes for delta in deltas]
    named = "amplified sets with a delta"  # which assigned coins are not for
    yield Case(named, asking(named, BASKETS, _amplifying(*asked), "1.2"), BASKETS_RECORDS, 108)

    def two(schema: sv.Schema, epsilon: Decimal) -> Family:
        each = _padded(20, name="tags", epsilon=epsilon / 2, delta=Fraction(1, 10**6))
        other = _padded(3, epsilon=epsilon / 2)
        return Listed([Cohort(tuple(Ask(one, one.oracle(epsilon / 2)) for one in (each, other)))])

    yield Case(
        "two amplified sets", asking("two amplified sets", BASKETS, two, "1.2"), BASKETS_RECORDS, 6
    )


def _maker(name: str, build: Build, epsilon: str) -> Any:
    return lambda coin: asking(name, BASKETS, build, epsilon, coin)


def _rounds() -> Iterator[Case]:
    """The first round learns how many items people hold, the next ones sample from those that are
    left.
    """
    steps: Sequence[tuple[str, Build]] = (
        ("lengths", listed((Held("basket", 7, None, 5), "grr"))),
        ("candidates", listed((_padded(2, ((0,), (3,), (6,))), "grr"))),
        (
            "itemsets",
            listed(
                (_padded(1, ((0,), (3,), (0, 3))), "oue"), (Held("basket", 7, ((0, 3),), 1), "rr")
            ),
        ),
    )
    before: list[Plan] = []
    for number, (name, build) in enumerate(steps):
        named = (before[0].id, before[-1].id) if before else (None, None)
        before.append(
            asking(name, BASKETS, build, "1", "device", Series((5, 1, 4), number, *named))
        )
        yield Case(f"round {number + 1} of sets: {name}", before[-1], BASKETS_RECORDS, 6)
    prefixes = Extensions(
        "plain", TEXTS["plain"].spelling_bits, 5, ((5, 19), (5, 1), (10, 27 << 5))
    )
    first = asking(
        "letters",
        TEXTS,
        listed((window(TEXTS, "plain", 0, 5), "olh")),
        "2",
        "assigned",
        Series((1, 1)),
    )
    series = Series((1, 1), 1, first.id, first.id)
    later = asking("how they go on", TEXTS, listed((prefixes, "grr")), "2", "assigned", series)
    for name, plan in (("the first letter", first), ("the second letter", later)):
        yield Case(name, plan, TEXTS_RECORDS, 8)
