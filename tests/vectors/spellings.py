"""Other spellings of a plan: texts that say what it says, or almost, and that every client must
refuse.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import sottovoce as sv

Rows = Iterator[tuple[str, str]]


def spellings(plans: Mapping[str, sv.Plan]) -> list[dict[str, str]]:
    """Each with what is different in it."""
    plan = plans["grr"].to_json()
    rows = [*_layouts(plan), *_parts(plan), *_forms(plan), *_numbers(plan), *_elsewhere(plans)]
    return [{"why": why, "plan": text} for why, text in rows]


def _written(body: Any) -> str:
    return json.dumps(body, indent=1, ensure_ascii=False) + "\n"


def _layouts(plan: str) -> Rows:
    """The same JSON with other spaces."""
    lines = plan.splitlines(keepends=True)
    for number in range(0, len(lines), 2):
        changed = [*lines[:number], lines[number].replace("\n", " \n"), *lines[number + 1 :]]
        yield f"a space more in line {number + 1}", "".join(changed)
    body = json.loads(plan)
    yield "no newline at its end", plan[:-1]
    yield "two newlines at its end", plan + "\n"
    yield "a space before it", " " + plan
    yield "a tab for a space", plan.replace("\n ", "\n\t")
    yield "lines that end as on Windows", plan.replace("\n", "\r\n")
    yield "a mark of the order of bytes", "\ufeff" + plan
    yield "two spaces a level", json.dumps(body, indent=2, ensure_ascii=False) + "\n"
    yield "no space after colons", plan.replace('": ', '":')
    yield "all in one line", json.dumps(body, ensure_ascii=False)
    yield "no space at all", json.dumps(body, ensure_ascii=False, separators=(",", ":"))


def _parts(plan: str) -> Rows:
    """Keys in another order, keys that nobody knows, and keys twice."""
    for path in _dicts(json.loads(plan)):
        name = ".".join(map(str, path)) or "the plan"
        body, part = _at(plan, path)
        part["extra"] = 1
        if path != ("question", "options"):  # which a device does not read
            yield f"a key more in {name}", _written(body)
        body, part = _at(plan, path)
        turned = dict(reversed(part.items()))
        part.clear()
        part.update(turned)
        if len(turned) > 1:
            yield f"another order in {name}", _written(body)
        body, part = _at(plan, path)
        if part:
            first = next(iter(part))
            part["a key twice"] = part[first]
            yield (
                f"a key twice in {name}",
                _written(body).replace('"a key twice"', json.dumps(first)),
            )
    for path in (
        ("cohorts", "cohorts", 0, "asks", 0, "oracle", "options"),
        ("cohorts",),
        ("series",),
        (),
    ):
        body, part = _at(plan, path)
        part[""] = 1
        yield f"a key without a letter in {'.'.join(map(str, path)) or 'the plan'}", _written(body)
        body, part = _at(plan, path)
        if len(part) > 1:
            one, other, *rest = part.items()
            part.clear()
            part |= {f"{one[0]},{other[0]}": [one[1], other[1]], **dict(rest)}
            yield f"two keys as one in {'.'.join(map(str, path)) or 'the plan'}", _written(body)
    body, part = _at(plan, ("question",))
    body["question"] = {
        "kind": "frequencies",
        "attributes,oracle,split,options": [1, 2, {"any": "thing"}],
    }
    yield "all keys as one in question", _written(body)
    yield (
        "a key that is the prototype's",
        plan.replace('"people": 1000', '"__proto__": 1,\n "people": 1000'),
    )


def _dicts(part: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the objects are, but for the schema itself, whose keys are names."""
    if isinstance(part, dict) and path != ("schema",):
        yield path
    for key, each in (
        part.items()
        if isinstance(part, dict)
        else enumerate(part)
        if isinstance(part, list)
        else ()
    ):
        yield from _dicts(each, (*path, key))


def _at(plan: str, path: tuple[Any, ...]) -> tuple[Any, Any]:
    body = json.loads(plan)
    part = body
    for step in path:
        part = part[step]
    return body, part


def _forms(plan: str) -> Rows:
    """Strings that are written in another way."""
    yield "a letter by its number", plan.replace('"grr"', '"\\u0067rr"')
    yield "a key's letter by its number", plan.replace('"people"', '"\\u0070eople"')
    yield "a solidus that is escaped", plan.replace('"frequencies"', '"frequencies\\/"')
    yield "a list for a name", plan.replace('"coin": "device"', '"coin": [\n  "device"\n ]')
    yield "another case", plan.replace("null", "Null")
    yield "true for one", plan.replace('"sottovoce": 1', '"sottovoce": true')
    yield "one for true", plan.replace('"sensitive": true', '"sensitive": 1')
    yield "half a character", plan.replace('"grr"', '"\\ud800"')


def _numbers(plan: str) -> Rows:
    """Numbers that are written in another way."""
    for old, others in (
        (
            '"people": 1000',
            ("1000.0", "1e3", "1E3", "1000e0", "10.0E2", "01000", '"1000"', "+1000"),
        ),
        (
            '"epsilon": "1.5"',
            (
                '"1.50"',
                '"01.5"',
                '"+1.5"',
                '" 1.5"',
                '"1.5 "',
                '"15E-1"',
                '"1.5E+0"',
                '"1.5e0"',
                "1.5",
            ),
        ),
        ('"size": "6"', ('"06"', '"+6"', '" 6"', '"6 "', "6", "6.0", '"6.0"', '"٦"')),
        ('"weight": 1', ("1.0", '"1"', "true", "1e0")),
        ('"round": 0', ("-0", "0.0", '"0"', "false", "null")),
        ('"bits": 3', ("3.0", '"3"', "4")),
    ):
        for other in others:
            key = old.split(": ")[0]
            yield f"{key} {other}", plan.replace(old, f"{key}: {other}")
    truth = json.loads(plan)["cohorts"]["cohorts"][0]["asks"][0]["oracle"]["thresholds"]["truth"]
    for other in (f'"0{truth}"', f'" {truth}"', f'"+{truth}"', f'"{truth}.0"'):
        yield f"a threshold {other[:3]}", plan.replace(f'"{truth}"', other)


def _elsewhere(plans: Mapping[str, sv.Plan]) -> Rows:
    """What the first plan does not have."""
    for name, why, old, new in (
        ("o-rr", "a salt that begins with a zero", '"salt": "', '"salt": "0'),
        ("windows", "one for a truth", '"scrambled": false', '"scrambled": 0'),
        ("prefixes", "a prefix that begins with a zero", '    "0"', '    "00"'),
        (
            "spellings",
            "text that says it is refused",
            '"bytes": 16\n',
            '"bytes": 16,\n   "longer": "refuse"\n',
        ),
        ("grr at 2.5E-7", "an epsilon without its exponent", '"2.5E-7"', '"0.00000025"'),
        ("grr at 12", "an epsilon with an exponent", '"epsilon": "12"', '"epsilon": "1.2E+1"'),
        (
            "values that stand for others",
            "the value for others in another form",
            '"other": 7',
            '"other": "7"',
        ),
    ):
        text = plans[name].to_json()
        assert old in text, (name, old)
        yield f"{name}: {why}", text.replace(old, new, 1)
    for name in ("latent", "marg-ht"):
        for path in _dicts(json.loads(plans[name].to_json())["cohorts"]):
            body, part = _at(plans[name].to_json(), ("cohorts", *path))
            part["extra"] = 1
            yield f"{name}: a key more in cohorts, {path}", _written(body)
