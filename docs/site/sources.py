"""The pages as they are written: Markdown files, notebooks, and what is made from the code."""

from __future__ import annotations

import re

from docs.site import api, commands
from docs.site.addresses import ROOT
from docs.site.contents import GALLERY, MADE, entries
from docs.site.notebooks import notebook_text

PICTURE = re.compile(r"!\[([^\]]+)\]\(([^)\s]+)\)")


def text_of(source: str, is_run: bool = False) -> str:
    """A page of the repository, as Markdown.

    Args:
        source: its file.
        is_run: whether the cells of a notebook are run, and show what they show.
    """
    text = (ROOT / source).read_text(encoding="utf-8")
    return notebook_text(text, is_run) if source.endswith(".ipynb") else text


def gallery(texts: dict[str, str]) -> str:
    """All pictures of the pages, each with its words and the page that explains it."""
    parts = ["# Gallery", "Every picture of these pages; the link below it leads to its figures."]
    seen = set()
    for source, text in texts.items():
        folder = "../" if not source.startswith("docs/") else ""
        page = f"{folder}{source.removeprefix('docs/')}"
        title = text.partition("\n")[0].removeprefix("# ")
        for words, path in PICTURE.findall(text):
            picture = path.removeprefix("docs/")
            if picture not in seen:
                seen.add(picture)
                parts.append(f"![{words}]({picture})\n\n{words}: [{title}]({page}).")
    return "\n\n".join(parts)


def sources(is_run: bool = False) -> dict[str, str]:
    """Every page of the navigation, by its source; ``is_run`` as of :func:`text_of`."""
    listed = [entry.source for entry in entries()]
    texts = {source: text_of(source, is_run) for source in listed if source not in MADE}
    texts |= {**api.texts(), commands.SOURCE: commands.text(), GALLERY: gallery(texts)}
    return {source: texts[source] for source in listed}
