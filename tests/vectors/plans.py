"""The plans of the vectors: every oracle, family, shape, encoding, kind of attribute and coin at
least once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import sottovoce as sv
from sottovoce.protocol.families.choices import elementary
from tests.oracles import NAMES
from tests.vectors import intervals, public, queries
from tests.vectors.case import Case, Record, each_coin, named
from tests.vectors.popular import popular

# oracles that take text
OPEN = (
    "olh-seeded",
    "olh-wide",
    "cms",
    "hcms",
    "rappor",
    "o-rr",
    "o-rappor",
)
SMALL: dict[str, dict[str, Any]] = {
    "cms": {"hashes": 4, "width": 16},
    "hcms": {"hashes": 4, "width": 16},
    "rappor": {"cohorts": 4, "buckets": 16},
    "o-rappor": {"cohorts": 4, "buckets": 16},
    "o-rr": {"cohorts": 4},
}
SIMPLE = sv.Schema(
    x=sv.Categorical(["a", "b", "c", "d", "e", "f"]), yes=sv.Boolean(), word=sv.Text(bytes=12)
)
SIMPLE_RECORDS: tuple[Record, ...] = (
    {"x": "a", "yes": False, "word": "piano"},
    {"x": "d", "yes": True, "word": "forte"},
    {"x": "f", "yes": True, "word": "è già"},
)
TABLE = sv.Schema(
    member=sv.Boolean(),
    colour=sv.Categorical(["red", "green", "blue", "grey", "pink"]),
    age=sv.Ordinal(18, 97, bins=4),
    rating=sv.Categorical([3, 1, 2]),
    level=sv.Categorical(range(10, 30, 5)),
)
TABLE_RECORDS: tuple[Record, ...] = (
    {"member": True, "colour": "pink", "age": 18, "rating": 3, "level": 10},
    {"member": False, "colour": "green", "age": 64, "rating": 2, "level": 25},
    {"member": True, "colour": "red", "age": 97, "rating": 1, "level": 15},
)
KINDS = sv.Schema(
    flag=sv.Boolean(),
    text_or_number=sv.Categorical(["1", 2, "drei", "\U0001f3b9", 2**53]),
    truths=sv.Categorical([True, False, 7]),
    falling=sv.Categorical(range(10, -20, -3)),
    high=sv.Categorical(range(2**53 - 10, 2**53)),
    years=sv.Ordinal(18, 97, bins=16),
    uneven=sv.Ordinal(-40, 50, bins=7),
    wide=sv.Ordinal(-(2**53), 2**53),
    wide_bins=sv.Ordinal(-(2**53), 2**53, bins=1_000_003),
    word=sv.Text(bytes=40),
    basket=sv.Items(["milk", "bread"]),
)
KINDS_RECORDS: tuple[Record, ...] = tuple(
    dict(zip(KINDS, values, strict=False))
    for values in (
        (True, "1", True, 10, 2**53 - 10, 18, -40, -(2**53), -(2**53), ""),
        (0, 2, False, -17, 2**53 - 1, 97, 50, 2**53, 2**53, "piano"),
        ("Yes ", "2", 7, "-2", str(2**53 - 3), "41", "-28", "0", -1, "è già, perché \U0001f3b9"),
        ("0", "drei", 1, 1.0, 2**53 - 5, 41.0, 0, 2**53 - 1, 9_007_199_254_740_867, "\u0000 \n"),
        (1.0, "\U0001f3b9", "7", " +4 ", 2**53 - 4, 22, "+50", -1, 1, "0123456789" * 4),
    )
)


OTHERS = sv.Schema(
    flag=sv.Boolean(other=False),
    colour=sv.Categorical(["red", "grey", "other"], other="other"),
    number=sv.Categorical([3, "7", True], other=True),
    level=sv.Categorical(range(10, 30, 5), other=20),
    age=sv.Ordinal(18, 97, bins=4, other=60),
    code=sv.Integer(bits=7, other=7),
)
OTHERS_RECORDS: tuple[Record, ...] = (
    {"flag": True, "colour": "red", "number": 3, "level": 10, "age": 18, "code": 0},
    {"flag": False, "colour": "other", "number": "7", "level": 25, "age": 97, "code": 127},
)


def cases() -> list[Case]:
    """Every plan there is."""
    plain = [
        *_oracles(),
        *_open(),
        *_cohorts(),
        *_kinds(),
        *_tables(),
        *_views(),
        *_signs(),
        *_rounds(),
    ]
    return [
        *plain,
        *_others(),
        *_characters(),
        *_questions(),
        *popular(),
        *public.cases(),
        *queries.cases(),
        *intervals.cases(),
        *_listed_bins(),
    ]


BANDS = sv.Schema(
    age=sv.Ordinal(18, 49, bins=[18, 25, 35]),
    change=sv.Ordinal(-(2**53), 2**53, bins=[-(2**53), -9, 0, 1, 2**53], other=-9),
)
BANDS_RECORDS: tuple[Record, ...] = tuple(
    {"age": age, "change": change}
    for age, change in (
        (18, -(2**53)), (24, -10), (25, -9), ("34", "-1"), (35.0, 0), (49, 1), (40, 2**53)
    )
)  # fmt: skip


def _listed_bins() -> Iterator[Case]:
    plan = _frequencies(("age", "change"), "8", "device", BANDS, oracle="grr", split="budget")
    yield Case("bins by their starts", plan, BANDS_RECORDS, 3)


def _frequencies(
    names: tuple[str, ...], epsilon: str, coin: str, schema: sv.Schema, **options: Any
) -> sv.Plan:
    return sv.plan(
        schema, sv.Frequencies(*names, **options), epsilon=epsilon, people=1000, coin=coin
    )


def _oracles() -> Iterator[Case]:
    for name in NAMES:
        asked = "yes" if name == "rr" else "x"

        def make(coin: str, name: str = name, asked: str = asked) -> sv.Plan:
            return _frequencies((asked,), "1.5", coin, SIMPLE, oracle=name, **SMALL.get(name, {}))

        yield from each_coin(name, make, SIMPLE_RECORDS)
    for epsilon in (
        "0.05",
        "12",
        "2.5E-7",
    ):  # coins near the edges, and an epsilon with an exponent
        for name in ("grr", "oue", "hr", "ss"):
            yield Case(
                f"{name} at {epsilon}",
                _frequencies(("x",), epsilon, "device", SIMPLE, oracle=name),
                SIMPLE_RECORDS,
            )
    yield Case(
        "she at 100",
        _frequencies(("x",), "100", "device", SIMPLE, oracle="she"),
        SIMPLE_RECORDS,
        30,
    )
    crowded = _frequencies(
        ("x",), "2", "device", SIMPLE, oracle="o-rappor", hashes=3, buckets=4, cohorts=4
    )
    yield Case("o-rappor, whose hashes meet", crowded, SIMPLE_RECORDS, 8)
    chances = {"instantaneous": ["1", "0"], "hashes": 1, "cohorts": 1, "buckets": 5}
    whole = _frequencies(("x",), "2", "device", SIMPLE, oracle="rappor", **chances)
    yield Case("rappor, memo alone", whole, SIMPLE_RECORDS)


def _open() -> Iterator[Case]:
    for name in OPEN:

        def make(coin: str, name: str = name) -> sv.Plan:
            return _frequencies(("word",), "1.5", coin, SIMPLE, oracle=name, **SMALL.get(name, {}))

        yield from each_coin(f"{name}, open", make, SIMPLE_RECORDS)


def _cohorts() -> Iterator[Case]:
    both = ("x", "yes")
    yield from each_coin(
        "several cohorts", lambda coin: _frequencies(both, "2", coin, SIMPLE), SIMPLE_RECORDS, 6
    )
    rappor: dict[str, Any] = {"oracle": "rappor", **SMALL["rappor"]}
    for name, options in (
        ("several asks", {}),
        ("several hashed asks", {"oracle": "olh"}),
        ("several coefficients", {"oracle": "hrr"}),
        ("several memos", rappor),
    ):

        def make(coin: str, options: dict[str, Any] = options) -> sv.Plan:
            return _frequencies(both, "3", coin, SIMPLE, split="budget", **options)

        yield from each_coin(name, make, SIMPLE_RECORDS)


def _kinds() -> Iterator[Case]:
    asked = tuple(name for name in KINDS if name != "basket")
    plan = _frequencies(asked, "8", "device", KINDS, oracle="olh-seeded", split="budget")
    yield Case("kinds of attributes", plan, KINDS_RECORDS, 5)
    wide = sv.Schema(huge=sv.Categorical(range(-(2**53), 2**53, 5)), few=sv.Ordinal(0, 99, bins=50))
    records = (
        {"huge": -(2**53) + 5, "few": 99},
        {"huge": 3, "few": 0},
        {"huge": 2**53 - 4, "few": 51},
    )
    yield Case(
        "wide", _frequencies(("huge", "few"), "1", "device", wide, oracle="olh-seeded"), records, 4
    )
    large = sv.Schema(n=sv.Ordinal(0, 1999))
    records = ({"n": 0}, {"n": 1234}, {"n": 1999})
    for name in ("oue", "ss", "olh", "hr", "hrr", "grr"):
        yield Case(
            f"{name} of 2000", _frequencies(("n",), "1", "device", large, oracle=name), records, 1
        )
    for count in (2, 700, 2000):
        plan = _frequencies(("n",), "6", "device", large, oracle="olh-field", hash_size=count)
        yield Case(f"olh-field of 2000 to {count}", plan, records, 2)


def _marginals(
    method: str, order: int, epsilon: str, coin: str, schema: sv.Schema, **more: Any
) -> sv.Plan:
    question = sv.Marginals(up_to=order, method=method, **more)
    return sv.plan(schema, question, epsilon=epsilon, people=100_000, coin=coin)


def _tables() -> Iterator[Case]:
    for method, order, epsilon in (
        ("em", 2, "2"),  # together
        ("marg-ht", 2, "1"),  # subsets
        ("am", 3, "0.7"),  # subsets with several oracles
        ("calm+", 2, "1.1"),  # views
        ("calm-binary", 2, "1.3"),  # listed, parities
        ("inp-ht", 3, "1.5"),  # signs: parity
        ("efron-stein", 3, "2"),  # signs: parity, with weights
        ("latent", 2, "1.5"),  # signs: corner and star
    ):

        def make(
            coin: str, method: str = method, order: int = order, epsilon: str = epsilon
        ) -> sv.Plan:
            return _marginals(method, order, epsilon, coin, TABLE)

        yield from each_coin(method, make, TABLE_RECORDS, 6)


def _views() -> Iterator[Case]:
    """Sets of several orders, told by their ranks, and as plans of before list them."""
    chosen = [[1], [0, 2], [2, 3], [0, 1, 4], [0, 2, 4], [1, 2, 4], [0, 1, 2, 3]]
    plan = _marginals("joint", 2, "1.4", "device", TABLE, views=chosen)
    yield Case("views of several orders", plan, TABLE_RECORDS, 12)
    body = json.loads(plan.to_json())
    body["question"]["options"]["views"] = chosen
    yield Case("views in a list", _with_cohorts(body, plan), TABLE_RECORDS, 12)


SHAPES = (("parity", 1), ("parity", 3), ("corner", 2), ("corner", 4), ("star", 2), ("star", 5))


def _signs() -> Iterator[Case]:
    for name, weights, share in (
        ("every shape", [3, 1, 4, 1, 5], 10**6),
        ("2^59 tickets", [1021, 7, 977, 3, 1009], 1 << 57),
    ):
        tickets = [weight * masks for weight, masks in zip(weights, (1, 7, 3, 3, 3), strict=True)]
        sums = elementary(tickets, max(order for _, order in SHAPES))
        blocks = [[shape, order, share // sums[order]] for shape, order in SHAPES]
        for epsilon, coin in (("0.4", "device"), ("2.5", "assigned")):
            plan = _marginals("latent", 2, epsilon, coin, TABLE)
            yield Case(named(name, coin), _with_blocks(plan, weights, blocks), TABLE_RECORDS, 24)
    table = sv.Schema(
        **{f"a{place}": sv.Ordinal(0, [4, 9, 16, 33][place % 4]) for place in range(14)}
    )
    records = tuple(
        {name: (3 * row + 2 * place) % 5 for place, name in enumerate(table)} for row in range(3)
    )
    yield Case("2^41 tickets", _marginals("latent", 2, "2", "device", table), records, 6)


def _with_blocks(plan: sv.Plan, weights: list[int], blocks: list[list[Any]]) -> sv.Plan:
    """The same plan with blocks of signs as asked for."""
    body = json.loads(plan.to_json())
    body["question"]["options"] = {"blocks": blocks, "weights": weights}
    return _with_cohorts(body, plan)


def _with_cohorts(body: dict[str, Any], plan: sv.Plan) -> sv.Plan:
    """A plan of this body, with the cohorts of its question."""
    question = sv.Marginals.from_json(body["question"])
    body["cohorts"] = question.cohorts(plan.schema, plan.terms).to_json()
    return sv.Plan.from_json(json.dumps(body, indent=1, ensure_ascii=False) + "\n")


def _rounds() -> Iterator[Case]:
    both = sv.Frequencies("x", "yes")
    first = sv.plan(SIMPLE, both, epsilon="2", people=1000, rounds=(3, 1, 2**53))
    second = sv.plan(
        SIMPLE, sv.Frequencies("x", oracle="hr"), epsilon="1", people=1000, after=first
    )
    third = sv.plan(SIMPLE, both, epsilon="1", people=1000, after=second)
    yield Case("the third of three rounds", third, SIMPLE_RECORDS)
    even = sv.plan(SIMPLE, both, epsilon="2", people=1000, rounds=(1, 2), coin="assigned")
    later = sv.plan(SIMPLE, both, epsilon="2", people=1000, after=even, coin="assigned")
    yield Case("the first of two rounds", even, SIMPLE_RECORDS, 4)
    yield Case("the last of two rounds", later, SIMPLE_RECORDS, 4)


def _others() -> Iterator[Case]:
    """Attributes that name the value which stands for all that they lack."""

    def make(coin: str) -> sv.Plan:
        return _frequencies(tuple(OTHERS), "9", coin, OTHERS, oracle="grr", split="budget")

    yield from each_coin("values that stand for others", make, OTHERS_RECORDS)


def _characters() -> Iterator[Case]:
    """Names and values of every kind of character that JSON may write in its own way."""
    odd = "".join(
        map(chr, [*range(0x20), 0x7F, 0x80, 0x9F, 0xAD, 0x2028, 0x2029, 0xFEFF, 0xFFFF, 0x1F3B9])
    )
    seen = "".join(map(chr, [0xE9, 0x20, 0x2F, 0xFFFD, 0xFFFF, 0x1F3B9]))  # a name has no others
    names = ["__proto__", "007", '\\"/\\ud800', seen]
    schema = sv.Schema(
        **{name: sv.Categorical([odd, "\\", '"', "/", "</script>"]) for name in names}
    )
    records = (dict.fromkeys(names, "/"), dict.fromkeys(names, odd))
    plan = _frequencies(tuple(names), "2", "device", schema, oracle="grr", split="budget")
    yield Case("every character", plan, records)


def _questions() -> Iterator[Case]:
    """Plans of questions about popular values and sets, as they are made."""
    words = sv.Schema(word=sv.Text(bytes=8), code=sv.Integer(bits=16, other=99))
    records = ({"word": "piano", "code": 5}, {"word": "", "code": 65_535})
    for name in words:
        plan = sv.plan(words, sv.HeavyHitters(name, top=4), epsilon="2", people=1000)
        yield Case(f"heavy hitters: {name}", plan, records)
    baskets = sv.Schema(basket=sv.Items(["milk", "bread", "tea", "salt"]))
    sets = ({"basket": ["tea"]}, {"basket": []}, {"basket": "milk; salt"})
    yield Case(
        "top items", sv.plan(baskets, sv.TopItems("basket", top=2), epsilon="2", people=1000), sets
    )
    yield Case(
        "top itemsets",
        sv.plan(baskets, sv.TopItemsets("basket", top=2), epsilon="2", people=1000),
        sets,
    )
