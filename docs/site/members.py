"""What is public: functions and classes of the package, their parameters, and what these are."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import sottovoce as sv
from docs.site.docstrings import Docstring, field_comments, parse


class Parameter(NamedTuple):
    """One parameter of a function or of a constructor."""

    name: str  # with its stars
    kind: str  # its type, as it is annotated
    default: str  # empty if it must be given
    text: str  # what it is; empty if nothing says so


class Function(NamedTuple):
    """A function, a method or a constructor."""

    name: str
    signature: str
    parameters: tuple[Parameter, ...]
    doc: Docstring


class Property(NamedTuple):
    """What can be read of an object."""

    name: str
    kind: str
    doc: Docstring


def public() -> dict[str, Any]:
    """Everything public, by name."""
    return {name: getattr(sv, name) for name in sv.__all__}


def bases(kind: type) -> list[type]:
    """The classes of the package that a class takes its members from."""
    return [base for base in kind.__mro__[1:] if base.__module__.startswith("sottovoce.")]


def shared_bases() -> dict[str, type]:
    """Bases of public classes that have no public name of their own, by name."""
    listed = public()
    kinds = [thing for thing in listed.values() if isinstance(thing, type)]
    found = {base.__name__: base for kind in kinds for base in bases(kind)}
    return {name: base for name, base in found.items() if name not in listed}


def annotated(annotation: Any) -> str:
    """A type as the code writes it."""
    if annotation is inspect.Parameter.empty:
        return ""
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")


def default_of(parameter: inspect.Parameter) -> str:
    """A default as the code writes it, or dots where it is made anew."""
    if parameter.default is inspect.Parameter.empty:
        return ""
    shown = repr(parameter.default)
    return "..." if shown.startswith("<") or len(shown) > 40 else shown


STARS = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


def parameters_of(function: Callable[..., Any], described: dict[str, str]) -> list[Parameter]:
    """The parameters of a function, each with what is said of it."""
    found = []
    for name, each in inspect.signature(function).parameters.items():
        if name not in ("self", "cls") and not name.startswith("_"):
            shown = STARS.get(each.kind, "") + name
            kind = annotated(each.annotation)
            found.append(Parameter(shown, kind, default_of(each), described.get(name, "")))
    return found


def signature_of(name: str, function: Callable[..., Any]) -> str:
    """How a function is called, in one line or with a parameter on each."""
    whole = inspect.signature(function)
    parts: list[str] = []
    has_star = False
    for each in whole.parameters.values():
        if each.name in ("self", "cls") or each.name.startswith("_"):
            continue
        if each.kind is inspect.Parameter.KEYWORD_ONLY and not has_star:
            parts.append("*")
        has_star |= each.kind in (
            inspect.Parameter.KEYWORD_ONLY,
            inspect.Parameter.VAR_POSITIONAL,
        )
        default = default_of(each)
        parts.append(STARS.get(each.kind, "") + each.name + (f"={default}" if default else ""))
    returns = annotated(whole.return_annotation)
    arrow = f" -> {returns}" if returns not in ("", "None") else ""
    line = f"{name}({', '.join(parts)}){arrow}"
    if len(line) <= 88:
        return line
    return "\n".join([f"{name}(", *(f"    {part}," for part in parts), f"){arrow}"])


def function_of(name: str, function: Callable[..., Any], inherited: dict[str, str]) -> Function:
    """A function with its docstring; ``inherited`` describes parameters that it does not."""
    doc = parse(function.__doc__)
    parameters = parameters_of(function, inherited | doc.described)
    return Function(name, signature_of(name, function), tuple(parameters), doc)


def constructor_of(name: str, kind: type) -> Function:
    """How a class is called; its fields and parameters are described where it or a base is."""
    described: dict[str, str] = {}
    for each in reversed([kind, *bases(kind)]):
        described |= field_comments(each) | parse(each.__doc__).described
    return Function(
        name, signature_of(name, kind), tuple(parameters_of(kind, described)), parse(kind.__doc__)
    )


def _named(kind: type) -> Iterator[tuple[str, Any]]:
    """The public members that a class itself defines."""
    for name, member in vars(kind).items():
        if not name.startswith("_"):
            yield name, member


def _inherited(kind: type, name: str) -> dict[str, str]:
    """What a class and its bases say of the parameters of a method, apart from its docstring: a
    parameter may be a field, or one that the class describes for all its methods.
    """
    described: dict[str, str] = {}
    for each in reversed([kind, *bases(kind)]):
        parsed = parse(each.__doc__)
        described |= field_comments(each) | parsed.described | parsed.throughout
    for base in reversed(bases(kind)):
        described |= parse(getattr(vars(base).get(name), "__doc__", None)).described
    return described


def is_overriding(kind: type, name: str) -> bool:
    return any(name in vars(base) for base in bases(kind))


def methods_of(kind: type) -> list[Function]:
    """The methods of a class; not those that a base describes already."""
    found = []
    for name, member in _named(kind):
        function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if not inspect.isfunction(function):
            continue
        if function.__doc__ is None and is_overriding(kind, name):
            continue
        found.append(function_of(f"{kind.__name__}.{name}", function, _inherited(kind, name)))
    return found


def properties_of(kind: type) -> list[Property]:
    """The properties of a class; not those that a base describes already."""
    found = []
    for name, member in _named(kind):
        if isinstance(member, property):
            getter = member.fget
        elif isinstance(member, functools.cached_property):
            getter = member.func
        else:
            continue
        if getter is None or (getter.__doc__ is None and is_overriding(kind, name)):
            continue
        returns = annotated(inspect.signature(getter).return_annotation)
        found.append(Property(name, returns, parse(getter.__doc__)))
    return found
