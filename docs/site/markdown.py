"""Markdown as HTML: headings with anchors, links within the site, code in colours."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

COLOURED = HtmlFormatter(nowrap=True)
SHOWN = "shown"  # the language of a block that holds the HTML of a notebook's output
ANCHOR = re.compile(r" \{#([\w.-]+)\}$")
HEADINGS = ("h2", "h3")  # that stand beside a page as its contents


@dataclass(frozen=True)
class Section:
    """A heading with the words below it, up to the next heading."""

    level: int
    heading: str
    anchor: str
    text: str


@dataclass(frozen=True)
class Rendered:
    """A page as HTML, and what a search finds in it."""

    body: str
    sections: tuple[Section, ...]

    @property
    def title(self) -> str:
        return self.sections[0].heading

    @property
    def anchors(self) -> set[str]:
        return {section.anchor for section in self.sections}

    @property
    def contents(self) -> list[Section]:
        """What the reader sees of the page at a glance."""
        return [section for section in self.sections if f"h{section.level}" in HEADINGS]


@dataclass
class Anchors:
    """Names of headings as GitHub makes them; a second one of a name gets a number."""

    used: dict[str, int] = field(default_factory=dict)

    def name(self, heading: str) -> str:
        """
        >>> names = Anchors()
        >>> names.name("A device's `draws`"), names.name("Rounds"), names.name("Rounds")
        ('a-devices-draws', 'rounds', 'rounds-1')
        """
        plain = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        seen = self.used.get(plain, 0)
        self.used[plain] = seen + 1
        return f"{plain}-{seen}" if seen else plain


def words(tokens: Sequence[Token]) -> str:
    """What a reader sees of a piece of text, without its marks."""
    shown = [token for token in tokens if token.type in ("text", "code_inline", "softbreak")]
    return "".join(" " if token.type == "softbreak" else token.content for token in shown)


def _coloured(text: str, language: str) -> str:
    try:
        lexer = get_lexer_by_name(language, stripnl=False)
    except ClassNotFound:
        return escape(text)
    return str(highlight(text, lexer, COLOURED))


def _fence(token: Token) -> str:
    """A block of code; the name of its file stands above it."""
    language, _, more = token.info.strip().partition(" ")
    if language == SHOWN:
        return f'<div class="shown wide">{token.content}</div>\n'
    named = re.search(r"file=(\S+)", more)
    caption = f'<p class="file">{escape(named.group(1))}</p>' if named else ""
    code = _coloured(token.content, language or "text")
    return f'{caption}<pre tabindex="0"><code>{code}</code></pre>\n'


def _comment(token: Token) -> str:
    """Nothing: comments are for who writes a page, and other HTML is not for pages."""
    if not re.fullmatch(r"\s*(<!--.*?-->\s*)+", token.content, re.DOTALL):
        raise ValueError(f"line {token.map}: HTML in Markdown: {token.content.strip()[:60]}")
    return ""


RULES: dict[str, Callable[[Token], str]] = {
    "fence": _fence,
    "code_block": _fence,
    "html_block": _comment,
    "html_inline": _comment,
    "table_open": lambda _: '<div class="wide" tabindex="0"><table>\n',
    "table_close": lambda _: "</table></div>\n",
}


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    for kind, rule in RULES.items():
        parser.renderer.rules[kind] = (  # type: ignore[attr-defined]
            lambda tokens, place, *_, rule=rule: rule(tokens[place])
        )
    return parser


PARSER = _parser()


def _referring(tokens: Sequence[Token], reference: Callable[[str], str | None]) -> Iterator[Token]:
    """The parts of a text; code that names something known becomes a link to it."""
    is_link = False
    for token in tokens:
        is_link = token.type == "link_open" or (is_link and token.type != "link_close")
        address = reference(token.content) if token.type == "code_inline" and not is_link else None
        if address is None:
            yield token
            continue
        yield Token("reference_open", "a", 1, attrs={"href": address})
        yield token
        yield Token("reference_close", "a", -1)


def _inner(tokens: Sequence[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _inner(token.children or [])


def render(
    text: str,
    link: Callable[[str], str] = str,
    picture: Callable[[str], str] = str,
    reference: Callable[[str], str | None] = lambda _: None,
) -> Rendered:
    """A page of Markdown.

    Args:
        text: the Markdown.
        link: what becomes of a link's target.
        picture: what becomes of a picture's address.
        reference: the address to which code within a text leads, if it does.

    >>> page = render("# One\\n\\nTwo [three](four.md).", lambda href: href.upper())
    >>> page.body
    '<h1 id="one">One</h1>\\n<p>Two <a href="FOUR.MD">three</a>.</p>\\n'
    >>> page.sections
    (Section(level=1, heading='One', anchor='one', text='Two three.'),)
    """
    tokens = PARSER.parse(text)
    for before, token in pairwise(tokens):
        if token.type == "inline" and before.type != "heading_open":
            token.children = list(_referring(token.children or [], reference))
    for token in _inner(tokens):
        if token.type == "link_open":
            token.attrSet("href", link(str(token.attrGet("href"))))
        if token.type == "image":
            token.attrSet("src", picture(str(token.attrGet("src"))))
            token.attrSet("loading", "lazy")
    sections = _sections(tokens)
    return Rendered(PARSER.renderer.render(tokens, PARSER.options, {}), tuple(sections))


def given_anchor(inline: Sequence[Token]) -> str:
    """The name that a heading gives itself, as in ``## Plan {#Plan}``; it is taken off."""
    named = ANCHOR.search(inline[-1].content) if inline else None
    if named is None:
        return ""
    inline[-1].content = inline[-1].content[: named.start()]
    return named.group(1)


def _sections(tokens: Sequence[Token]) -> list[Section]:
    """The sections of a page; its headings get their anchors."""
    anchors = Anchors()
    found: list[Section] = []
    text: list[str] = []
    for place, token in enumerate(tokens):
        if token.type == "heading_open":
            inline = tokens[place + 1].children or []
            anchor = given_anchor(inline) or anchors.name(words(inline))
            heading = words(inline)
            token.attrSet("id", anchor)
            _close(found, text)
            found.append(Section(int(token.tag[1]), heading, anchor, ""))
        elif token.type == "inline" and tokens[place - 1].type != "heading_open":
            text.append(words(token.children or []))
        elif token.type == "fence" and token.info != SHOWN:
            text.append(token.content)
    _close(found, text)
    return found


def _close(found: list[Section], text: list[str]) -> None:
    """Give the last section the text that was read."""
    if found:
        last = found[-1]
        joined = " ".join(" ".join(text).split())
        found[-1] = Section(last.level, last.heading, last.anchor, joined)
    text.clear()
