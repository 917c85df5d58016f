"""Two collectors on one PostgreSQL, senders that try both: everybody counts once."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator

import pytest

import sottovoce as sv
from sottovoce.device.assignment import new_id
from sottovoce.device.messages import BINARY, write_binary, write_json
from sottovoce.store import open_store
from tests.postgres import Cluster, started
from tests.service.collector import PLAN, RECORD, collecting


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with started() as running:
        yield running


def test_two_collectors_count_once(cluster: Cluster) -> None:
    url = cluster.fresh_url()
    senders, each = 6, 40
    sent: list[bytes] = []
    statuses: list[int] = []
    with collecting(url) as one, collecting(url) as two:

        def send(number: int) -> None:
            draws = random.Random(number)
            for _ in range(each):
                id, report = new_id(), sv.Client(PLAN).report(RECORD)
                sent.append(id)
                targets = draws.choices((one, two), k=draws.randint(1, 3))
                for target in targets:  # as if the first answer was lost
                    if draws.random() < 0.5:
                        answer = target.post(write_json(id, report))
                    else:
                        answer = target.post(write_binary([id], [report]), BINARY)
                    statuses.append(answer.status)

        threads = [threading.Thread(target=send, args=(number,)) for number in range(senders)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert set(statuses) == {200}
        assert (
            one.service.survey(PLAN.id).people
            == two.service.survey(PLAN.id).people
            == senders * each
        )
        assert (
            one.analyst("GET", f"/v1/surveys/{PLAN.id}/estimates").json["people"] == senders * each
        )
    store = open_store(url)
    stored = sorted(row.tobytes() for _, ids, _ in store.read(PLAN) for row in ids)
    store.close()
    assert stored == sorted(sent)


def test_a_survey_made_at_one_collector_is_known_to_the_other(cluster: Cluster) -> None:
    url = cluster.fresh_url()
    with collecting(url, ()) as one, collecting(url, ()) as two:
        one.service.create(PLAN, sv.Texts("colours"))
        assert two.ask("GET", f"/v1/plans/{PLAN.id}").data == PLAN.to_json().encode()
        assert two.post(write_json(new_id(), sv.Client(PLAN).report(RECORD))).status == 200
        two.service.close(PLAN.id)
        assert (
            one.post(write_json(new_id(), sv.Client(PLAN).report(RECORD))).problem
            == "survey-closed"
        )
