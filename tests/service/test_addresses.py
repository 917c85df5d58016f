"""Whose request it is: proxies that are believed, what counts as one address, and Host headers that
are none.
"""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from sottovoce.ground.errors import InvalidInput
from sottovoce.service.addresses import client_of, household, is_host, networks
from sottovoce.service.middleware import PROBES, RateLimit
from sottovoce.service.settings import Settings
from tests.service.collector import PLAN, Collector, collecting, device

PROXIES = networks(["127.0.0.1", "10.0.0.0/8, fd00::/8"])


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        (
            "203.0.113.9",
            ["198.51.100.7"],
            "203.0.113.9",
        ),  # nobody that is believed: its word counts for nothing
        ("127.0.0.1", ["198.51.100.7"], "198.51.100.7"),
        (
            "127.0.0.1",
            ["1.1.1.1, 198.51.100.7"],
            "198.51.100.7",
        ),  # the left one is the client's own claim
        ("127.0.0.1", ["1.1.1.1", "198.51.100.7"], "198.51.100.7"),  # also in a header of its own
        ("127.0.0.1", ["1.1.1.1, 198.51.100.7, 10.1.2.3"], "198.51.100.7"),  # through two proxies
        ("127.0.0.1", ["10.9.9.9, 198.51.100.7"], "198.51.100.7"),  # a claim to be a proxy
        ("127.0.0.1", ["127.0.0.1, 198.51.100.7"], "198.51.100.7"),
        ("127.0.0.1", ["10.9.9.9, 10.1.2.3"], "10.9.9.9"),  # proxies alone: one of them asks
        ("127.0.0.1", [], "127.0.0.1"),
        ("127.0.0.1", [""], "127.0.0.1"),
        (
            "127.0.0.1",
            ["1.1.1.1, unknown"],
            "127.0.0.1",
        ),  # the proxy wrote no address: it answers for it
        ("127.0.0.1", ["198.51.100.7:4711"], "198.51.100.7"),
        ("127.0.0.1", ["[2001:db8::5]:4711"], "2001:db8::5"),
        ("127.0.0.1", ["2001:db8::5, fd00::1"], "2001:db8::5"),
        ("::ffff:127.0.0.1", ["::ffff:198.51.100.7"], "198.51.100.7"),
        ("", ["198.51.100.7"], ""),
    ],
)
def test_the_rightmost_that_is_no_proxy_is_the_client(
    peer: str, forwarded: list[str], client: str
) -> None:
    assert client_of(peer, forwarded, PROXIES) == client


@pytest.mark.parametrize(
    "text", ["*", "proxy.example", "10.0.0.0/33", "10.0.0.1/8", "127.0.0.1:80"]
)
def test_proxies_that_cannot_be(text: str) -> None:
    with pytest.raises(InvalidInput, match="proxy"):
        Settings(proxies=(text,))


@pytest.mark.parametrize(
    ("address", "counted"),
    [
        ("198.51.100.7", "198.51.100.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
        ("::ffff:198.51.100.7", "198.51.100.7"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
    ],
)
def test_a_household_counts_as_one(address: str, counted: str) -> None:
    assert household(address) == counted


def test_a_limit_counts_the_first_64_bits() -> None:
    limit = RateLimit(None, 1e-9)  # type: ignore[arg-type]
    assert limit._allowed(household("2001:db8:1:2::1"))
    assert not any(
        limit._allowed(household(f"2001:db8:1:2::{number:x}")) for number in range(2, 100)
    )
    assert limit._allowed(household("2001:db8:1:3::1"))


# -- on the wire


def statuses(collector: Collector, *clients: str) -> list[int]:
    return [
        collector.ask("POST", "/v1/reports", device(), **{"X-Forwarded-For": each}).status
        for each in clients
    ]


def test_a_limit_sees_the_client_behind_a_proxy(tmp_path: Path) -> None:
    with collecting(
        f"sqlite:///{tmp_path}/s.db", rate_limit=1e-9, proxies=("127.0.0.1",)
    ) as collector:
        assert statuses(collector, "198.51.100.7", "198.51.100.8", "198.51.100.7") == [
            200,
            200,
            429,
        ]
        # lies
        assert statuses(collector, "1.2.3.4, 198.51.100.7", "5.6.7.8, 198.51.100.8") == [
            429,
            429,
        ]
        assert statuses(collector, "2001:db8::1", "2001:db8::2", "2001:db8:0:1::1") == [
            200,
            429,
            200,
        ]


@pytest.mark.parametrize("proxies", [(), ("198.51.100.1",)])
def test_a_stranger_is_not_believed(tmp_path: Path, proxies: tuple[str, ...]) -> None:
    with collecting(f"sqlite:///{tmp_path}/s.db", rate_limit=1e-9, proxies=proxies) as collector:
        assert statuses(collector, "198.51.100.7", "198.51.100.8", "198.51.100.9") == [
            200,
            429,
            429,
        ]


def test_a_limit_spares_probes(tmp_path: Path) -> None:
    with collecting(f"sqlite:///{tmp_path}/s.db", rate_limit=1e-9) as collector:
        assert [collector.ask("GET", "/healthz").status for _ in range(20)] == [200] * 20
        assert collector.post(device()).status == 200  # they were not counted
        assert collector.post(device()).status == 429
        assert all(collector.ask("GET", probe).status != 429 for probe in PROBES)
        assert collector.ask("GET", "/healthz/x").status == 429


@pytest.mark.parametrize(
    ("host", "is_one"),
    [
        ("localhost:8700", True),
        ("127.0.0.1", True),
        ("[::1]:8700", True),
        ("survey.example", True),
        ("collector_1:80", True),
        ("", True),
        ("[::1", False),
        ("::1", False),
        ("[]", False),
        ("[1.2.3]", False),
        ("a b", False),
        ("a:b:c", False),
        ("a:70000", False),
        ("a:b", False),
        ("a/b", False),
        ("a@b", False),
        ("a,b", False),
        ("\xff", False),
        ("a?b#c", False),
    ],
)
def test_hosts(host: str, is_one: bool) -> None:
    assert is_host(host) is is_one


def raw(collector: Collector, head: str) -> bytes:
    with socket.create_connection(("127.0.0.1", collector.port)) as connection:
        connection.sendall(f"{head}Connection: close\r\n\r\n".encode("latin-1"))
        return b"".join(iter(lambda: connection.recv(65536), b""))


@pytest.mark.parametrize(
    "path", ["/healthz", "/v1/surveys", "/v1/surveys/", f"/v1/plans/{PLAN.id}", "/v1/reports"]
)
@pytest.mark.parametrize("host", ["[::1", "a b", "a:b:c", "]", "x\r\nHost: y"])
def test_a_malformed_host_is_a_problem(collector: Collector, path: str, host: str) -> None:
    answer = raw(collector, f"GET {path} HTTP/1.1\r\nHost: {host}\r\n")
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"problems/malformed-host" in answer


def test_only_the_oldest_http_needs_no_host(collector: Collector) -> None:
    assert raw(collector, "GET /healthz HTTP/1.0\r\n").startswith(b"HTTP/1.1 200 ")
    assert raw(collector, "GET /healthz HTTP/1.1\r\n").startswith(b"HTTP/1.1 400 ")
