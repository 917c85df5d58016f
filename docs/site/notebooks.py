"""Notebooks as Markdown, with what their cells show if they are run."""

from __future__ import annotations

import ast
import io
import json
import os
import tempfile
from collections.abc import Callable
from contextlib import chdir, redirect_stdout
from html import escape
from typing import Any

PLAIN = (str, dict, float, int)  # values that read well as Python writes them

Run = Callable[[str], str]


def shown(cell: str, space: dict[str, Any]) -> Any:
    """Run a cell as a notebook does.

    Args:
        cell: the code.
        space: the names that cells before it have made; its own are added.

    Returns:
        The value of its last expression; None if it ends with a statement.

    >>> shown("x = 2\\nx + 1", {})
    3
    """
    *body, last = ast.parse(cell).body
    if not isinstance(last, ast.Expr):
        body.append(last)
    exec(compile(ast.Module(body, []), "cell", "exec", dont_inherit=True), space)
    if not isinstance(last, ast.Expr):
        return None
    return eval(compile(ast.Expression(last.value), "cell", "eval", dont_inherit=True), space)


def output(cell: str, space: dict[str, Any]) -> str:
    """What a cell prints and shows, as HTML.

    >>> output("print(1)\\n'<b>'", {})
    '<pre>1\\n&#x27;&lt;b&gt;&#x27;</pre>'
    """
    printed = io.StringIO()
    with redirect_stdout(printed):
        value = shown(cell, space)
    text = printed.getvalue()
    if value is None or isinstance(value, PLAIN):
        text += "" if value is None else repr(value)
        return f"<pre>{escape(text)}</pre>" if text else ""
    page = str(value._repr_html_())
    if "<script" in page:
        raise ValueError(f"a cell shows a script: {cell[:60]}")
    return (f"<pre>{escape(text)}</pre>" if text else "") + page


def notebook_text(stored: str, is_run: bool = False) -> str:
    """A notebook as Markdown: its prose, its code as blocks, and what the code shows.

    Args:
        stored: the notebook as it is stored, without what it shows.
        is_run: whether its cells are run, in a folder of their own.
    """
    parts = []
    space: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, chdir(folder if is_run else os.curdir):
        for cell in json.loads(stored)["cells"]:
            text = "".join(cell["source"])
            if cell["cell_type"] == "markdown":
                parts.append(text)
                continue
            parts.append(f"```python\n{text}\n```")
            page = output(text, space) if is_run else ""
            if page:
                parts.append(f"````shown\n{page}\n````")
    return "\n\n".join(parts)
