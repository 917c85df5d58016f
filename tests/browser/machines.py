"""What the tests here need from the machine: Node, Chromium, and a small HTTP server of our own."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "clients" / "js"
CHROMIUM = "/usr/bin/chromium"
HAS_NODE = shutil.which("node") is not None
HAS_CHROMIUM = Path(CHROMIUM).exists() and find_spec("playwright") is not None
KINDS = {".js": "text/javascript", ".json": "application/json"}
SHOWN = ("/clients/js/", "/tests/vectors/")  # what a page may load
BLANK = b"<!doctype html><title>a page</title>"
CAPTIVE = b"<html>please log in</html>"

# of what vectors say, as a list: run by in_node
MISMATCHES = """
import { readFileSync } from "node:fs";
import * as sottovoce from "./src/index.js";
import { mismatches } from "./tests/check.js";
const vectors = JSON.parse(readFileSync(process.argv[1], "utf8"));
console.log(JSON.stringify(await mismatches(sottovoce, vectors)));
"""

Answer = tuple[int, Any]


def in_node(script: str, data: object, folder: Path) -> Any:
    """What a script prints as JSON that is run beside the client, in Node, with a file of data."""
    told = folder / "told.json"
    told.write_text(json.dumps(data))
    done = subprocess.run(
        ["node", "--input-type=module", "--eval", script, str(told)],
        cwd=CLIENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@contextmanager
def browsing() -> Iterator[Any]:
    """Debian's Chromium, without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@dataclass
class Site:
    """A site of the project's files, and a collector at /v1 that gives the answers it was
    told to.
    """

    url: str = ""
    # by path, in turn, the last one for ever
    answers: dict[str, list[Answer]] = field(default_factory=dict)
    asked: list[tuple[str, str, str]] = field(default_factory=list)  # method, path, body

    def answer(self, path: str, *answers: Answer) -> None:
        """Forget what was asked, and give these answers from now on."""
        self.asked.clear()
        self.answers[path] = list(answers)

    def next_answer(self, path: str) -> tuple[int, str, bytes]:
        listed = self.answers.get(path)
        if not listed:
            return (
                404,
                "application/problem+json",
                json.dumps({"title": "Not here", "status": 404}).encode(),
            )
        status, body = listed.pop(0) if len(listed) > 1 else listed[0]
        if isinstance(body, bytes):
            return status, "application/octet-stream", body
        return (
            status,
            "application/json" if status < 400 else "application/problem+json",
            json.dumps(body).encode(),
        )

    def file(self, path: str) -> tuple[int, str, bytes]:
        where = (ROOT / path.lstrip("/")).resolve()
        if not path.startswith(SHOWN) or not where.is_relative_to(ROOT) or not where.is_file():
            return (200, "text/html", BLANK) if path == "/" else (404, "text/plain", b"")
        return 200, KINDS.get(where.suffix, "text/plain"), where.read_bytes()


def _handler(site: Site) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._reply()

        def do_POST(self) -> None:
            self._reply()

        def _reply(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            said = self.rfile.read(length).decode()
            is_call = self.path.startswith("/v1/")
            if is_call:
                site.asked.append((self.command, self.path, said))
            status, kind, body = site.next_answer(self.path) if is_call else site.file(self.path)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler


@contextmanager
def serving() -> Iterator[Site]:
    """A site that is there for so long, on a port of its own."""
    site = Site()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(site))
    server.daemon_threads = True
    site.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
    )
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
