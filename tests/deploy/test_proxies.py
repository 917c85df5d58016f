"""nginx and Caddy with the files of ``deploy/``, real ones with TLS,
in front of a real collector.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import ssl
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest

import sottovoce as sv
from bench.collector import free_port
from sottovoce.device.assignment import new_id
from sottovoce.device.messages import write_json
from sottovoce.service.tokens import new_token
from sottovoce.store import open_store
from tests.deploy.files import FOLDER, variables
from tests.service.processes import running
from tests.waiting import HANG

PLAN = sv.plan(sv.Schema(smoker=sv.Boolean()), sv.Frequencies("smoker"), epsilon=1.0, people=1000)
NAME, UPSTREAM = "survey.example.org", "127.0.0.1:8700"
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
CADDY = shutil.which("caddy")
OPENSSL = shutil.which("openssl")
# each a client that was not heard of before
_ADDRESSES = (f"127.0.1.{number}" for number in count(1))


@dataclass(frozen=True)
class Site:
    """A proxy that is ready, and the store behind it."""

    http: int
    https: int
    trusted: ssl.SSLContext
    store: str

    @property
    def url(self) -> str:
        return f"https://localhost:{self.https}"

    def ask(
        self, method: str, path: str, address: str | None = None, **options: Any
    ) -> httpx.Response:
        """One request over TLS, from an address of its own unless one is given."""
        transport = httpx.HTTPTransport(
            verify=self.trusted, local_address=address or next(_ADDRESSES)
        )
        with httpx.Client(transport=transport, timeout=HANG) as client:
            return client.request(method, self.url + path, **options)

    def send(self, address: str, **headers: str) -> int:
        """A device's report; the answer's status."""
        body = json.dumps(write_json(new_id(), sv.Client(PLAN).report({"smoker": True})))
        return self.ask(
            "POST", "/v1/reports", address, content=body, headers=headers | JSON
        ).status_code


JSON = {"Content-Type": "application/json"}


@contextmanager
def proxy(
    command: list[str], folder: Path, environment: dict[str, str] | None = None
) -> Iterator[Any]:
    """A proxy's process; what it gives says that it has not ended."""
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=log, env=os.environ | (environment or {})
        )
        try:

            def runs() -> None:
                assert process.poll() is None, (folder / "log").read_text()

            yield runs
        finally:
            process.terminate()
            process.wait()


def ready(https: int, authority: Path, runs: Any) -> ssl.SSLContext:
    """Whom the proxy's certificate is of, as soon as it answers with one;
    it must not end before.
    """
    while True:
        runs()
        if authority.exists():
            try:
                trusted = ssl.create_default_context(cafile=str(authority))
                httpx.get(f"https://localhost:{https}/healthz", verify=trusted)
                return trusted
            except (httpx.TransportError, ssl.SSLError):
                pass
        time.sleep(0.02)


