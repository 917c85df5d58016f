"""The index of the search: which section holds which word, as a script that a page loads."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Sequence

from docs.site.markdown import Rendered, Section

WORD = re.compile(r"[^\W_]+")
TITLE_WEIGHT, HEADING_WEIGHT, TEXT_WEIGHT = 40, 25, 10
USUAL_LENGTH = 120  # words of a section; a word says less about a longer one


def words_of(text: str) -> list[str]:
    """The words that a search finds; ``site.js`` takes a query apart in the same way.

    >>> words_of("`sv.dependency_tree`, 2^20 values")
    ['sv', 'dependency', 'tree', '2', '20', 'values']
    """
    return WORD.findall(text.lower())


def weights(title: str, section: Section) -> Counter[str]:
    """How much each word says about a section."""
    found: Counter[str] = Counter()
    text = words_of(section.text)
    for word, times in Counter(text).items():
        # Okapi's share of a word: repeats say less and less, and less in a long text
        damping = 0.3 + 0.9 * len(text) / USUAL_LENGTH
        found[word] += math.ceil(TEXT_WEIGHT * 2.2 * times / (times + damping))
    for word in set(words_of(section.heading)):
        found[word] += HEADING_WEIGHT
    if section.level == 1:
        for word in set(words_of(title)):
            found[word] += TITLE_WEIGHT
    return found


def script(pages: Sequence[tuple[str, Rendered]]) -> str:
    """``SEARCH``: pages (address, title), sections (page, anchor, heading, text), and for each word
    its sections and weights in turn.
    """
    sections = []
    index: dict[str, list[int]] = {}
    for number, (_, page) in enumerate(pages):
        for section in page.sections:
            for word, weight in weights(page.title, section).items():
                index.setdefault(word, []).extend((len(sections), weight))
            sections.append([number, section.anchor, section.heading, section.text])
    parts = {
        "pages": [[target, page.title] for target, page in pages],
        "sections": sections,
        "words": dict(sorted(index.items())),
    }
    text = json.dumps(parts, ensure_ascii=False, separators=(",", ":"))
    return f"window.SEARCH = {text};\n"
