"""The references hold everything public, and every command with all of its options."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.version import Version

import sottovoce as sv
from docs.site import api, commands
from docs.site.addresses import target_of
from docs.site.members import (
    Function,
    Property,
    constructor_of,
    function_of,
    methods_of,
    parameters_of,
    properties_of,
)

# before typer had a parser of its own, it lost what is said of arguments that may be left out
LOSES_ARGUMENTS = Version(version("typer")) < Version("0.26")


def test_every_public_name_is_there(site: Path) -> None:
    for name in sv.__all__:
        page = site / target_of(api.source_of(api.page_of(name)))
        assert f'id="{name}"' in page.read_text(encoding="utf-8"), name
        assert f'#{name}">' in (site / "api" / "index.html").read_text(encoding="utf-8"), name


def told(name: str) -> list[Function | Property]:
    """The functions, methods and properties that the reference tells of under a name."""
    thing = api.things()[name]
    if not isinstance(thing, type):
        return [function_of(name, thing, {})]
    if issubclass(thing, BaseException):
        return []
    return [constructor_of(name, thing), *methods_of(thing), *properties_of(thing)]


@pytest.mark.parametrize("name", list(api.things()))
def test_everything_public_and_each_of_its_parameters_is_described(name: str) -> None:
    assert api.things()[name].__doc__
    for each in told(name):
        assert each.doc.text, f"{name}: {each.name} has no docstring"
        if isinstance(each, Function):
            for parameter in each.parameters:
                assert parameter.text, f"{each.name}: {parameter.name} is not described"


def test_names_of_the_reference_are_public_or_shared_by_what_is() -> None:
    listed = [name for page in api.PAGES for name in api.names_on(page)]
    assert sorted(listed) == sorted(api.things())
    assert {name for names in api.NAMES.values() for name in names} <= set(api.things())


@pytest.mark.parametrize("command", list(commands.commands()), ids=lambda command: command.name)
def test_a_command_and_its_options_are_described(command: commands.Command, site: Path) -> None:
    page = (site / target_of(commands.SOURCE)).read_text(encoding="utf-8")
    assert f'id="{commands.anchor(command.name)}"' in page
    assert command.text
    for option in command.options:
        is_lost = LOSES_ARGUMENTS and not option.form.startswith("-")
        assert option.text or is_lost, option.form


def test_code_that_names_something_public_leads_to_it(site: Path) -> None:
    page = (site / "own-oracles.html").read_text(encoding="utf-8")
    assert 'href="api/plans.html#oracle"' in page
    assert 'href="commands.html#compare-oracles"' in page


def test_a_parameter_is_described_by_its_own_docstring_before_others() -> None:
    def sized(size: int, *, name: str = "a") -> None: ...

    first, second = parameters_of(sized, {"size": "in bits"})
    assert (first.name, first.kind, first.default, first.text) == ("size", "int", "", "in bits")
    assert (second.name, second.default, second.text) == ("name", "'a'", "")


def test_a_field_is_described_by_its_comment() -> None:
    described = {each.name: each.text for each in constructor_of("Plan", sv.Plan).parameters}
    assert described["asked"] == "the question, as JSON"
