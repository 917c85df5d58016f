"""Shipping: every report once there, whatever happened on the way."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import sottovoce as sv
from sottovoce.ground.errors import InvalidInput, StoreError
from sottovoce.protocol.report_files import parse_with_ids
from sottovoce.shipping import ship as shipping
from sottovoce.shipping.layout import Listing, Segment, plan_folder
from sottovoce.shipping.places import FileGone, Place
from sottovoce.shipping.ship import ship
from sottovoce.store import Store, backup, open_store, restore
from sottovoce.store.shipped import Shipment, identity, note_shipment
from tests.store.crowds import MINUTE, ids, marginals, plan, reports

FIRST = MINUTE >> 16


def there(place: Place, of: sv.Plan) -> Counter[bytes]:
    """The ids at a place, each as often as it is there; every file must keep what its name says."""
    found: Counter[bytes] = Counter()
    for segment in Listing.of(place.names(plan_folder(of.id))).segments:
        data = place.read(f"{plan_folder(of.id)}/{segment.name}")
        own, rows = parse_with_ids(data, segment.name)
        assert {int.from_bytes(each[:4].tobytes(), "big") for each in own} == {segment.minute}
        assert rows.plan_id == of.id
        found.update(each.tobytes() for each in own)
    return found


def held(store: Store, of: sv.Plan) -> Counter[bytes]:
    return Counter(each.tobytes() for _, own, _ in store.read(of) for each in own)


def fill(store: Store, of: sv.Plan, seeds: range, minutes: int = 3) -> None:
    store.add_plan(of)
    for seed in seeds:
        store.append(of, ids(50, seed, seed % minutes), reports(50, seed, of))


def test_everything_is_there_once(
    store: Store,
    place: Place,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shipping, "SHIPMENT_REPORTS", 120)
    fill(store, plan(), range(6))
    fill(store, marginals(), range(10, 13))
    seen: list[int] = []
    assert ship(store, place, progress=seen.append).reports == 450
    assert seen[-1] == 450
    for of in (plan(), marginals()):
        assert there(place, of) == held(store, of)
        assert place.read(f"{plan_folder(of.id)}/plan.json") == of.to_json().encode()
    assert (ship(store, place).reports, ship(store, place).files) == (0, 0)
    fill(store, plan(), range(20, 23))  # late ones of minutes that were shipped
    assert ship(store, place).reports == 150
    assert there(place, plan()) == held(store, plan())
    listed = Listing.of(place.names(plan_folder(plan().id)))
    assert {segment.minute for segment in listed.segments} == {FIRST, FIRST + 1, FIRST + 2}
    assert all(identity(store) in segment.file for segment in listed.segments)


class Killed(BaseException):
    pass


@pytest.mark.parametrize("moment", range(9))
def test_a_pass_that_was_killed_is_repeated_to_the_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    """Killed before each of its writes, here and there; more reports come before it is repeated."""
    place = Place.at(tmp_path / "collected")
    with open_store(f"sqlite:///{tmp_path}/survey.db") as store:
        fill(store, plan(), range(6))
        writes = 0

        def dying(work):  # type: ignore[no-untyped-def]
            def wrapped(*args: object) -> object:
                nonlocal writes
                writes += 1
                if writes == moment + 1:
                    raise Killed
                return work(*args)

            return wrapped

        with monkeypatch.context() as patch:
            patch.setattr(shipping, "SHIPMENT_REPORTS", 170)
            patch.setattr(shipping, "note_shipment", dying(shipping.note_shipment))
            patch.setattr(place, "put", dying(place.put))
            with pytest.raises(Killed):
                ship(store, place)
        before = {name: place.read(name) for name in place.names()}
        fill(store, plan(), range(10, 12))
        ship(store, place)
        assert there(place, plan()) == held(store, plan())  # each once: no file of another name
        assert before.items() <= {name: place.read(name) for name in place.names()}.items()


def test_what_was_under_way_is_shipped_also_if_it_is_not_the_same_any_more(tmp_path: Path) -> None:
    """Reports were set aside meanwhile: what is left goes under other numbers."""
    place = Place.at(tmp_path / "collected")
    with open_store(f"sqlite:///{tmp_path}/survey.db") as store:
        fill(store, plan(), range(3))
        note_shipment(store, plan().id, place.key, Shipment(0, 100, 120))
        assert ship(store, place).reports == 150
        assert there(place, plan()) == held(store, plan())


def test_a_survey_is_closed_in_all_stores_that_share_a_place(tmp_path: Path) -> None:
    place = Place.at(tmp_path / "collected")
    with (
        open_store(f"sqlite:///{tmp_path}/one.db") as one,
        open_store(f"sqlite:///{tmp_path}/two.db") as two,
    ):
        fill(one, plan(), range(2))
        fill(two, plan(), range(2, 4))
        assert ship(one, place).closed == ship(two, place).closed == 0
        one.close_survey(plan().id)
        two.append(plan(), ids(50, 9), reports(50, 9))  # not told yet
        ship(one, place)
        assert ship(two, place).closed == 1
        assert two.entry(plan().id).closed
        with pytest.raises(sv.SottovoceError, match="closed"):
            two.append(plan(), ids(50, 10), reports(50, 10))
        assert there(place, plan()) == held(one, plan()) + held(two, plan())


def test_another_store_has_another_name(tmp_path: Path) -> None:
    """What is restored from a backup ships anew, under a name of its own."""
    place = Place.at(tmp_path / "collected")
    with open_store(f"sqlite:///{tmp_path}/one.db") as one:
        fill(one, plan(), range(3))
        ship(one, place)
        assert identity(one) == identity(one)
        backup(one, tmp_path / "backup.db")
        with open_store(f"sqlite:///{tmp_path}/two.db") as two:
            before = identity(two)
            restore(tmp_path / "backup.db", two)
            assert len({before, identity(one), identity(two)}) == 3
            assert ship(two, place).reports == 150
        assert set(there(place, plan()).values()) == {2}
        with (
            open_store(f"sqlite:///{tmp_path}/backup.db", create=False) as copy,
            pytest.raises(StoreError, match="is a backup"),
        ):
            ship(copy, place)


def test_a_survey_that_was_deleted_and_made_again_ships_all(
    store: Store,
    tmp_path: Path,
) -> None:
    place = Place.at(tmp_path / "collected")
    fill(store, plan(), range(3))
    ship(store, place)
    store.delete(plan())
    fill(store, plan(), range(5, 7))
    assert ship(store, place).reports == 100
    assert sum(there(place, plan()).values()) == 250


def test_again_ships_what_was_lost_there(tmp_path: Path) -> None:
    place = Place.at(tmp_path / "collected")
    with open_store(f"sqlite:///{tmp_path}/one.db") as one:
        fill(one, plan(), range(3))
        ship(one, place)
        gone = Listing.of(place.names(plan_folder(plan().id))).segments[0]
        place.delete(f"{plan_folder(plan().id)}/{gone.name}")
        assert ship(one, place).reports == 0
        assert ship(one, place, again=True).reports == 150
        assert there(place, plan()) == held(one, plan())


def test_places(place: Place) -> None:
    with pytest.raises(FileGone, match="not there any more"):
        place.read("a/b")
    assert (place.names(), place.folders(), place.has("a/b")) == ([], [], False)
    place.put("a/b", b"1")
    place.put("a/b", b"2")
    place.put("a/c d=e", b"")
    assert (place.names("a"), place.folders(), place.read("a/b")) == (["b", "c d=e"], ["a"], b"2")
    place.move("a/b", "z")
    place.delete("a/b")
    assert (place.has("a/b"), place.read("z")) == (False, b"2")
    assert "secret" not in place.shown + place.key


def test_bad_places(tmp_path: Path) -> None:
    for wrong in ("ftp://user:hidden@host/x", "nonsense://x"):
        with pytest.raises(InvalidInput, match=r"must be a folder, or a URL") as refused:
            Place.at(wrong)
        assert "hidden" not in str(refused.value)
    (tmp_path / "file").touch()
    with pytest.raises((StoreError, OSError)):
        Place.at(tmp_path / "file").put("x", b"")


def test_names_are_told_apart() -> None:
    name = Segment.new(0x018BCFE5, "0" * 32, 1, 20, b"data").name
    assert name.startswith("minute=018bcfe5/")
    found = Segment.parse(name)
    assert found is not None
    assert found.name == name
    assert Segment.parse(name + ".draft") is Segment.parse("plan.json") is None
