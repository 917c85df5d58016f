"""What the site holds, in the order of its navigation."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from docs.site import api, commands
from docs.site.addresses import ROOT


class Entry(NamedTuple):
    """A page: its source, from the root of the repository, and what the navigation calls it."""

    source: str
    label: str


class Part(NamedTuple):
    """Pages that belong together."""

    title: str
    entries: tuple[Entry, ...]


GALLERY = "docs/gallery.md"  # made, not written, as the references are
MADE = frozenset({GALLERY, commands.SOURCE, *api.sources()})

CONTENTS = (
    Part(
        "Start",
        (
            Entry("docs/index.md", "Home"),
            Entry("README.md", "In one page"),
        ),
    ),
    Part(
        "Tutorials",
        (
            Entry("docs/tutorials/researcher.md", "For a survey researcher"),
            Entry("docs/tutorials/engineer.md", "For a product engineer"),
            Entry("docs/tutorials/student.md", "For a student of the field"),
            Entry("docs/trials/spreadsheet.md", "Spreadsheet to report"),
            Entry("docs/trials/team.md", "A team's survey"),
            Entry("docs/trials/oracle.md", "An oracle in a package"),
            Entry("docs/trials/method.md", "A method in a package"),
        ),
    ),
    Part(
        "How to",
        (
            Entry("docs/how-to.md", "What do you want to do?"),
            Entry("docs/people.md", "Read a file of people"),
            Entry("docs/report.md", "Report a survey"),
            Entry("docs/analysis.md", "Use marginals"),
            Entry("docs/studio.md", "Run the studio"),
            Entry("docs/collector.md", "Run a collector"),
            Entry("docs/many-collectors.md", "Run many collectors"),
            Entry("docs/shufflers.md", "Run shufflers"),
            Entry("docs/scale.md", "Fold many reports"),
            Entry("docs/own-oracles.md", "Bring an oracle"),
            Entry("docs/own-methods.md", "Bring a method or a question"),
            Entry("deploy/README.md", "Deploy"),
            Entry("clients/js/README.md", "Use it in a browser"),
        ),
    ),
    Part(
        "Questions and methods",
        (
            Entry("docs/marginals.md", "Marginals"),
            Entry("docs/sql.md", "Queries"),
            Entry("docs/popular.md", "Popular values and sets"),
            Entry("docs/central.md", "With a trusted curator"),
            Entry("docs/shuffle.md", "Shuffling"),
            Entry("docs/peos.md", "Shuffling under encryption"),
            Entry("docs/oracles.md", "Oracles"),
            Entry("docs/postprocessing.md", "Repairs"),
            Entry("docs/intervals.md", "Intervals"),
        ),
    ),
    Part(
        "Reference",
        (
            *(Entry(source, label) for source, label in api.sources().items()),
            Entry(commands.SOURCE, "Command line"),
            Entry("docs/sql-language.md", "SQL"),
            Entry("docs/wire.md", "The wire"),
        ),
    ),
    Part(
        "Honest pages",
        (
            Entry("docs/guarantees.md", "Guarantees"),
            Entry("docs/threat-model.md", "Threat model"),
            Entry("docs/known-limits.md", "Known limits"),
            Entry("docs/errata.md", "Errata of the papers"),
        ),
    ),
    Part(
        "Pictures and notebooks",
        (
            Entry(GALLERY, "Gallery"),
            Entry("docs/notebooks/README.md", "Notebooks"),
            Entry("docs/notebooks/survey.ipynb", "A survey"),
            Entry("docs/notebooks/telemetry.ipynb", "Telemetry"),
            Entry("docs/notebooks/sql.ipynb", "SQL over whispers"),
            Entry("docs/notebooks/methods.ipynb", "Methods compared"),
        ),
    ),
    Part(
        "The project",
        (
            Entry("docs/architecture.md", "Architecture"),
            Entry("CONTRIBUTING.md", "Contributing"),
            Entry("CHANGELOG.md", "Changes"),
            Entry("SECURITY.md", "Security"),
            Entry("docs/data.md", "Public tables"),
            Entry("docs/references.md", "Sources"),
            Entry("docs/third-party.md", "What others wrote"),
        ),
    ),
)


@cache
def parts() -> tuple[Part, ...]:
    """The navigation; pages in ``docs/`` that it does not name come last."""
    listed = {entry.source for part in CONTENTS for entry in part.entries}
    found = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.ipynb")]
    others = sorted({path.relative_to(ROOT).as_posix() for path in found} - listed)
    if not others:
        return CONTENTS
    more = tuple(Entry(source, title(source)) for source in others)
    return (*CONTENTS, Part("More", more))


def title(source: str) -> str:
    """The first heading of a page."""
    first = (ROOT / source).read_text(encoding="utf-8").partition("\n")[0]
    return first.removeprefix("# ") if first.startswith("# ") else source


def entries() -> list[Entry]:
    """All pages in order."""
    return [entry for part in parts() for entry in part.entries]