@contextmanager
def nginx(folder: Path, upstream: int, store: str) -> Iterator[Site]:
    """nginx on the file as it is, but for names, ports and the certificate."""
    assert NGINX is not None
    assert OPENSSL is not None
    http, https = free_port(), free_port()
    key, certificate = folder / "privkey.pem", folder / "fullchain.pem"
    make = [
        OPENSSL,
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
    ]
    make += [
        "-subj",
        "/CN=localhost",
        "-addext",
        "subjectAltName=DNS:localhost",
        "-keyout",
        str(key),
        "-out",
    ]
    subprocess.run([*make, str(certificate)], check=True, capture_output=True)
    text = (FOLDER / "nginx.conf").read_text()
    for old, new in (
        (f"/etc/letsencrypt/live/{NAME}", str(folder)),
        (UPSTREAM, f"127.0.0.1:{upstream}"),
        (NAME, "localhost"),
        ("    listen [::]:80;\n", ""),
        ("    listen [::]:80 default_server;\n", ""),
        ("    listen [::]:443 ssl http2;\n", ""),
        ("    listen [::]:443 ssl http2 default_server;\n", ""),
        ("listen 80", f"listen 127.0.0.1:{http}"),
        ("listen 443 ssl", f"listen 127.0.0.1:{https} ssl"),
        ("/var/log/nginx/error.log", f"{folder}/error.log"),
    ):
        assert old in text
        text = text.replace(old, new)
    (folder / "sottovoce.conf").write_text(text)
    temporary = "".join(
        f"{kind}_temp_path {folder}/{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    user = "user root;\n" if os.geteuid() == 0 else ""
    main = f"{user}daemon off;\npid {folder}/nginx.pid;\nevents {{}}\n"
    (folder / "nginx.conf").write_text(
        f"{main}http {{\n{temporary}access_log {folder}/access.log;\ninclude "
        f"{folder}/sottovoce.conf;\n}}\n"
    )
    command = [NGINX, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", "stderr"]
    checked = subprocess.run([*command, "-t"], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    with proxy(command, folder) as runs:
        yield Site(http, https, ready(https, certificate, runs), store)


@contextmanager
def caddy(folder: Path, upstream: int, store: str) -> Iterator[Site]:
    """Caddy on the file as it is, but for names and ports,
    and with certificates of its own making.
    """
    assert CADDY is not None
    http, https = free_port(), free_port()
    text = (FOLDER / "Caddyfile").read_text()
    for old, new in (
        (UPSTREAM, f"127.0.0.1:{upstream}"),
        (NAME, "localhost"),
        ("\n{\n", "\n{\n# own\n"),
    ):
        assert old in text
        text = text.replace(old, new)
    ports = f"http_port {http}\n\thttps_port {https}"
    own = (
        f"\tadmin off\n\tlocal_certs\n\tskip_install_trust\n\t{ports}\n"
        f"\tstorage file_system {folder}/own\n"
    )
    (folder / "Caddyfile").write_text(text.replace("# own\n", own))
    homes = {"HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    command = [CADDY, "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]
    with proxy(command, folder, homes) as runs:
        yield Site(
            http, https, ready(https, folder / "own/pki/authorities/local/root.crt", runs), store
        )


PROXIES = [
    pytest.param(
        nginx,
        marks=pytest.mark.skipif(not (NGINX and OPENSSL), reason="nginx or openssl is missing"),
    ),
    pytest.param(caddy, marks=pytest.mark.skipif(not CADDY, reason="Caddy is missing")),
]


@pytest.fixture(scope="module", params=PROXIES)
def site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    """A studio with the settings of the unit; its limit gives each client one request."""
    folder = tmp_path_factory.mktemp("site")
    store = f"sqlite:///{folder}/survey.db"
    (folder / "plan.json").write_bytes(PLAN.to_json().encode())
    settings = variables() | {
        "SOTTOVOCE_STORE": store,
        "SOTTOVOCE_PORT": "0",
        "SOTTOVOCE_RATE_LIMIT": "0.000001",
    }
    with (
        running(["studio", str(folder / "plan.json")], settings) as collector,
        request.param(folder, collector.port, store) as made,
    ):
        yield made


def test_a_report_arrives_and_the_limit_sees_whose_it_is(site: Site) -> None:
    one, other = next(_ADDRESSES), next(_ADDRESSES)
    assert site.send(one) == 200
    assert site.send(one) == 429
    # what a client claims is dropped
    assert site.send(one, **{"X-Forwarded-For": "198.51.100.7"}) == 429
    assert site.send(other) == 200
    with open_store(site.store) as store:
        assert store.count(PLAN) >= 2


def test_probes_are_not_limited(site: Site) -> None:
    address = next(_ADDRESSES)
    assert {site.ask("GET", "/healthz", address).status_code for _ in range(5)} == {200}


def test_strangers_are_asked_for_a_token(site: Site) -> None:
    answer = site.ask("GET", "/studio/")
    assert (answer.status_code, answer.headers["location"]) == (303, "/studio/login?next=/studio/")
    assert site.ask("GET", "/v1/surveys").status_code == 401
    assert site.ask("GET", "/metrics").status_code == 401
    assert site.ask("GET", f"/studio/take/{PLAN.id}").status_code == 200


def test_an_analyst_logs_in_over_https(site: Site) -> None:
    with open_store(site.store) as store:
        token = new_token(store, "ada", "read")
    let_in = site.ask(
        "POST", "/studio/login", data={"token": token, "next": ""}, headers={"Origin": site.url}
    )
    assert let_in.status_code == 303
    cookie = let_in.headers["set-cookie"]
    assert "; Secure" in cookie
    assert "HttpOnly" in cookie
    held = {"Cookie": cookie.partition(";")[0]}
    assert site.ask("GET", "/studio/", headers=held).status_code == 200
    page = site.ask("GET", f"/studio/watch/{PLAN.id}", headers=held).text
    assert f"{site.url}/studio/take/{PLAN.id}" in page  # the link to be handed on is the proxy's
    elsewhere = {"Origin": "https://elsewhere.example"}
    assert (
        site.ask("POST", "/studio/login", data={"token": token}, headers=elsewhere).status_code
        == 403
    )


def test_browsers_are_kept_on_https(site: Site) -> None:
    answer = httpx.get(f"http://127.0.0.1:{site.http}/studio/take/x", headers={"Host": "localhost"})
    assert answer.status_code == 308
    assert answer.headers["location"] == "https://localhost/studio/take/x"
    assert site.ask("GET", "/healthz").headers["strict-transport-security"] == "max-age=31536000"


def test_a_large_body_is_refused(site: Site) -> None:
    kept = site.ask("POST", "/v1/reports", content=b" " * (7 << 20), headers=JSON)
    assert kept.json()["type"].endswith("/malformed-body")  # the collector saw it
    refused = site.ask("POST", "/v1/reports", content=b" " * (9 << 20), headers=JSON).status_code
    assert refused in (413, 502)  # 502 if the collector hung up while the proxy was still sending


def test_plain_http_leads_nowhere_else(site: Site) -> None:
    """A link that somebody made with another name does not come back from here as a redirect to
    that name.
    """
    with httpx.Client() as client:
        try:
            answer = client.get(
                f"http://127.0.0.1:{site.http}/x", headers={"Host": "elsewhere.example"}
            )
        except httpx.RemoteProtocolError:
            return  # it hung up
    assert "elsewhere.example" not in answer.headers.get("location", "")


@contextmanager
def endless_answer(port: int) -> Iterator[threading.Event]:
    """A collector whose answer never ends; what it gives says that the proxy has hung up."""
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", port)) as listening:

        def serve() -> None:
            asking, _ = listening.accept()
            with asking:
                asking.recv(65536)
                try:
                    asking.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {1 << 40}\r\n\r\n".encode())
                    while True:
                        asking.sendall(bytes(1 << 16))
                except OSError:
                    ended.set()

        thread = threading.Thread(target=serve)
        thread.start()
        yield ended
        thread.join()


def hang_up(site: Site, address: str) -> None:
    """Ask, and go as soon as the answer begins."""
    with socket.create_connection(("127.0.0.1", site.https), HANG, (address, 0)) as plain:
        # without a word
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        with site.trusted.wrap_socket(plain, server_hostname="localhost") as asking:
            asking.sendall(b"GET /v1/surveys HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert asking.recv(65536).startswith(b"HTTP/1.1 200 ")


def break_handshake(site: Site, address: str) -> None:
    """Begin TLS with a key that cannot be one."""
    client = ssl.create_default_context()
    client.set_ecdh_curve("prime256v1")
    outgoing = ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        client.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost").do_handshake()
    sent = outgoing.read()
    size = 65  # of a key, which stands behind the number of its curve and its length
    place = sent.index(struct.pack(">HH", 0x0017, size)) + 4
    with socket.create_connection(("127.0.0.1", site.https), HANG, (address, 0)) as asking:
        asking.sendall(sent[:place] + bytes(size) + sent[place + size :])
        assert asking.recv(65536)[:1] == b"\x15"  # an alert


@pytest.mark.parametrize("made", PROXIES)
def test_nothing_is_written_about_who_asked(made: Any, tmp_path: Path) -> None:
    """Neither of visits, over plain HTTP too, nor of what goes wrong: a large body, a collector
    that does not run, a handshake that fails, a client that hangs up.
    """
    address, upstream = next(_ADDRESSES), free_port()
    with made(tmp_path, upstream, "") as site:
        with httpx.Client(transport=httpx.HTTPTransport(local_address=address)) as client:
            assert (
                client.get(
                    f"http://127.0.0.1:{site.http}/x", headers={"Host": "localhost"}
                ).status_code
                == 308
            )
        large = site.ask("POST", "/v1/reports", address, content=b" " * (9 << 20), headers=JSON)
        assert large.status_code in (413, 502)  # Caddy looks for the collector first
        assert site.ask("GET", "/healthz", address).status_code == 502
        break_handshake(site, address)
        with endless_answer(upstream) as ended:
            hang_up(site, address)
            assert ended.wait(HANG)
    logs = {name: tmp_path / name for name in ("log", "error.log", "access.log")}
    assert not [
        name for name, path in logs.items() if path.exists() and address in path.read_text()
    ]
