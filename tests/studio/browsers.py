"""Chromium for the tests: people with fixed coins, a log of all that leaves, and what every page
must keep to.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.waiting import HANG

NOW = 1000 * int(time.time())  # a collector refuses ids of minutes that are far away

# Coins from a tape, and a clock that stands still: two visits differ by their answers alone.
FIXED = """
    const tape = Uint8Array.from("%s".match(/../g), (pair) => parseInt(pair, 16));
    let place = 0;
    crypto.getRandomValues = (out) => {
      const bytes = new Uint8Array(out.buffer, out.byteOffset, out.byteLength);
      if (place + bytes.length > tape.length) throw new Error("the tape is too short");
      bytes.set(tape.subarray(place, place + bytes.length));
      place += bytes.length;
      return out;
    };
    Date.now = () => %d;
"""


class Request(NamedTuple):
    """What a server gets to see."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    body: str


@dataclass
class Log:
    """What a browser did: everything that left it, and everything that went wrong."""

    requests: list[Any] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def note(self, request: Any) -> None:
        self.requests.append(request)

    def traffic(self, host: str) -> list[Request]:
        """All requests, sorted, since scripts load in any order; the host, wherever it stands, as
        ``HOST``.
        """

        def headers(request: Any) -> tuple[tuple[str, str], ...]:
            return tuple(
                sorted(
                    (name, value.replace(host, "HOST"))
                    for name, value in request.all_headers().items()
                )
            )

        return sorted(
            Request(
                each.method, each.url.replace(host, "HOST"), headers(each), each.post_data or ""
            )
            for each in self.requests
        )


@contextmanager
def visitor(chromium: Any, tape: bytes | None = None, **options: Any) -> Iterator[tuple[Any, Log]]:
    """A page in a browser with nothing in it, and its log; fails if the page complains."""
    context = chromium.new_context(**options)
    context.set_default_timeout(1000 * HANG)
    if tape is not None:
        context.add_init_script(FIXED % (tape.hex(), NOW))
    log = Log()
    context.on("request", log.note)
    context.on(
        "console",
        lambda message: message.type in ("error", "warning") and log.wrong.append(message.text),
    )
    context.on("weberror", lambda wrong: log.wrong.append(str(wrong.error)))
    try:
        yield context.new_page(), log
        assert log.wrong == []
    finally:
        context.close()


# What a screen reader needs, and what a search for it finds: a list of complaints.
RULES = """() => {
  const wrong = [];
  const seen = (each) => each.checkVisibility();
  for (const each of document.querySelectorAll("input:not([type=hidden]), select, textarea")) {
    const called = each.getAttribute("aria-label") || each.getAttribute("aria-labelledby");
    const named = each.labels?.length || called;
    if (!named) wrong.push(`no label: ${each.outerHTML}`);
  }
  for (const each of document.querySelectorAll("img:not([alt])")) {
    wrong.push(`no alt: ${each.outerHTML}`);
  }
  for (const each of document.querySelectorAll("button, a, summary")) {
    const words = each.textContent.trim() || each.getAttribute("aria-label");
    if (seen(each) && !words) wrong.push(`no words: ${each.outerHTML}`);
  }
  for (const svg of document.querySelectorAll("svg")) {
    if (!svg.closest("[role=img][aria-label]")) wrong.push("a chart without words");
  }
  const ids = [...document.querySelectorAll("[id]")].map((each) => each.id);
  for (const id of new Set(ids)) {
    if (ids.filter((each) => each === id).length > 1) wrong.push(`id twice: ${id}`);
  }
  for (const name of ["aria-labelledby", "aria-describedby", "for"]) {
    for (const each of document.querySelectorAll(`[${name}]`)) {
      const target = document.getElementById(each.getAttribute(name));
      if (!target) wrong.push(`${name} leads nowhere: ${each.outerHTML}`);
    }
  }
  const headings = [...document.querySelectorAll("h1, h2, h3, h4")].filter(seen);
  const levels = headings.map((each) => Number(each.tagName[1]));
  const tops = levels.filter((level) => level === 1).length;
  const skips = levels.filter((level, place) => place && level > levels[place - 1] + 1);
  if (tops !== 1 || levels[0] !== 1 || skips.length) wrong.push(`headings: ${levels}`);
  if (!document.documentElement.lang || !document.title) wrong.push("no language or title");
  for (const mark of ["header", "main", "footer"]) {
    if (document.querySelectorAll(mark).length !== 1) wrong.push(`there must be one ${mark}`);
  }
  const wide = document.documentElement.scrollWidth;
  if (wide > innerWidth) wrong.push(`wider than the window: ${wide}`);
  return wrong;
}"""

# Contrast of all text that shows, by WCAG's formula: 4.5, or 3 if it is large.
CONTRAST = """() => {
  const parse = (text) => (text.match(/[\\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
  const light = ([r, g, b]) => {
    const linear = (part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    const [x, y, z] = [r, g, b].map((part) => linear(part / 255));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const ground = (each) => {
    for (let at = each; at; at = at.parentElement) {
      const [r, g, b, a = 1] = parse(getComputedStyle(at).backgroundColor);
      if (a === 1) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const wrong = [];
  for (const each of document.querySelectorAll("body *")) {
    const texts = [...each.childNodes].filter((node) => node.nodeType === 3);
    const says = texts.some((node) => node.textContent.trim());
    const passed = each.closest(".chart.heat, :disabled, .unseen, noscript, .skip");
    if (!says || !each.checkVisibility() || passed) continue;
    const style = getComputedStyle(each);
    const one = light(parse(each.closest("svg") ? style.fill : style.color));
    const two = light(ground(each));
    const ratio = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
    const size = parseFloat(style.fontSize);
    const least = size >= 24 || (size >= 18.66 && style.fontWeight >= 700) ? 3 : 4.5;
    const isHalo = each.getAttribute("stroke") === "white";
    const words = each.textContent.trim().slice(0, 40);
    if (ratio < least && !isHalo) wrong.push(`${ratio.toFixed(2)}: ${each.tagName} ${words}`);
  }
  return wrong;
}"""
