"""Take part: the questions, for somebody whose answers stay on her page; the browser draws."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

from anyio import CapacityLimiter, to_thread
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from sottovoce.protocol.plan import Plan
from sottovoce.results.averages import silent_number
from sottovoce.schema import (
    Attribute,
    Boolean,
    Categorical,
    FixedPoint,
    Integer,
    Items,
    Ordinal,
    Text,
)
from sottovoce.schema.attribute import Single
from sottovoce.store import Entry
from sottovoce.studio.access import cookie_name
from sottovoce.studio.languages import chosen_language, words
from sottovoce.studio.page_context import PAGE_POLICY, Studio

MOST_BUTTONS = 8  # choices that are shown side by side; more become a list
MAX_LIST_CHOICES = 1000  # choices of one attribute
MAX_PAGE_CHOICES = 4000  # choices of all lists on a page
MAX_KEPT_BYTES = 16 << 20  # bytes of pages that are kept


@dataclass(frozen=True)
class FormField:
    """How one attribute is asked for: by ``buttons``, a ``list`` or ``checks`` of (code, label), as
    a ``number``, in ``digits``, as a ``decimal`` or as ``text``; ``typed`` if there are more values
    than a page can show, ``none`` if they form a set.
    """

    name: str
    kind: str
    choices: list[tuple[int, Any]]
    low: int | str | None = None
    high: int | str | None = None
    step: int = 1
    longest: int | None = None
    in_clear: bool = False  # it is sent as it is, beside the whisper
    # what is reported for whoever leaves it out: the place of a choice, or a number
    missing: int | None = None


def field_of(name: str, attribute: Attribute, most: int = MAX_LIST_CHOICES) -> FormField:
    """The right field for an attribute; of a list the client takes the label at the chosen place.

    ``most``: choices that it may show.
    """
    if isinstance(attribute, Boolean):
        return FormField(name, "buttons", [(1, True), (0, False)])
    if isinstance(attribute, FixedPoint):
        return FormField(name, "decimal", [], attribute.low, attribute.high)
    if isinstance(attribute, Text):
        return FormField(
            name, "text", [], longest=attribute.bytes if attribute.longer == "refuse" else None
        )
    if isinstance(attribute, Integer) and attribute.size > most:
        return FormField(name, "digits", [], longest=len(str(attribute.size - 1)))
    if isinstance(attribute, Items):
        if attribute.size > most:
            return FormField(name, "none", [])
        return FormField(name, "checks", list(enumerate(attribute.labels())))
    if isinstance(attribute, Ordinal) and (
        attribute.bins is not None or attribute.size > MOST_BUTTONS
    ):
        low, high = _typed_range(attribute)
        return FormField(name, "number", [], low, high)
    if (
        isinstance(attribute, Categorical)
        and isinstance(attribute.values, range)
        and attribute.size > most
    ):
        ends = sorted((attribute.values[0], attribute.values[-1]))
        return FormField(name, "number", [], ends[0], ends[1], abs(attribute.values.step))
    kind = "buttons" if attribute.size <= MOST_BUTTONS else "list"
    if kind == "list" and attribute.size > most:
        return FormField(name, "typed", [])
    return FormField(name, kind, list(enumerate(attribute.labels())))


def missing_of(attribute: Attribute, kind: str) -> int | None:
    """What a field reports for whoever leaves it out; None if nobody may."""
    other = attribute.other if isinstance(attribute, Single) else None
    if kind in ("buttons", "list") and other is not None:
        return attribute.code(other)
    # a number that shares its bin with others would be counted as one of them
    return silent_number(attribute) if kind == "number" else None


def _typed_range(attribute: Ordinal) -> tuple[int, int]:
    """The numbers that people type: all but the one that stands for no answer."""
    low, high, silent = attribute.low, attribute.high, silent_number(attribute)
    return low + (silent == low), high - (silent == high)


def fields_of(plan: Plan) -> list[FormField]:
    """Those that any cohort is asked about, and those that travel in clear,
    in the schema's order.
    """
    asked, in_clear = set(plan.cohorts.attributes), set(plan.columns)
    fields: list[FormField] = []
    left = MAX_PAGE_CHOICES
    for name, attribute in plan.schema.items():
        if name in asked or name in in_clear:
            made = field_of(name, attribute, max(MOST_BUTTONS, min(MAX_LIST_CHOICES, left)))
            missing = None if name in in_clear else missing_of(attribute, made.kind)
            fields.append(replace(made, in_clear=name in in_clear, missing=missing))
            left -= len(fields[-1].choices)
    return fields


def receiver_of(plan: Plan, shuffler: str | None) -> str | None:
    """Where the page sends sealed reports; None for plans that are not shuffled, and if it cannot
    seal them or does not know where the first shuffler is.
    """
    is_sealed = plan.shuffling is not None and bool(plan.shuffling.hops)
    return shuffler if is_sealed else None


class Pages:
    """The last pages that were rendered, in so many bytes: a page is the same for all."""

    def __init__(self, most: int = MAX_KEPT_BYTES) -> None:
        self._most, self._size = most, 0
        self._lock = Lock()
        self._pages: OrderedDict[Hashable, bytes] = OrderedDict()

    def get(self, key: Hashable) -> bytes | None:
        with self._lock:
            if key in self._pages:
                self._pages.move_to_end(key)
            return self._pages.get(key)

    def put(self, key: Hashable, page: bytes) -> None:
        """Keep a page; the oldest go if they take too much."""
        with self._lock:
            self._size += len(page) - len(self._pages.pop(key, b""))
            self._pages[key] = page
            while self._size > self._most:
                self._size -= len(self._pages.popitem(last=False)[1])


def routes(studio: Studio) -> list[Route]:
    """One page, for everybody."""
    pages = Pages()
    # a thread of its own, so that no other page waits; and each page is made once
    rendering = CapacityLimiter(1)
    policy = PAGE_POLICY.replace("form-action 'self'", "form-action 'none'")
    sealed = policy.replace("connect-src 'self'", f"connect-src 'self' {studio.shuffler}")

    def rendered(request: Request, key: Hashable, entry: Entry, language: str) -> bytes:
        page = pages.get(key)  # perhaps somebody before had it made
        if page is None:
            plan = entry.plan
            receiver = receiver_of(plan, studio.shuffler)
            is_open = not entry.closed and (plan.shuffling is None or receiver is not None)
            shown = {
                "entry": entry,
                "texts": entry.texts,
                "t": words(language),
                "plan": plan,
                "is_open": is_open,
                "shuffling": plan.shuffling,
                "shuffler": receiver,
                "fields": fields_of(plan) if is_open else [],
            }
            page = bytes(
                studio.render(
                    request, "take.html", guess=plan.guarantee.best_guess(0.5), **shown
                ).body
            )
            pages.put(key, page)
        return page

    async def take(request: Request) -> Response:
        if studio.address not in (None, f"{request.url.scheme}://{request.url.netloc}"):
            query = f"?{request.url.query}" if request.url.query else ""
            return RedirectResponse(f"{studio.address}{request.url.path}{query}", 307)
        entry = await run_in_threadpool(studio.service.entry, request.path_params["id"])
        has_login = cookie_name(request) in request.cookies
        language = chosen_language(
            request.query_params.get("lang"),
            entry.texts.language or studio.language,
            request.headers.get("accept-language", ""),
        )
        base = request.scope["root_path"]
        key = (entry.plan.id, entry.texts.to_text(), entry.closed, base, has_login, language)
        page = pages.get(key)
        if page is None:
            page = await to_thread.run_sync(
                rendered, request, key, entry, language, limiter=rendering
            )
        is_sealed = receiver_of(entry.plan, studio.shuffler) is not None
        return HTMLResponse(
            page,
            headers={
                "Content-Security-Policy": sealed if is_sealed else policy,
                "Cache-Control": "no-store",
                "Vary": "Accept-Language",
            },
        )

    return [Route("/take/{id:str}", studio.access.public(take), methods=["GET"])]
