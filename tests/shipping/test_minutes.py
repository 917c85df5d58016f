"""Folding by the minute: the total is that of each id once, whatever came when, twice, damaged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.ground.errors import InvalidInput, StoreError
from sottovoce.protocol.reports import Reports
from sottovoce.shipping import minutes as folding
from sottovoce.shipping.layout import Listing, day_of, plan_folder
from sottovoce.shipping.minutes import Folded, fold_minutes
from sottovoce.shipping.once import each_once
from sottovoce.shipping.places import Place
from sottovoce.shipping.ship import segments_of, ship
from sottovoce.shipping.totals import collected, read_plan
from sottovoce.shipping.totals import plan_ids as plans_at
from sottovoce.store import open_store
from sottovoce.store.base import Ids, Stretch
from tests.store.crowds import MINUTE, ids, marginals, plan, reports

FIRST = MINUTE >> 16
DAY = 86_400
NOW = MINUTE / 1000 + 3 * DAY  # when all of these minutes are over
STORES = ["a" * 32, "b" * 32]


def put(place: Place, own: Ids, rows: Reports, store: int = 0, first: int = 1) -> list[str]:
    """Segments as a store ships them; their names."""
    names = []
    for segment, data in segments_of(
        Stretch(first + len(own) - 1, own, rows, 0), STORES[store], first
    ):
        names.append(f"{plan_folder(rows.plan_id)}/{segment.name}")
        place.put(names[-1], data)
    return names


def fold(place: Place, of: sv.Plan | None = None, **options: object) -> Folded:
    asked = {"now": NOW, "wait": 0.0, "forget_days": None} | options
    return fold_minutes(of or plan(), place, **asked)  # type: ignore[arg-type]


LARGE = sv.plan(  # a table that is written in pieces
    sv.Schema(x=sv.Ordinal(0, (1 << 17) - 1)),
    sv.Frequencies("x", oracle="olh"),
    epsilon=1.0,
    people=1000,
)


@pytest.mark.parametrize(
    "of",
    [plan(), marginals(), marginals("inp-em"), LARGE],
    ids=["sums", "lengths", "rows", "large"],
)
def test_the_total_is_that_of_all_reports_once(place: Place, of: sv.Plan) -> None:
    whole = reports(300, 1, of)
    own = np.concatenate([ids(100, 1, minute) for minute in (0, 1, 2000)])
    put(place, own[:200], whole[:200])
    put(place, own[100:], whole[100:], store=1)  # a hundred of them twice
    done = fold(place, of)
    assert (done.minutes, done.days, done.waiting) == (3, 2, 0)
    found = collected(of, place)
    assert found.aggregate == sv.Aggregate(of).add(whole)
    assert (found.people, found.duplicates, found.conflicts, found.days) == (300, 100, 0, 2)
    again = fold(place, of)
    assert (again.minutes, again.days) == (0, 0)
    assert place.names(f"{plan_folder(of.id)}/set-aside") == []


def test_a_late_file_has_its_minute_folded_again(place: Place) -> None:
    whole = reports(300, 1)
    own = np.concatenate([ids(100, 1), ids(100, 2, 1), ids(100, 3)])
    put(place, own[:200], whole[:200])
    assert fold(place).minutes == 2
    put(place, own[150:], whole[150:], store=1)
    done = fold(place)
    assert (done.minutes, done.days) == (2, 1)
    found = collected(plan(), place)
    assert found.aggregate == sv.Aggregate(plan()).add(whole)
    assert (found.people, found.duplicates) == (300, 50)
    listed = Listing.of(place.names(plan_folder(plan().id)))
    assert (len(listed.minutes), len(listed.days)) == (2, 1)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_of_two_contents_the_smallest_bytes_count(place: Place, order: tuple[int, int]) -> None:
    """Whoever came first, and wherever: the same one is chosen, and the conflict is counted."""
    own = ids(40, 1)
    one, two = reports(40, 1), reports(40, 2)
    differ = (one.payload != two.payload).any(axis=1)
    assert 5 < differ.sum() < 40
    for store, crowd in zip(order, (one, two), strict=True):
        put(place, own, crowd, store)
    fold(place)
    found = collected(plan(), place)
    least = Reports(plan().id, one.cohorts, np.minimum(one.payload, two.payload))
    assert found.aggregate == sv.Aggregate(plan()).add(least)
    assert (found.people, found.duplicates, found.conflicts) == (40, 40, differ.sum())


@pytest.mark.parametrize("count", [*range(20, 40), 3000])
def test_the_choice_is_that_of_a_plain_loop(count: int) -> None:
    """Few different ids, so that many collide, some in half of their bytes only."""
    draws = np.random.default_rng(count)
    own = np.zeros((count, 16), np.uint8)
    own[:, [7, 15]] = draws.integers(0, 12, (count, 2))
    crowd = reports(count, 3)
    chosen = each_once(plan(), own, crowd)
    best: dict[bytes, tuple[bytes, int]] = {}
    contents: dict[bytes, set[bytes]] = {}
    for row in range(count):
        key = own[row].tobytes()
        content = int(crowd.cohorts[row]).to_bytes(4, "big") + crowd.payload[row].tobytes()
        contents.setdefault(key, set()).add(content)
        best[key] = min(best.get(key, (content, row)), (content, row))
    assert chosen.is_kept is not None
    kept = np.flatnonzero(chosen.is_kept)
    assert [own[row].tobytes() for row in kept] == list(
        dict.fromkeys(own[row].tobytes() for row in kept)
    )
    assert {own[row].tobytes(): crowd.payload[row].tobytes() for row in kept} == {
        key: content[4:] for key, (content, _) in best.items()
    }
    assert chosen.duplicates == count - len(best)
    assert chosen.conflicts == sum(len(found) > 1 for found in contents.values())


def test_a_corrupt_segment_is_named_and_set_aside(place: Place) -> None:
    whole = reports(300, 1)
    own = np.concatenate([ids(100, 1), ids(100, 2), ids(100, 3, 1)])
    put(place, own[:100], whole[:100])
    (bad,) = put(place, own[100:200], whole[100:200], store=1)
    (alone,) = put(place, own[200:], whole[200:], store=1, first=500)
    for name in (bad, alone):
        data = bytearray(place.read(name))
        data[len(data) // 2] ^= 1
        place.put(name, bytes(data))
    done = fold(place)
    assert sorted(f"{plan_folder(plan().id)}/{name}" for name in done.damaged) == sorted(
        [bad, alone]
    )
    found = collected(plan(), place)
    assert found.aggregate == sv.Aggregate(plan()).add(whole[:100])
    assert (found.damaged, found.late) == (2, 0)
    assert not place.has(bad)
    assert fold(place).damaged == ()
    put(place, own[100:200], whole[100:200], store=1)  # shipped again, as it was
    fold(place)
    assert collected(plan(), place).aggregate == sv.Aggregate(plan()).add(whole[:200])


def test_files_that_are_no_segments_of_the_minute_are_set_aside(tmp_path: Path) -> None:
    """Whole files under a false name: of another minute, of another plan, or no reports at all."""
    place = Place.at(tmp_path)
    folder = plan_folder(plan().id)
    (name,) = put(place, ids(10, 1), reports(10, 1))
    place.move(name, name.replace(f"minute={FIRST:08x}", f"minute={FIRST + 1:08x}"))
    (other,) = put(place, ids(10, 1), reports(10, 1, marginals()))
    place.move(other, other.replace(marginals().id, plan().id))
    (whole,) = put(place, ids(10, 2), reports(10, 2))
    (false,) = put(place, ids(10, 3), reports(10, 3), store=1)
    place.put(false, place.read(whole))  # a good one of this minute, under another one's name
    assert len(fold(place).damaged) == 3
    found = collected(plan(), place)
    assert (found.people, found.duplicates) == (10, 0)
    assert len(place.names(f"{folder}/set-aside/damaged")) == 3


def test_minutes_are_folded_when_they_are_over(tmp_path: Path) -> None:
    place = Place.at(tmp_path)
    own = np.concatenate([ids(50, 1), ids(50, 2, 1)])
    put(place, own, reports(100, 1))
    end = (FIRST + 1 << 16) / 1000
    assert (fold(place, now=end + 59, wait=60).waiting, fold(place, now=end - 1).waiting) == (2, 2)
    with pytest.raises(InvalidInput, match="must hold a total of the plan"):
        collected(plan(), place)
    done = fold(place, now=end + 61, wait=60.0)
    assert (done.minutes, done.waiting, collected(plan(), place).people) == (1, 1, 50)
    assert fold(place, now=end + 61, wait=None).minutes == 1
    assert fold(place, now=end - 1000).waiting == 0  # what was folded stays so
    assert collected(plan(), place).people == 100


def test_a_day_that_is_over_keeps_its_total_alone(place: Place) -> None:
    whole = reports(300, 1)
    own = np.concatenate([ids(100, 1), ids(100, 2, 1), ids(100, 3, 2000)])
    put(place, own, whole)
    days = [day_of(FIRST), day_of(FIRST + 2000)]
    fold(place)
    assert fold(place, forget_days=2, now=NOW).finished == (days[0],)
    folder = plan_folder(plan().id)
    listed = Listing.of(place.names(folder))
    assert {segment.minute for segment in listed.segments} == {FIRST + 2000}
    assert [(each.day, each.is_finished) for each in listed.days] == [
        (days[0], True),
        (days[1], False),
    ]
    assert collected(plan(), place).aggregate == sv.Aggregate(plan()).add(whole)
    (late,) = put(place, ids(10, 9), reports(10, 9))
    assert [f"{folder}/{name}" for name in fold(place, forget_days=2).late] == [late]
    found = collected(plan(), place)
    assert (found.people, found.late) == (300, 1)
    assert fold(place, forget_days=2).late == ()


def test_a_damaged_segment_of_a_day_that_ends_was_not_counted(tmp_path: Path) -> None:
    """Set aside by the run that ends its day; shipped again, as it was, it is late and named."""
    place = Place.at(tmp_path)
    put(place, ids(10, 1), reports(10, 1))
    (bad,) = put(place, ids(10, 2), reports(10, 2), store=1)
    whole = place.read(bad)
    place.put(bad, whole[:-1])
    done = fold(place, forget_days=1)
    assert (done.damaged, len(done.finished)) == ((bad.partition("/")[2],), 1)
    place.put(bad, whole)
    assert fold(place, forget_days=1).late == done.damaged
    found = collected(plan(), place)
    assert (found.people, found.damaged, found.late) == (10, 1, 1)


def test_what_was_set_aside_is_forgotten_after_twice_as_long(place: Place) -> None:
    put(place, ids(10, 1), reports(10, 1))
    (bad,) = put(place, ids(10, 2), reports(10, 2), store=1)
    place.put(bad, b"no reports")
    day = 24 * 3600
    end = (FIRST << 16) / 1000
    assert len(fold(place, forget_days=2, now=end + 3 * day).damaged) == 1
    (late,) = put(place, ids(10, 9), reports(10, 9))
    folder = plan_folder(plan().id)

    def aside() -> list[str]:
        return sorted(name.rpartition("-")[2] for name in place.names(f"{folder}/set-aside"))

    ends = [late.rpartition("-")[2], bad.rpartition("-")[2]]
    assert [f"{folder}/{name}" for name in fold(place, forget_days=2, now=end + 4 * day).late] == [
        late
    ]
    assert aside() == sorted(ends)
    fold(place, forget_days=None, now=end + 9 * day)
    assert aside() == sorted(ends)
    for _ in range(2):
        fold(place, forget_days=2, now=end + 6 * day)
        assert aside() == sorted(f"{each}.forgotten" for each in ends)
        found = collected(plan(), place)
        assert (found.people, found.damaged, found.late) == (10, 1, 1)
    for name in place.names(f"{folder}/set-aside"):
        assert place.read(f"{folder}/set-aside/{name}") == b""
    put(place, ids(10, 9), reports(10, 9))  # the same again is named again, and counts once
    assert len(fold(place, forget_days=2, now=end + 6 * day).late) == 1
    assert collected(plan(), place).late == 1


class Killed(BaseException):
    pass


@pytest.mark.parametrize("forget_days", [None, 1])
@pytest.mark.parametrize("moment", [1, 2, 3, 4, 5, 6, 8, 10])
def test_a_run_that_was_killed_is_put_right_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int, forget_days: int | None
) -> None:
    """Killed before one of its writes or removals; whoever asks meanwhile never counts twice."""
    place, whole = Place.at(tmp_path), reports(400, 1)
    own = np.concatenate([ids(100, 1), ids(100, 2, 1), ids(100, 3, 2), ids(100, 4)])
    put(place, own[:200], whole[:200])
    fold(place)
    put(place, own[200:], whole[200:], store=1)
    steps = 0

    def dying(work):  # type: ignore[no-untyped-def]
        def wrapped(*args: object) -> object:
            nonlocal steps
            steps += 1
            if steps == moment:
                raise Killed
            return work(*args)

        return wrapped

    was_killed = False
    with monkeypatch.context() as patch:
        patch.setattr(place, "put", dying(place.put))
        patch.setattr(place, "delete", dying(place.delete))
        try:
            fold(place, forget_days=forget_days)
        except Killed:
            was_killed = True
    assert was_killed or forget_days is None
    assert collected(plan(), place).people in (200, 400)
    fold(place, forget_days=forget_days)
    found = collected(plan(), place)
    assert (found.people, found.late) == (400, 0)
    assert found.aggregate == sv.Aggregate(plan()).add(whole)
    listed = Listing.of(place.names(plan_folder(plan().id)))
    assert len(listed.days) == 1
    assert (len(listed.segments), len(listed.minutes)) == ((0, 0) if forget_days else (4, 3))


def test_one_run_at_a_time_in_a_folder(tmp_path: Path) -> None:
    place = Place.at(tmp_path)
    put(place, ids(10, 1), reports(10, 1))
    with folding._alone(plan(), place), pytest.raises(StoreError, match="another run folds"):
        fold(place)
    assert fold(place).minutes == 1


def test_a_damaged_total_is_named(tmp_path: Path) -> None:
    place = Place.at(tmp_path)
    put(place, ids(10, 1), reports(10, 1))
    fold(place)
    folder = plan_folder(plan().id)
    (day,) = (name for name in place.names(folder) if name.startswith("days/"))
    place.put(f"{folder}/{day}", place.read(f"{folder}/{day}")[:-1] + b"x")
    with pytest.raises(sv.CorruptReport, match=day):
        collected(plan(), place)
    place.delete(f"{folder}/{day}")
    fold(place)
    assert collected(plan(), place).people == 10


def test_from_stores_to_the_same_bits_as_one(place: Place, tmp_path: Path) -> None:
    """Three collectors, some reports at two of them."""
    with open_store(f"sqlite:///{tmp_path}/all.db") as whole:
        whole.add_plan(marginals())
        for number in range(3):
            with open_store(f"sqlite:///{tmp_path}/{number}.db") as each:
                each.add_plan(marginals())
                for seed in range(number, number + 3):
                    part = (marginals(), ids(70, seed, seed), reports(70, seed, marginals()))
                    each.append(*part)
                    whole.append(*part)
                ship(each, place)
        fold(place, marginals())
        assert plans_at(place) == [marginals().id]
        assert read_plan(place, marginals().id).id == marginals().id
        found = collected(marginals(), place)
        assert found.aggregate == whole.aggregate(marginals())
        assert (found.people, found.duplicates) == (350, 280)
