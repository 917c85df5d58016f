"""What every store promises."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import sottovoce as sv
from sottovoce.ground.errors import (
    CorruptReport,
    InvalidInput,
    PlanMismatch,
    StoreError,
    SurveyClosed,
    UnknownPlan,
)
from sottovoce.protocol.reports import Reports
from sottovoce.store import Outcome, Store, checkpoints, open_store
from tests.store.crowds import ids, marginals, plan, reports

STORED, DUPLICATE, CONFLICT = Outcome


def all_of(
    store: Store, of: sv.Plan, after: int = 0, batch: int = 1000
) -> tuple[np.ndarray, Reports]:
    """Every id and report, in order of arrival."""
    parts = list(store.read(of, after, batch))
    assert all(0 < len(part) <= batch for _, _, part in parts)
    lasts = [last for last, _, _ in parts]
    assert lasts == sorted(set(lasts))
    none = np.zeros((0, 16), np.uint8)
    return np.concatenate([none, *(own for _, own, _ in parts)]), Reports.concat(
        [Reports.empty(of), *(p for *_, p in parts)]
    )


# -- surveys


def test_plans_are_kept_byte_for_byte(url: str) -> None:
    with open_store(url) as store:
        texts = sv.Texts("How are you?", consent="Yes?", questions={"x": "Well?"})
        store.add_plan(plan("x"), texts)
        store.add_plan(plan("y"))
        store.add_plan(plan("x"), sv.Texts("another title"))  # again: no change
    with open_store(url) as store:
        first, second = store.entries()
        assert first.plan.to_json() == plan("x").to_json()
        assert (first.title, first.closed, second.title) == ("How are you?", False, "")
        assert store.entry(plan("y").id) == second
        assert first.created <= second.created
        assert store.entry(plan("x").id).plan is first.plan  # parsed once


def test_ids_are_found_by_their_first_digits(store: Store) -> None:
    store.ping()
    assert store.plan_ids() == []
    for name in ("x", "y"):
        store.add_plan(plan(name))
    known = [plan("x").id, plan("y").id]
    assert store.plan_ids() == known
    for own in known:
        assert store.plan_ids(own) == store.plan_ids(own[:16]) == [own]
    assert store.plan_ids("f" * 64) == []


def test_what_was_forgotten_is_added_up_again(store: Store) -> None:
    store.add_plan(plan())
    store.append(plan(), ids(5), reports(5))
    first = store.aggregate(plan())
    assert store.aggregate(plan()) is first
    store.forget(plan())
    assert store._folds._held == {}
    assert store.aggregate(plan()) == first


def test_what_is_not_there_is_unknown(store: Store) -> None:
    for ask in (
        lambda: store.entry(plan().id),
        lambda: store.close_survey(plan().id),
        lambda: store.append(plan(), ids(1), reports(1)),
        lambda: store.count(plan()),
        lambda: next(store.read(plan())),
        lambda: store.aggregate(plan()),
        lambda: store.rebuild(plan()),
    ):
        with pytest.raises(UnknownPlan, match="the store has no plan with this id"):
            ask()


def test_a_closed_survey_takes_no_more(store: Store) -> None:
    store.add_plan(plan("x"))
    store.add_plan(plan("y"))
    store.append(plan("x"), ids(2), reports(2))
    store.close_survey(plan("x").id)
    store.close_survey(plan("x").id)
    assert [entry.closed for entry in store.entries()] == [True, False]
    with pytest.raises(SurveyClosed):
        store.append(plan("x"), ids(1, seed=2), reports(1))
    assert store.append(plan("y"), ids(1, seed=2), reports(1, of=plan("y"))).tolist() == [STORED]
    assert store.count(plan("x")) == 2


@pytest.mark.parametrize("title", ["a\0b", "\ud800"])
def test_titles_are_text(store: Store, title: str) -> None:
    with pytest.raises(InvalidInput, match="title must"):
        store.add_plan(plan(), sv.Texts(title))


# -- appending


def test_reports_come_back_in_order_of_arrival(url: str) -> None:
    of = marginals()
    with open_store(url) as store:
        store.add_plan(plan())
        store.add_plan(of)
        for seed in (3, 1, 2):
            assert not store.append(of, ids(700, seed), reports(700, seed, of)).any()
            store.append(plan(), ids(50, seed + 10), reports(50, seed))
        with pytest.raises(InvalidInput, match=r"batch \(0\)"):
            next(store.read(of, batch=0))
    with open_store(url) as store:
        own, found = all_of(store, of, batch=300)
        assert np.array_equal(own, np.concatenate([ids(700, seed) for seed in (3, 1, 2)]))
        assert found == Reports.concat(reports(700, seed, of) for seed in (3, 1, 2))
        assert (store.count(of), store.count(plan())) == (2100, 150)
        last = next(iter(store.read(of, batch=777)))[0]  # in the middle of a part
        rest = all_of(store, of, after=last)
        assert np.array_equal(rest[0], own[777:])
        assert rest[1] == found[777:]


def test_a_report_sent_twice_counts_once(store: Store) -> None:
    store.add_plan(plan())
    assert store.append(plan(), ids(5), reports(5)).tolist() == [STORED] * 5
    assert store.append(plan(), ids(5), reports(5)).tolist() == [DUPLICATE] * 5
    again = np.concatenate([ids(5)[3:], ids(2, seed=2)])
    some = Reports.concat([reports(5)[3:], reports(2, seed=2)])
    assert store.append(plan(), again, some).tolist() == [DUPLICATE, DUPLICATE, STORED, STORED]
    twice = np.concatenate([ids(1, seed=3)] * 2)
    assert store.append(plan(), twice, Reports.concat([reports(1)] * 2)).tolist() == [
        STORED,
        DUPLICATE,
    ]
    assert (
        store.count(plan()) == store.aggregate(plan()).people == len(all_of(store, plan())[0]) == 8
    )


def test_the_same_id_with_another_content_is_refused_whole(store: Store) -> None:
    of = marginals()
    store.add_plan(plan())
    store.add_plan(of)
    kept = reports(6, of=of)
    store.append(of, ids(6), kept)
    other = Reports(of.id, kept.cohorts.copy(), kept.payload.copy())
    other.payload[4, 0] ^= 1
    assert store.append(of, ids(6), other).tolist() == [DUPLICATE] * 4 + [CONFLICT] + [DUPLICATE]
    mixed = np.concatenate([ids(2, seed=2), ids(6)[4:5]])
    assert store.append(of, mixed, Reports.concat([kept[:2], other[4:5]])).tolist()[2] == CONFLICT
    moved = Reports(of.id, (kept.cohorts + np.uint32(1)) % np.uint32(3), kept.payload)
    assert store.append(of, ids(6), moved).tolist() == [CONFLICT] * 6
    # ids are taken once in the whole store
    assert store.append(plan(), ids(1), reports(1)).tolist() == [CONFLICT]
    within = np.concatenate([ids(1, seed=5)] * 2)
    assert store.append(of, within, Reports.concat([kept[4:5], other[4:5]])).tolist() == [
        STORED,
        CONFLICT,
    ]
    assert all_of(store, of)[1] == kept
    assert (store.count(plan()), store.count(of)) == (0, 6)


def test_each_part_is_taken_whole_or_not_at_all(store: Store) -> None:
    store.add_plan(plan("x"))
    store.add_plan(plan("y"))
    store.close_survey(plan("y").id)
    store.append(plan("x"), ids(2), reports(2))
    other = Reports(plan("x").id, reports(2).cohorts, reports(2).payload ^ 1)
    results = store.append_many(
        [
            (plan("x"), ids(3, seed=2), reports(3)),
            (plan("y"), ids(3, seed=3), reports(3, of=plan("y"))),
            (
                plan("x"),
                np.concatenate([ids(2, seed=4), ids(1)]),
                Reports.concat([reports(2), other[:1]]),
            ),
            (plan("x"), ids(2, seed=4), other),  # free, since the part before was not taken
            (plan("x"), ids(2, seed=4), other),
            (plan("x"), ids(3, seed=2), reports(3)),
            (plan("z"), ids(1, seed=9), reports(1, of=plan("z"))),
            (plan("x"), ids(1, seed=9), reports(1, of=plan("y"))),
            (plan("x"), ids(0), reports(0)),
        ]
    )
    shown = [type(each) if isinstance(each, Exception) else each.tolist() for each in results]
    assert shown == [
        [STORED] * 3,
        SurveyClosed,
        [STORED, STORED, CONFLICT],
        [STORED] * 2,
        [DUPLICATE] * 2,
        [DUPLICATE] * 3,
        UnknownPlan,
        PlanMismatch,
        [],
    ]
    assert store.count(plan("x")) == len(all_of(store, plan("x"))[0]) == 7
    assert store.append_many([]) == []


def test_wrong_shapes_are_refused(store: Store) -> None:
    store.add_plan(plan())
    with pytest.raises(PlanMismatch):
        store.append(plan(), ids(2), reports(2, of=plan("y")))
    wide = np.zeros((2, plan().cohorts.bytes + 1), np.uint8)
    with pytest.raises(CorruptReport, match="payloads must have 1 bytes"):
        store.append(plan(), ids(2), Reports(plan().id, np.zeros(2, np.uint32), wide))
    for wrong in (ids(3), ids(2)[:, :15], ids(2).astype(np.int16)):
        with pytest.raises(CorruptReport, match="rows of 16 bytes, one for each report"):
            store.append(plan(), wrong, reports(2))  # type: ignore[arg-type]
    assert store.count(plan()) == 0


def test_ids_may_end_in_zeros_and_columns_need_not_be_contiguous(store: Store) -> None:
    store.add_plan(plan())
    own = np.zeros((256, 32), np.uint8)
    own[:, 3] = np.arange(256)
    spread = own[:, ::2].copy()
    spread[:, 0] = np.arange(256)
    assert not store.append(plan(), np.asfortranarray(spread), reports(512)[::2]).any()
    assert (store.append(plan(), spread, reports(512)[::2]) == DUPLICATE).all()
    assert all_of(store, plan())[1] == reports(512)[::2]


@pytest.mark.parametrize("seed", range(3))
def test_any_history_gives_what_a_dictionary_gives(
    url: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random calls with repeats and conflicts, the store opened anew now and then."""
    monkeypatch.setattr("sottovoce.store.id_index.RUN", 60)
    monkeypatch.setattr("sottovoce.store.sqlite_parts.MAX_PART_REPORTS", 16)
    draws = np.random.default_rng(seed)
    plans = [plan("x"), plan("y")]
    model: dict[bytes, tuple[str, bytes]] = {}
    seen: set[int] = set()
    store = open_store(url)
    for each in plans:
        store.add_plan(each)
    for step in range(40):
        parts, expected = [], []
        for _ in range(draws.integers(1, 5)):
            of = plans[draws.integers(2)]
            count = int(draws.integers(0, 30))
            # rarely the ids of the other plan's reports
            group = int(of is plans[0] or draws.random() < 0.1)
            minute = max(0, step // 4 - int(draws.integers(0, 3)))
            own = ids(80, group, minute)[draws.integers(0, 80, count)]
            payload = np.where(draws.random((count, 1)) < 0.01, 1, own[:, 15:] % 5).astype(np.uint8)
            parts.append((of, own, Reports(of.id, np.zeros(count, np.uint32), payload)))
            expected.append(taken(model, of, own, payload))
        results = store.append_many(parts)
        assert [each.tolist() for each in results] == expected, step  # type: ignore[union-attr]
        seen.update(*expected)
        if draws.random() < 0.2:
            store.close()
            store = open_store(url)
    assert seen == {STORED, DUPLICATE, CONFLICT}
    assert len(model) > 300
    for of in plans:
        own, found = all_of(store, of, batch=33)
        assert {key.tobytes() for key in own} == {
            key for key, (name, _) in model.items() if name == of.id
        }
        assert len(own) == store.count(of) == store.aggregate(of).people
        assert all(
            model[key.tobytes()][1] == row.tobytes()
            for key, row in zip(own, found.payload, strict=True)
        )
    store.close()


def taken(
    model: dict[bytes, tuple[str, bytes]], of: sv.Plan, own: np.ndarray, payload: np.ndarray
) -> list[int]:
    """The outcomes of a part by the letter, and the model after it."""
    new: dict[bytes, tuple[str, bytes]] = {}
    outcomes = []
    for key, row in zip(own, payload, strict=True):
        content = (of.id, row.tobytes())
        have = model.get(key.tobytes()) or new.get(key.tobytes())
        new.setdefault(key.tobytes(), content)
        outcomes.append(int(STORED if have is None else DUPLICATE if have == content else CONFLICT))
    if CONFLICT not in outcomes:
        model |= {key: content for key, content in new.items() if key not in model}
    return outcomes


# -- aggregates


@pytest.mark.parametrize(
    "of", [plan(), marginals(), marginals("inp-ht"), marginals("inp-em")], ids=lambda p: p.id[:4]
)
def test_the_aggregate_is_that_of_all_reports(
    url: str, of: sv.Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "SAVE_AFTER", 100)
    whole = sv.Aggregate(of)
    with open_store(url) as store:
        store.add_plan(of)
        assert store.aggregate(of) == whole
        before = store.aggregate(of)
        for seed in range(5):
            store.append(of, ids(90, seed), reports(90, seed, of))
            whole.add(reports(90, seed, of))
            assert store.aggregate(of) == whole
        assert before.people == 0  # what was handed out has not changed
        saved = store.load_checkpoint(of)
        assert saved is not None
        assert 100 <= saved.people < 450
    with open_store(url) as store:
        assert store.aggregate(of).to_bytes() == whole.to_bytes()
        seen: list[int] = []
        assert store.rebuild(of, seen.append).to_bytes() == whole.to_bytes()
        assert seen == [450]
        saved = store.load_checkpoint(of)
        assert saved is not None
        assert saved.people == 450
        assert saved.data == whole.to_bytes()


def test_a_second_call_reads_only_what_is_new(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.add_plan(plan())
    store.append(plan(), ids(100), reports(100))
    first = store.aggregate(plan())
    assert store.aggregate(plan()) is first
    store.append(plan(), ids(10, seed=2), reports(10))
    read: list[int] = []
    reading = type(store).scan

    def counted(self: Store, *arguments: object) -> object:
        for part in reading(self, *arguments):  # type: ignore[arg-type]
            read.append(len(part.reports))
            yield part

    monkeypatch.setattr(type(store), "scan", counted)
    assert store.aggregate(plan()).people == 110
    assert read == [10]


@pytest.mark.parametrize("damage", ["cut", "other plan", "other people", "nonsense"])
def test_a_damaged_checkpoint_is_not_trusted(url: str, damage: str) -> None:
    with open_store(url) as store:
        store.add_plan(plan())
        store.append(plan(), ids(100), reports(100))
        good = store.rebuild(plan()).to_bytes()
        saved = store.load_checkpoint(plan())
        assert saved is not None
        foreign = sv.Aggregate(plan("y")).to_bytes()
        fewer = sv.Aggregate(plan()).add(reports(90)).to_bytes()
        data = {"cut": good[:-1], "other plan": foreign, "other people": fewer, "nonsense": b""}[
            damage
        ]
        store.save_checkpoint(plan(), replace(saved, data=data), force=True)
    with open_store(url) as store:
        assert store.aggregate(plan()).to_bytes() == good


def test_an_older_checkpoint_does_not_replace_a_newer_one(store: Store) -> None:
    store.add_plan(plan())
    store.append(plan(), ids(100), reports(100))
    store.rebuild(plan())
    newer = store.load_checkpoint(plan())
    assert newer is not None
    store.save_checkpoint(
        plan(), replace(newer, upto=newer.upto - 1, people=1, data=b"older"), force=False
    )
    assert store.load_checkpoint(plan()) == newer


# -- turns


def test_two_who_write_in_turn_see_what_the_other_did(url: str) -> None:
    """Whatever a writer remembers of the store ends when another one has written."""
    with open_store(url) as one, open_store(url) as two:
        one.add_plan(plan())
        for turn, store in enumerate((one, two, one, two, one)):
            assert (store.append(plan(), ids(5, turn), reports(5, turn)) == Outcome.STORED).all()
        for store in (one, two):
            assert store.count(plan()) == store.aggregate(plan()).people == 25
            for turn in range(5):
                assert (
                    store.append(plan(), ids(5, turn), reports(5, turn)) == Outcome.DUPLICATE
                ).all()
        sequence = [last for last, _, _ in one.read(plan(), batch=5)]
        assert sequence == sorted(set(sequence))
        two.close_survey(plan().id)
        with pytest.raises(SurveyClosed):
            one.append(plan(), ids(5, 9), reports(5, 9))


def test_a_batch_is_bounded_in_bytes(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.add_plan(plan())
    store.append(plan(), ids(100), reports(100))
    width = 20 + plan().cohorts.bytes
    monkeypatch.setattr("sottovoce.store.base.MOST_BATCH_BYTES", 30 * width)
    assert [len(some) for _, some, _ in store.read(plan())] == [30, 30, 30, 10]
    assert [len(some) for _, some, _ in store.read(plan(), batch=60)] == [30, 30, 30, 10]
    assert [len(some) for _, some, _ in store.read(plan(), batch=7)][:2] == [7, 7]


# -- threads and ends


def test_threads_append_and_read_at_once(store: Store) -> None:
    store.add_plan(plan())
    failed: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for step in range(8):
                part = (plan(), ids(20, seed=number * 100 + step), reports(20, seed=step))
                if number < 3:
                    assert not isinstance(store.append_many([part, part])[1], Exception)
                else:
                    people = store.aggregate(plan()).people
                    assert people % 20 == 0
                    assert people <= store.count(plan())
        except BaseException as wrong:
            failed.append(wrong)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert store.count(plan()) == store.aggregate(plan()).people == 480


def test_two_open_stores_see_each_other(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sottovoce.store.id_index.RUN", 50)
    with open_store(url) as one, open_store(url) as two:
        one.add_plan(plan())
        for seed in range(12):
            writer, other = (one, two) if seed % 3 else (two, one)
            assert not writer.append(plan(), ids(30, seed), reports(30, seed)).any()
            assert (other.append(plan(), ids(30, seed), reports(30, seed)) == DUPLICATE).all()
            assert one.aggregate(plan()) == two.aggregate(plan())
        assert one.count(plan()) == 360
        assert one.signing_key() == two.signing_key()


def test_many_may_open_an_empty_store_at_once(url: str) -> None:
    def opened(_: int) -> bytes:
        with open_store(url) as store:
            store.add_plan(plan())
            return store.signing_key()

    with ThreadPoolExecutor(6) as threads:
        assert len(set(threads.map(opened, range(6)))) == 1


def test_a_closed_store_says_so(url: str) -> None:
    store = open_store(url)
    store.add_plan(plan())
    store.close()
    store.close()
    for ask in (store.entries, store.signing_key, lambda: store.append(plan(), ids(1), reports(1))):
        with pytest.raises(StoreError, match="closed"):
            ask()
