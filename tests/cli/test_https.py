"""HTTPS by a collector itself: `--certificate` and `--certificate-key`."""

from __future__ import annotations

import re
import socket
import ssl
from pathlib import Path

import httpx
import pytest

import sottovoce as sv
from sottovoce.console.writing import write_plan
from tests.cli.helpers import Command, Outcome, refused
from tests.service.certificates import self_signed
from tests.service.processes import running


@pytest.mark.parametrize("command", ["serve", "studio"])
def test_a_collector_speaks_https_by_itself(tmp_path: Path, command: str) -> None:
    certificate, key = self_signed(tmp_path)
    log = tmp_path / "log.txt"
    plan = sv.plan(sv.Schema(x=sv.Boolean()), sv.Frequencies("x"), epsilon=1, people=10)
    write_plan(plan, tmp_path / "plan.json", sv.Texts(consent="I agree to it."))
    arguments = [command, str(tmp_path / "plan.json"), "--store", f"sqlite:///{tmp_path}/s.db"]
    pair = ["--certificate", str(certificate), "--certificate-key", str(key)]
    with running([*arguments, "--port", "0", *pair], log=log) as collector:
        assert re.fullmatch(r"Listening at https://127\.0\.0\.1:\d+(/studio)?", collector.first)
        with socket.create_connection(("127.0.0.1", collector.port)) as plain:
            plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert not plain.recv(1000).startswith(b"HTTP")
        trusted = ssl.create_default_context(cafile=str(certificate))
        with httpx.Client(base_url=collector.url, verify=trusted) as client:
            assert client.get("/healthz").status_code == 200
            record = client.get(f"/v1/plans/{plan.id}")
            assert record.text == plan.to_json()
            if command == "studio":
                link = collector.next_line().rsplit(" ", 1)[1]
                cookie = client.get(link).headers["set-cookie"]
                assert "Secure" in cookie
                # the texts that lie beside the plan
                assert "I agree to it." in client.get(f"/studio/take/{plan.id}").text
    if command == "studio":
        assert log.read_text() == ""  # quiet, also about whoever speaks no HTTPS


def test_a_studio_tells_more_if_it_is_asked_to(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    arguments = ["studio", "--store", f"sqlite:///{tmp_path}/s.db", "--port", "0", "--verbose"]
    with running(arguments, log=log) as studio:
        assert httpx.get(f"{studio.url}/studio/nowhere").status_code == 404
    assert '"event": "refused"' in log.read_text()


def test_files_that_are_no_certificate_are_refused(sottovoce: Command, tmp_path: Path) -> None:
    certificate, key = self_signed(tmp_path)
    _, other = self_signed(tmp_path / "other")
    _, locked = self_signed(tmp_path / "locked", password=b"secret")
    missing, text = tmp_path / "missing.pem", tmp_path / "text.pem"
    text.write_text("no certificate")

    def tried(*options: object) -> Outcome:
        return sottovoce("studio", "--store", f"sqlite:///{tmp_path}/s.db", *map(str, options))

    pair = ("--certificate", "--certificate-key")
    for wrong, rule in (
        ((missing, key), f"certificate ({missing}) cannot be read: no such file"),
        ((certificate, tmp_path), f"certificate-key ({tmp_path}) cannot be read"),
        ((text, key), f"certificate ({text}) must be a PEM file"),
        ((certificate, other), f"certificate-key ({other}) is not the key of"),
        ((certificate, locked), f"certificate-key ({locked}) must have no password"),
        ((key, certificate), "must be a certificate and its private key"),
    ):
        refused(tried(pair[0], wrong[0], pair[1], wrong[1]), rule)
    refused(tried(pair[0], certificate), "give both --certificate and --certificate-key")
    assert not (tmp_path / "s.db").exists()
