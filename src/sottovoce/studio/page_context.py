"""What all pages share: the survey service, access, background jobs, templates to answers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse

from sottovoce.pages.parts import paragraphs
from sottovoce.protocol.guarantee import at_most, at_most_percent
from sottovoce.service.survey_service import SurveyService
from sottovoce.studio import kept_estimates
from sottovoce.studio.access import Access, cookie_name
from sottovoce.studio.background_jobs import BackgroundJobs

# Nothing but what this server sends: no inline scripts, no other sites, no frames.
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src "
    "'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("sottovoce.studio"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "whole": "{:,}".format,
        "percent": percent,
        "day": day,
        "listed": listed,
        "drawn": Markup,
        "paragraphs": lambda text: Markup(paragraphs(text)),
    }
    made.filters |= {"at_most": at_most, "at_most_percent": at_most_percent}
    for name in made.list_templates():
        made.get_template(name)  # now, so that no visitor waits for it
    return made


def percent(share: float, digits: int = 0) -> str:
    """A share in percent, with a real minus sign."""
    return f"{100 * share:.{digits}f}%".replace("-", "−")


def day(when: float) -> str:
    """A moment, as people write it, in the server's time."""
    return time.strftime("%-d %B %Y, %H:%M", time.localtime(when))


def listed(names: Sequence[str]) -> str:
    """a, b and c"""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


@dataclass(frozen=True)
class Studio:
    """What every page needs."""

    service: SurveyService
    access: Access
    address: str | None = None  # the one of participants' pages, if there is one
    shuffler: str | None = None  # the first one's address, if reports are sealed and sent there
    language: str | None = None  # of participants' pages; by default what the browser prefers
    jobs: BackgroundJobs = field(default_factory=BackgroundJobs)
    templates: Environment = field(default_factory=_environment)

    def warm(self) -> None:
        """Somebody looks: start a background process, so that it is ready when it is needed."""
        self.jobs.ask("warm", kept_estimates.warm)

    def render(
        self, request: Request, template: str, status: int = 200, /, **context: Any
    ) -> HTMLResponse:
        """A page from a template."""
        base = request.scope["root_path"]
        text = self.templates.get_template(template).render(
            base=base,
            collector=base.removesuffix("/studio"),
            has_login=cookie_name(request) in request.cookies,
            **context,
        )
        return HTMLResponse(
            text, status, {"Content-Security-Policy": PAGE_POLICY, "Cache-Control": "no-store"}
        )
