"""Every oracle, decoder, method, post-processing and question there is, with its options: read off
signatures and docstrings, of sottovoce and of other packages.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from sottovoce.ground.errors import InvalidInput

CHOSEN = "chosen"  # for a default that follows from the numbers at hand
NEEDED = "must be given"
CARRIED = ("known",)  # options that plans of later rounds carry, and nobody gives
_ENTRY = re.compile(r"^( +)(\w+): (.+)$")


@dataclass(frozen=True)
class CatalogueOption:
    """One option: its default in words, and what it is."""

    name: str
    default: str | None
    about: str


@dataclass(frozen=True)
class CatalogueEntry:
    """Something that can be named in a survey, a command or Python."""

    kind: str  # of KINDS
    name: str
    aliases: tuple[str, ...]
    about: str
    source: str
    package: str  # which brings it, if it is another one
    options: tuple[CatalogueOption, ...]

    def to_json(self) -> dict[str, Any]:
        """The entry as JSON."""
        return asdict(self)

    @property
    def signature(self) -> str:
        """The name, with the names of its options, as commands take them if they do."""
        names = ", ".join(option.name for option in self.options)
        if self.kind in ("oracle", "decoder", "post-processing"):
            return f"{self.name} ({names})" if names else self.name
        return ":".join([self.name, *(f"{option.name}=" for option in self.options)])


def described(text: str | None) -> dict[str, str]:
    """The parameters or options that a docstring has lines for.

    >>> described("Do it.\\n\\n    Args:\\n        top: how many\\n            at most.\\n    ")
    {'top': 'how many at most.'}
    """
    found: dict[str, str] = {}
    name, depth = "", 0
    for line in (text or "").splitlines():
        entry = _ENTRY.match(line)
        indent = len(line) - len(line.lstrip())
        if entry and (not name or indent <= depth):
            name, depth = entry[2], indent
            found[name] = entry[3].strip()
        elif name and indent > depth and line.strip():
            found[name] += f" {line.strip()}"
        else:
            name = ""
    return found


def _plainly(text: str, names: Iterable[str]) -> str:
    """What an option is, without the names of those that take it, and without marks."""
    head, _, rest = text.partition(": ")
    takers = [part.strip() for part in head.split(",")]
    if rest and (takers[0] in names or head.startswith("of the same")):
        text = rest
    text = text.replace("``", "")
    return text if text.endswith("...") else text.rstrip(".")


def _told(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _section(text: str | None, title: str) -> str:
    found = re.search(rf"{title}:\s+(.+(?:\n {{8,}}.+)*)", text or "")
    whole = " ".join(found[1].split()) if found else ""
    return re.split(r"\. (?=[a-z])", whole)[0].rstrip(".")  # what follows is no source


# -- oracles, decoders and post-processing


def _oracles() -> list[CatalogueEntry]:
    from sottovoce.oracles import every_oracle, oracle

    lines = described(oracle.__doc__)
    kinds = every_oracle()
    names = {name for kind in kinds for name in kind.names}
    entries = []
    for kind in kinds:
        own = lines | described(kind.__doc__)
        options = []
        for name, parameter in inspect.signature(kind.build).parameters.items():
            if name not in ("size", "epsilon"):
                default = CHOSEN if parameter.default is None else _told(parameter.default)
                about = _plainly(own.get(name, ""), names)
                options.append(CatalogueOption(name, default, about))
        entries.append(
            CatalogueEntry(
                "oracle",
                kind.names[0],
                kind.names[1:],
                kind.about,
                _section(kind.__doc__, "Source"),
                kind.package,
                tuple(options),
            )
        )
    return entries


def _decoders() -> list[CatalogueEntry]:
    from sottovoce.oracles.cohorts import DECODER_LINES

    return [
        CatalogueEntry("decoder", name, (), about, source, "", ())
        for name, (about, source) in DECODER_LINES.items()
    ]


def _repairs() -> list[CatalogueEntry]:
    from sottovoce.postprocessing.methods import METHODS, REPAIR_ALIASES

    entries = []
    for name, repair in METHODS.items():
        parameters = inspect.signature(repair.repair).parameters
        sentences = re.split(r"(?<=[.;])\s+", inspect.getdoc(repair.repair) or "")
        options = []
        for option in repair.options:
            told = [each for each in sentences if f"``{option}``" in each]
            about = _plainly(told[0] if told else "", ()).rstrip(";")
            options.append(CatalogueOption(option, _told(parameters[option].default), about))
        aliases = tuple(alias for alias, known in REPAIR_ALIASES.items() if known == name)
        source = (
            "kairouz2016discrete, section 4" if repair.encoding else "wang2021thesis, chapter 8"
        )
        entries.append(
            CatalogueEntry(
                "post-processing", name, aliases, repair.about, source, "", tuple(options)
            )
        )
    return entries


# -- methods of questions


@dataclass(frozen=True)
class _Folder:
    """The methods of one question, and two surveys by which its defaults are told."""

    kind: str
    methods: Callable[[], Sequence[Any]]
    schemas: Sequence[Mapping[str, Any]]  # two, as in survey files
    asked: Sequence[Mapping[str, Any]]  # of two questions, without their method


def _folders() -> list[_Folder]:
    from sottovoce.questions.heavyhitters.methods import METHODS as SEARCHES
    from sottovoce.questions.itemsets.methods import METHODS as ITEMS
    from sottovoce.questions.marginals.methods import every_method
    from sottovoce.questions.queries.methods import METHODS as QUERIES

    bits = [{f"x{place}": {"kind": "boolean"} for place in range(count)} for count in (3, 5)]
    numbers = [{"x": {"kind": "integer", "bits": size}} for size in (16, 32)]
    baskets = [{"x": {"kind": "items", "values": list(range(size))}} for size in (8, 40)]
    ages = [{"x": {"kind": "ordinal", "low": 0, "high": size - 1}} for size in (32, 200)]
    top = [{"attribute": "x", "top": count} for count in (2, 5)]
    tables, ranges = {"up_to": 2}, {"dimensions": ["x"]}
    of_items = [each for each in ITEMS if each.for_items]
    of_sets = [each for each in ITEMS if each.for_sets]
    return [
        _Folder("marginals", every_method, bits, [tables, tables]),
        _Folder("queries", lambda: QUERIES, ages, [ranges, ranges]),
        _Folder("heavy-hitters", lambda: SEARCHES, numbers, top),
        _Folder("top-items", lambda: of_items, baskets, top),
        _Folder("top-itemsets", lambda: of_sets, baskets, top),
    ]


def _methods(folder: _Folder, with_defaults: bool) -> list[CatalogueEntry]:
    from sottovoce.protocol.question_forms import form_of

    lines = described(form_of(folder.kind).load().__doc__)
    methods = folder.methods()
    names = {method.name for method in methods}
    entries = []
    for method in methods:
        taken = [name for name in method.options if name not in CARRIED]
        defaults = _defaults(folder, method, taken) if with_defaults and taken else {}
        own = lines | described(type(method).__doc__) if method.package else lines
        options = tuple(
            CatalogueOption(name, defaults.get(name), _plainly(own.get(name, ""), names))
            for name in taken
        )
        told = (method.about, method.source, method.package)
        entries.append(CatalogueEntry(folder.kind, method.name, (), *told, options))
    return entries


def _defaults(folder: _Folder, method: Any, taken: Sequence[str]) -> dict[str, str | None]:
    """What two unlike surveys settle alike is a default; what they settle in two ways is chosen
    for their numbers; of the rest a plan holds nothing.
    """
    from sottovoce.api.surveys import Survey

    settled = []
    terms = (("1", 10_000), ("3", 400_000))
    for schema, asked, (epsilon, people) in zip(folder.schemas, folder.asked, terms, strict=True):
        question = {"kind": folder.kind, **asked, "method": method.name}
        body = {"epsilon": epsilon, "people": people, "schema": schema, "question": question}
        try:
            settled.append(Survey.parse(body).plan().asked["options"])
        except InvalidInput as wrong:
            needed = [name for name in taken if re.search(rf"\b{name}\b", str(wrong))]
            return {name: NEEDED if name in needed else None for name in taken}
    found: dict[str, str | None] = {}
    for name in taken:
        one, other = (options.get(name) for options in settled)
        if one is None and other is None:
            found[name] = None
        else:
            found[name] = _told(one) if one == other else CHOSEN
    return found


def _releases() -> list[CatalogueEntry]:
    from sottovoce.central.methods import METHODS

    entries = []
    for method in METHODS:
        lines = described(type(method).__doc__)
        options = tuple(
            CatalogueOption(name, None, _plainly(lines.get(name, ""), ()))
            for name in method.options
        )
        entries.append(
            CatalogueEntry("release", method.name, (), method.about, method.source, "", options)
        )
    return entries


def _questions() -> list[CatalogueEntry]:
    from sottovoce.protocol.question_forms import QUESTIONS
    from sottovoce.questions.outside import BROUGHT_QUESTIONS

    entries = []
    for form in QUESTIONS:
        about = (inspect.getdoc(form.load()) or "").split("\n\n", maxsplit=1)[0]
        told = " ".join(about.split()).replace("``", "").rstrip(".")
        entries.append(CatalogueEntry("question", form.kind, (), told, "", "", ()))
    for kind in BROUGHT_QUESTIONS.every([form.kind for form in QUESTIONS]):
        lines = described(kind.__doc__)
        options = tuple(
            CatalogueOption(field.name, None, _plainly(lines.get(field.name, ""), ()))
            for field in fields(kind)  # type: ignore[arg-type]
        )
        entries.append(
            CatalogueEntry("question", kind.kind, (), kind.about, "", kind.package, options)
        )
    return entries


KINDS = (
    "question", "oracle", "decoder", "marginals", "queries", "heavy-hitters", "top-items",
    "top-itemsets", "release", "post-processing",
)  # fmt: skip


def catalogue(kinds: Sequence[str] = KINDS, *, with_defaults: bool = True) -> list[CatalogueEntry]:
    """Everything of some kinds. Defaults of methods take a second or two, since plans are made.

    >>> [entry.name for entry in catalogue(["decoder"])]
    ['least-squares', 'nnls', 'lasso']
    """
    found: list[CatalogueEntry] = []
    folders = {folder.kind: folder for folder in _folders()}
    makers = {
        "question": _questions,
        "oracle": _oracles,
        "decoder": _decoders,
        "release": _releases,
        "post-processing": _repairs,
    }
    for kind in kinds:
        if kind in folders:
            found += _methods(folders[kind], with_defaults)
        else:
            found += makers[kind]()
    return found
