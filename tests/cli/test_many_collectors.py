"""Reports of several stores from the command line: shipped, folded by the minute, estimated."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

import sottovoce as sv
from sottovoce.console.surveys import read_plan
from sottovoce.protocol.reports import Reports
from sottovoce.store import open_store
from tests.cli.helpers import Command, Files, refused
from tests.store.crowds import ids


@pytest.fixture
def stores(files: Files) -> list[str]:
    """Two stores: 2,000 reports each, 1,000 of them in both."""
    plan, reports = read_plan(files.plan), Reports.read(files.reports)
    urls = [f"sqlite:///{files.folder}/{name}.db" for name in ("one", "two")]
    for start, url in zip((0, 1000), urls, strict=True):
        with open_store(url) as opened:
            opened.add_plan(plan, sv.Texts("Colours"))
            for seed in range(start, start + 2000, 500):
                opened.append(plan, ids(500, seed, seed), reports[seed : seed + 500])
    return urls


def test_from_stores_to_an_estimate(
    sottovoce: Command, files: Files, stores: list[str], tmp_path: Path
) -> None:
    place = tmp_path / "collected"
    for url in stores:
        shipped = sottovoce("ship", url, "--to", place)
        assert shipped.out == f"2,000 reports shipped to {place} in 4 files\n"
    assert json.loads(sottovoce("ship", stores[0], "--to", place, "--json").out) == {
        "reports": 0,
        "files": 0,
        "damaged": 0,
        "closed": 0,
    }
    refused(sottovoce("estimate", files.plan, place), "must hold a total of the plan")
    folded = sottovoce("fold-minutes", files.plan, place, "--keep")
    assert folded.out == ("6 minutes folded; 3,000 people on 3 days, 1,000 duplicates left out\n")
    told = [
        sottovoce("estimate", files.plan, source, "--json").out for source in (place, files.reports)
    ]
    assert told[0] == told[1]
    over = sottovoce("fold-minutes", files.plan, place)
    assert "is over: its reports and ids are deleted" in over.out
    assert not list(place.glob("plan=*/minute=*/*"))
    assert sottovoce("estimate", files.plan, place, "--json").out == told[1]
    again = json.loads(sottovoce("ship", stores[0], "--to", place, "--again", "--json").out)
    assert again["reports"] == 2000
    counted = json.loads(sottovoce("fold-minutes", files.plan, place, "--json").out)
    assert (counted["people"], counted["late_segments"]) == (3000, 0)  # what was counted is known
    assert not list(place.glob("plan=*/minute=*/*"))
    with open_store(stores[0]) as opened:
        plan = opened.entries()[0].plan
        opened.append(plan, ids(5, 9, 0), Reports.read(files.reports)[:5])
    sottovoce("ship", stores[0], "--to", place)
    assert "Too late, and set aside: minute=" in sottovoce("fold-minutes", files.plan, place).out
    noted = sottovoce("estimate", files.plan, place, "--json")
    assert (noted.out, "0 damaged ones, 1 that came too late" in noted.err) == (told[1], True)


def test_bad_input(sottovoce: Command, files: Files, stores: list[str], tmp_path: Path) -> None:
    refused(
        sottovoce("ship", stores[0], "--to", "ftp://x:hidden@y/z"), "must be a folder, or a URL"
    )
    refused(sottovoce("ship", stores[0], "--to", tmp_path, "--plan", "00"), "no plan whose id")
    refused(
        sottovoce("ship", stores[0], "--to", tmp_path, "--again", "--every", "60"), "exclude each"
    )
    refused(sottovoce("ship", f"sqlite:///{tmp_path}/no.db", "--to", tmp_path), "must be a file")
    refused(sottovoce("fold-minutes", files.plan, "nonsense://x"), "must be a folder, or a URL")
    refused(sottovoce("fold-minutes", tmp_path / "no.json", tmp_path), "no.json")
    for place in (tmp_path / "no", files.plan, tmp_path):
        refused(sottovoce("fold-minutes", files.plan, place), str(place), "holds nothing of the")


def test_what_was_shipped_is_not_read_as_files(
    sottovoce: Command, files: Files, stores: list[str], tmp_path: Path
) -> None:
    """Some reports are in two segments: only what was folded holds each of them once."""
    place = tmp_path / "collected"
    for url in stores:
        sottovoce("ship", url, "--to", place)
    (shipped,) = place.iterdir()
    minute = next(shipped.glob("minute=*"))
    for source in (shipped, minute, shipped.as_uri(), f"{shipped}/."):
        refused(
            sottovoce("estimate", files.plan, source), "sottovoce fold-minutes", str(place.name)
        )


def test_collectors_sign_with_one_key(sottovoce: Command, tmp_path: Path) -> None:
    """First by sharing that of one; then another key, accepted everywhere before it signs."""
    urls = [f"sqlite:///{tmp_path}/{name}.db" for name in ("one", "two")]
    with open_store(urls[0]) as one, open_store(urls[1]) as two:
        before = two.signing_key()
        first = tmp_path / "first.key"
        assert "whoever has it" in sottovoce("key", "share", urls[0], "-o", first).out
        assert stat.S_IMODE(first.stat().st_mode) == 0o600
        sottovoce("key", "take", first, urls[1])
        assert two.signing_key() == one.signing_key()
        assert before in two.accepted_keys()
        second = tmp_path / "second.key"
        sottovoce("key", "share", "-o", second)
        for url in urls:
            sottovoce("key", "take", second, url, "--accept")
        sottovoce("key", "take", second, urls[0])
        assert one.signing_key() != two.signing_key()
        assert {one.signing_key(), two.signing_key()} <= {*one.accepted_keys()} & {
            *two.accepted_keys()
        }
        sottovoce("key", "take", second, urls[1])
        sottovoce("key", "take", second, urls[1])  # again, and nothing changes
        assert one.signing_key() == two.signing_key()
        refused(sottovoce("key", "share", urls[0], "-o", first), "must not exist yet")
        first.chmod(0o644)
        refused(sottovoce("key", "take", first, urls[1]), "for its owner alone")
        first.chmod(0o600)
        first.write_text("something else\n")
        refused(sottovoce("key", "take", first, urls[1]), "`sottovoce key share` wrote")
