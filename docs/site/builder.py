"""The site: every page rendered, every link checked, all of it written into one folder."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from docs.site import api, commands, search
from docs.site.addresses import ROOT, between, copy_of, file_of, target_of
from docs.site.contents import entries, parts
from docs.site.markdown import Rendered, render
from docs.site.sources import sources

HERE = Path(__file__).parent
# code in a text that is a link: `sv.plan(...)`, `sottovoce plan survey.toml`
PUBLIC = re.compile(r"^(?:sv|sottovoce)\.(\w+)(?:\(.*\))?$", re.DOTALL)
KIND = re.compile(r"^([A-Z]\w+)$")  # within the reference, where classes stand by their names
COMMAND = re.compile(r"^sottovoce ([a-z-]+(?: [a-z-]+)?)(?: |$)")
STATIC = ("site.css", "site.js")


@dataclass
class Builder:
    """Renders pages one by one, and remembers where their links lead."""

    texts: dict[str, str]
    copies: dict[str, str] = field(default_factory=dict)  # address of each file that is no page
    leads: list[tuple[str, str, str]] = field(default_factory=list)  # page, page, anchor
    faults: list[str] = field(default_factory=list)

    def page(self, source: str) -> Rendered:
        """One page as HTML."""
        return render(
            self.texts[source],
            lambda href: self.link(source, href),
            lambda path: self.picture(source, path),
            lambda words: self.reference(source, words),
        )

    def reference(self, source: str, words: str) -> str | None:
        """The address of what code in a text names: something public, or a command."""
        named, called = PUBLIC.match(words), COMMAND.match(words)
        if named is None and source.startswith(api.FOLDER):
            named = KIND.match(words)
        target = None
        if named and named.group(1) in api.things():
            target, anchor = api.source_of(api.page_of(named.group(1))), named.group(1)
        elif called and commands.known(called.group(1)):
            target, anchor = commands.SOURCE, commands.anchor(commands.known(called.group(1)))
        if target is None or target not in self.texts:
            return None
        return self.link(source, f"{between(source, target)}#{anchor}")

    def link(self, source: str, href: str) -> str:
        """The address to which a link of a page leads."""
        if "://" in href or href.startswith("mailto:"):
            return href
        path, _, anchor = unquote(href).partition("#")
        file = self.found(source, path) if path else source
        if file is None:
            self.faults.append(f"{source}: no such file: {href}")
            return href
        if file not in self.texts:
            return between(target_of(source), self.copied(file))
        self.leads.append((source, file, anchor))
        address = between(target_of(source), target_of(file)) if path else ""
        return f"{address}#{anchor}" if anchor else address

    def found(self, source: str, path: str) -> str | None:
        """The page or file that a path in a page names."""
        made = (Path("/") / source).parent.joinpath(path)
        plain = made.resolve().relative_to("/").as_posix()
        return plain if plain in self.texts else file_of(source, path)

    def copied(self, file: str) -> str:
        self.copies[file] = copy_of(file)
        return self.copies[file]

    def picture(self, source: str, path: str) -> str:
        file = file_of(source, path)
        if file is None:
            self.faults.append(f"{source}: no such picture: {path}")
            return path
        return between(target_of(source), self.copied(file))

    def check(self, pages: dict[str, Rendered]) -> None:
        """Note every link whose anchor is not there."""
        for source, file, anchor in self.leads:
            if anchor and anchor not in pages[file].anchors:
                self.faults.append(f"{source}: no such heading: {file}#{anchor}")


def build(output: Path, is_run: bool = False) -> list[str]:
    """Write the site into a folder, and return what is wrong with it.

    Args:
        output: the folder; what was there is replaced.
        is_run: whether notebooks are run, and show what they show.
    """
    builder = Builder(sources(is_run))
    pages = {entry.source: builder.page(entry.source) for entry in entries()}
    builder.check(pages)

    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    for name in STATIC:
        shutil.copy(HERE / name, output / name)
    for file, address in builder.copies.items():
        (output / address).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, output / address)
    index = [(target_of(source), page) for source, page in pages.items()]
    (output / "search.js").write_text(search.script(index), encoding="utf-8")
    _write_pages(output, pages)
    return builder.faults


def _write_pages(output: Path, pages: dict[str, Rendered]) -> None:
    environment = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    template = environment.get_template("page.html")
    listed = entries()
    for place, entry in enumerate(listed):
        target = target_of(entry.source)
        text = template.render(
            page=pages[entry.source],
            here=entry,
            parts=parts(),
            root=between(target, "x").removesuffix("x"),
            before=listed[place - 1] if place else None,
            after=listed[place + 1] if place + 1 < len(listed) else None,
            address=lambda source, target=target: between(target, target_of(source)),
        )
        path = output / target
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
