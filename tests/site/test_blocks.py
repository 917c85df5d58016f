"""Every block of code on the site is run by a test, or read as its own program reads it."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest
import typer
from sqlglot import parse

from docs.site.addresses import ROOT
from docs.site.contents import MADE, entries
from docs.site.sources import text_of
from sottovoce.cli import app
from sottovoce.ground.labels import visible

BLOCK = re.compile(r"^ *```(\w*)[^\n]*\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
# by which tests the Python of a page is run, all of it in the order of the page
RUN_BY = {
    r"README\.md|docs/[\w-]+\.md": "tests/unit/test_docs.py",
    r"docs/trials/(\w+)\.md": r"tests/trials/test_\1.py",
    r"docs/tutorials/\w+\.md": "tests/trials/test_tutorials.py",
    r"docs/notebooks/\w+\.ipynb": "tests/trials/test_notebooks.py",
    r"CONTRIBUTING\.md": "tests/contract/test_oracles.py",
}
COMMANDS = typer.main.get_command(app)
SHOWN_ALONE = ("", "text", "console", "sh", "nginx", "diff")  # their commands are looked at below
STARTS = ("sottovoce", ".venv/bin/sottovoce")
ENDS = {"&", "|", "&&", ";", ">", "<", "2>"}


class Block(NamedTuple):
    """A block of a page."""

    page: str
    kind: str
    text: str


def blocks() -> list[Block]:
    pages = [entry.source for entry in entries() if entry.source not in MADE]
    return [Block(page, *found) for page in pages for found in BLOCK.findall(text_of(page))]


def of(*kinds: str) -> list[Block]:
    return [block for block in blocks() if block.kind in kinds]


def commands(text: str) -> list[list[str]]:
    """The commands of ``sottovoce`` in a block, each as the words that a shell gives it."""
    found = []
    for line in re.sub(r"\\\n", " ", text).splitlines():
        plain = re.sub(r"^\s*(\$ )?", "", line)
        if plain.split(" ")[0] in STARTS:
            words = shlex.split(plain, comments=True)[1:]
            end = next((place for place, word in enumerate(words) if word in ENDS), len(words))
            found.append(words[:end])
    return found


def listed() -> list[Block]:
    """The commands of the page of tasks, which stand in its tables."""
    page = "docs/how-to.md"
    return [Block(page, "", each) for each in re.findall(r"`(sottovoce [^`]+)`", text_of(page))]


def test_words_of_a_command() -> None:
    text = "$ sottovoce plan a.toml \\\n  -o 'b c.json' &   # a\nls\n.venv/bin/sottovoce demo | cat"
    assert commands(text) == [["plan", "a.toml", "-o", "b c.json"], ["demo"]]


def check_command(words: list[str]) -> None:
    """Read a command line as the command does; nothing is run."""
    command = COMMANDS
    while words and hasattr(command, "commands") and words[0] in command.commands:
        command, words = command.commands[words[0]], words[1:]
    if hasattr(command, "commands"):
        assert words in ([], ["--help"], ["--version"]), words
    else:
        command.make_context(command.name, list(words))


def test_every_command_can_be_given() -> None:
    checked = 0
    for block in [*blocks(), *listed()]:
        for words in commands(block.text):
            try:
                check_command(words)
            except Exception as wrong:
                told = visible(str(getattr(wrong, "message", wrong)))
                pytest.fail(f"{block.page}: sottovoce {' '.join(words)}: {told}")
            checked += 1
    assert checked > 100


def test_a_command_that_cannot_be_given_is_refused() -> None:
    for words in (["plan"], ["plan", "a.toml", "--frozen"], ["plans", "a.toml"]):
        with pytest.raises(Exception):  # noqa: B017  (click's own, of whichever click there is)
            check_command(words)


def test_python_is_run() -> None:
    for block in of("python"):
        runners = [
            re.sub(f"^(?:{pages})$", test, block.page)
            for pages, test in RUN_BY.items()
            if re.fullmatch(pages, block.page)
        ]
        assert runners, f"{block.page}: nothing runs its Python"
        assert (ROOT / runners[0]).is_file(), f"{block.page}: {runners[0]} is not there"


def test_every_kind_of_block_is_known() -> None:
    read = {"python", "toml", "json", "sql", "js", *SHOWN_ALONE}
    assert {block.kind for block in blocks()} <= read


def test_toml_json_and_sql_are_read() -> None:
    for block in of("toml"):
        tomllib.loads(block.text)
    for block in of("json"):
        json.loads(block.text)
    for block in of("sql"):
        assert parse(block.text, read="duckdb"), block.page


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is missing")
def test_javascript_is_read(tmp_path: Path) -> None:
    for number, block in enumerate(of("js")):
        file = tmp_path / f"{number}.mjs"
        file.write_text(block.text, encoding="utf-8")
        done = subprocess.run(
            ["node", "--check", file], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{block.page}: {done.stderr}"


def test_targets_and_modules_that_are_named_are_there() -> None:
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    for block in of(*SHOWN_ALONE):
        for line in block.text.splitlines():
            made = re.match(r"make ([\w-]+)", line)
            assert made is None or made.group(1) in targets, f"{block.page}: {line}"
            module = re.search(r"python -m ((?:bench|docs)[\w.]*)", line)
            assert module is None or find_spec(module.group(1)), f"{block.page}: {line}"
