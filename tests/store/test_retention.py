"""A survey is deleted with its reports, down to the bytes of the files; or its sums are kept, and
estimate the same.
"""

from __future__ import annotations

import sqlite3
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.ground.errors import InvalidInput, StoreError, SurveyClosed, UnknownPlan
from sottovoce.store import Outcome, Store, export, id_index, open_store
from tests.store.crowds import ids, marginals, plan, reports
from tests.store.damage import damage, path_of


@pytest.fixture
def two(store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store with two surveys, whose reports came in turn."""
    monkeypatch.setattr(id_index, "RUN", 70)
    for of in (plan(), marginals()):
        store.add_plan(of)
    for seed in range(4):
        store.append(plan(), ids(50, seed), reports(50, seed))
        store.append(marginals(), ids(50, seed, minute=1), reports(50, seed, marginals()))
    return store


# -- deleting


def test_a_deleted_survey_is_gone_and_the_others_are_whole(two: Store, url: str) -> None:
    expected = two.aggregate(marginals()).to_bytes()
    assert two.aggregate(plan()).people == 200
    with open_store(url) as other:  # as a collector that runs meanwhile
        assert other.aggregate(plan()).people == 200
        other.append(plan(), ids(5, 9), reports(5, 9))
        assert two.delete(plan())
        for store in (two, other):
            with pytest.raises(UnknownPlan):
                store.entry(plan().id)
            with pytest.raises(UnknownPlan):
                store.append(plan(), ids(1, 10), reports(1))
            with pytest.raises(UnknownPlan):
                store.aggregate(plan())
            assert store.rebuild(marginals()).to_bytes() == expected
            for seed in range(4):
                again = store.append(
                    marginals(), ids(50, seed, minute=1), reports(50, seed, marginals())
                )
                assert (again == Outcome.DUPLICATE).all()
        for number, store in enumerate((two, other)):
            assert not store.append(
                marginals(), ids(3, 20 + number), reports(3, 1, marginals())
            ).any()
            assert (
                store.aggregate(marginals()).people == store.count(marginals()) == 203 + 3 * number
            )


def test_a_survey_that_is_added_again_starts_from_nothing(two: Store, url: str) -> None:
    with open_store(url) as other:
        assert other.aggregate(plan()).people == two.rebuild(plan()).people == 200
        two.delete(plan())
        two.add_plan(plan())
        for store in (two, other):
            assert (store.count(plan()), store.aggregate(plan()).people) == (0, 0)
        assert not two.append(plan(), ids(50, 1), reports(50, 1)).any()  # the ids are free again
        for store in (two, other):
            assert store.aggregate(plan()) == sv.Aggregate(plan()).add(reports(50, 1))


def test_nothing_of_it_is_left_in_the_files(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/survey.db"
    with open_store(url) as store:
        for of in (plan(), marginals()):
            store.add_plan(of, sv.Texts("a title of its own" if of is plan() else ""))
            store.append(of, ids(3000, minute=of is plan()), reports(3000, of=of))
        store.rebuild(plan())
        damage(url, "payload", 7)
        assert store.set_aside(plan()) == 1
        deleted, kept = ids(3000, minute=1), ids(3000)

        def found(some: np.ndarray) -> int:
            files = b"".join(file.read_bytes() for file in sorted(tmp_path.iterdir()))
            return sum(each.tobytes() in files for each in some[::50])

        assert found(deleted) == found(kept) == 60
        assert store.delete(plan())
        assert (found(deleted), found(kept)) == (0, 60)
        everything = b"".join(file.read_bytes() for file in tmp_path.iterdir())
        assert b"a title of its own" not in everything
        assert plan().to_json().encode() not in everything
        assert store.aggregate(marginals()).people == 3000


def test_while_somebody_reads_the_answer_says_that_bytes_are_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sottovoce.store.sqlite_file.LOCK_PATIENCE", 0.01)
    url = f"sqlite:///{tmp_path}/survey.db"
    with open_store(url) as store:
        store.add_plan(plan())
        store.append(plan(), ids(50), reports(50))
        with sqlite3.connect(path_of(url), isolation_level=None) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM parts").fetchone()
            assert not store.delete(plan())
            reader.execute("COMMIT")
        reader.close()
        assert store.entries() == []


def test_what_is_not_there_cannot_be_deleted(store: Store) -> None:
    with pytest.raises(UnknownPlan):
        store.delete(plan())
    with pytest.raises(UnknownPlan):
        store.keep_sums(plan())


# -- keeping the sums


def test_sums_estimate_the_same_bits_and_no_report_is_left(
    two: Store, url: str, tmp_path: Path
) -> None:
    expected = two.aggregate(plan()).to_bytes()
    with open_store(url) as other:
        assert other.aggregate(plan()).people == 200
        assert two.keep_sums(plan())
        assert two.keep_sums(plan())  # again changes nothing
        for store in (two, other):
            assert store.kept(plan()).only_sums
            assert store.aggregate(plan()).to_bytes() == expected
            assert store.count(plan()) == 200
            assert store.entry(plan().id).closed
            with pytest.raises(SurveyClosed):
                store.append(plan(), ids(1, 30), reports(1))
            for read in (
                lambda store=store: list(store.read(plan())),
                lambda store=store: store.rebuild(plan()),
            ):
                with pytest.raises(
                    InvalidInput, match="they were deleted, and only what they add up to was kept"
                ):
                    read()
            with pytest.raises(InvalidInput, match="they were deleted"):
                export(store, plan(), tmp_path / "out")
            assert store.aggregate(marginals()).people == 200
    with open_store(url) as store:
        assert store.aggregate(plan()).to_bytes() == expected


def test_the_bytes_of_reports_are_gone(tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path}/survey.db") as store:
        store.add_plan(plan())
        store.append(plan(), ids(3000), reports(3000))
        assert store.keep_sums(plan())
        everything = b"".join(file.read_bytes() for file in tmp_path.iterdir())
        assert not any(each.tobytes() in everything for each in ids(3000)[::50])


@cache
def hashed() -> sv.Plan:
    asked = sv.Frequencies("x", oracle="olh-seeded")
    return sv.plan(sv.Schema(x=sv.Categorical(range(5))), asked, epsilon=1.0, people=1000)


@pytest.mark.parametrize("of", [hashed, lambda: marginals("inp-em"), lambda: marginals("latent")])
def test_sums_that_are_the_reports_are_refused(store: Store, of: object) -> None:
    asked = of()  # type: ignore[operator]
    store.add_plan(asked)
    store.append(asked, ids(20), reports(20, of=asked))
    with pytest.raises(InvalidInput, match=r"keep: .* the reports themselves"):
        store.keep_sums(asked)
    assert not store.entry(asked.id).closed
    assert len(list(store.read(asked))) == 1


@pytest.mark.parametrize("people", [1, 4, 5])
def test_the_sums_of_a_few_people_are_refused(store: Store, people: int) -> None:
    """Of one person alone they would be the report, of a few nearly so."""
    asked = sv.plan(
        sv.Schema(x=sv.Categorical(range(20))),
        sv.Frequencies("x", oracle="oue"),
        epsilon=1.0,
        people=1000,
    )
    store.add_plan(asked)
    store.append(asked, ids(people), reports(people, of=asked))
    if people == 5:
        store.keep_sums(asked)
        assert store.count(asked) == 5
        return
    with pytest.raises(InvalidInput, match=f"heard from {people} people only, and must be from 5"):
        store.keep_sums(asked)
    assert not store.entry(asked.id).closed
    assert len(list(store.read(asked))) == 1


def test_one_small_cohort_is_enough_to_refuse(store: Store) -> None:
    asked = marginals()
    many = reports(200, of=asked)
    only = np.flatnonzero(many.cohorts == 1)[:2]
    kept = np.sort(np.concatenate([np.flatnonzero(many.cohorts != 1), only]))
    store.add_plan(asked)
    store.append(asked, ids(len(kept)), many[kept])
    with pytest.raises(InvalidInput, match="heard from 2 people only"):
        store.keep_sums(asked)
    store.append(asked, ids(200, 2), reports(200, 2, asked))
    store.keep_sums(asked)


@pytest.mark.parametrize("method", ["marg-rr", "latent", "inp-em"])
def test_the_smallest_cohort_is_that_of_a_count(method: str) -> None:
    asked = marginals(method)
    heard = sv.Aggregate(asked)
    assert heard.counts.fewest == 0
    some = reports(300, of=asked)
    heard.add(some)
    assert heard.counts.fewest == np.unique(some.cohorts, return_counts=True)[1].min()


def test_nobodys_sums_may_be_kept(store: Store) -> None:
    store.add_plan(plan())
    store.keep_sums(plan())
    assert store.count(plan()) == 0


def test_a_tally_of_many_people_is_a_sum(store: Store) -> None:
    """Of few places, so that each holds many: who is in it cannot be told apart."""
    asked = sv.plan(
        sv.Schema(a=sv.Boolean(), b=sv.Boolean()),
        sv.Marginals(up_to=2, method="latent"),
        epsilon=1.0,
        people=1000,
    )
    assert asked.cohorts.answer_bits is not None
    store.add_plan(asked)
    store.append(asked, ids(2), reports(2, of=asked))
    with pytest.raises(InvalidInput, match="the reports themselves"):
        store.keep_sums(asked)
    store.append(asked, ids(300, 2), reports(300, 2, of=asked))
    expected = store.aggregate(asked).to_bytes()
    store.keep_sums(asked)
    assert store.aggregate(asked).to_bytes() == expected


def test_damaged_reports_must_be_moved_away_first(two: Store, url: str) -> None:
    damage(url, "payload", 3)
    with pytest.raises(StoreError, match="--set-aside"):
        two.keep_sums(plan())
    assert sum(len(some) for _, _, some in two.read(plan())) == 199
    two.set_aside(plan())
    two.keep_sums(plan())
    assert two.count(plan()) == two.aggregate(plan()).people == 199


def test_damaged_sums_are_one_clear_error(two: Store, url: str) -> None:
    two.keep_sums(plan())
    if url.startswith("sqlite"):
        with sqlite3.connect(path_of(url)) as db:
            db.execute("UPDATE checkpoints SET data = substr(data, 2)")
        db.close()
    else:
        import psycopg

        with psycopg.connect(url, autocommit=True) as other:
            other.execute("UPDATE sottovoce_checkpoints SET data = substr(data, 2)")
    with (
        open_store(url) as store,
        pytest.raises(StoreError, match="what was kept of this survey is damaged"),
    ):
        store.aggregate(plan())
