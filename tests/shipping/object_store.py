"""An object store on this machine that pyarrow's S3FileSystem takes for one: what the tests need of
S3, kept in memory, one object whole or not there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import md5
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from threading import Lock, Thread
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

BUCKET = "bucket"
DATE = "2026-01-01T00:00:00.000Z"


class ObjectStore(ThreadingHTTPServer):
    """Its objects by name."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.objects: dict[str, bytes] = {}
        self.parts: dict[str, dict[int, bytes]] = {}
        self.numbers = count(1)
        self.lock = Lock()

    def handle_error(self, *_: object) -> None:
        """Whoever is killed on the way leaves half a request."""

    @property
    def url(self) -> str:
        """As `--to` takes it, with a secret that no message may show."""
        port = self.server_address[1]
        options = f"scheme=http&endpoint_override=127.0.0.1%3A{port}&region=us-east-1"
        return f"s3://somebody:secret@{BUCKET}/collected?{options}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ObjectStore

    def log_message(self, *_: object) -> None:
        return

    # -- requests

    def _asked(self) -> tuple[str, dict[str, str]]:
        """(the object's name, the options of a request)"""
        parts = urlsplit(self.path)
        name = unquote(parts.path).removeprefix(f"/{BUCKET}").lstrip("/")
        query = parse_qs(parts.query, keep_blank_values=True)
        return name, {key: values[0] for key, values in query.items()}

    def _body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            data = self._chunks()
        else:
            data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if "aws-chunked" in self.headers.get("Content-Encoding", ""):
            return _unwrapped(data)
        return data

    def _chunks(self) -> bytes:
        out = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            out += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return out

    def _answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _missing(self) -> None:
        self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>", Content_Type="application/xml")

    # -- verbs

    def do_HEAD(self) -> None:
        name, _ = self._asked()
        found = b"" if not name else self.server.objects.get(name)
        if found is None:
            self._answer(404)
        else:
            size = str(len(found))
            self._answer(200, Content_Length=size, ETag=_tag(found), Last_Modified=HTTP_DATE)

    def do_GET(self) -> None:
        name, options = self._asked()
        if "list-type" in options:
            self._answer(200, self._listing(options), Content_Type="application/xml")
            return
        found = self.server.objects.get(name)
        if found is None:
            self._missing()
            return
        status = 200
        if (asked := self.headers.get("Range")) is not None:
            first, _, last = asked.removeprefix("bytes=").partition("-")
            found, status = found[int(first) : int(last or len(found)) + 1], 206
        self._answer(status, found, ETag=_tag(found), Last_Modified=HTTP_DATE)

    def _listing(self, options: dict[str, str]) -> bytes:
        prefix, cut = options.get("prefix", ""), options.get("delimiter", "")
        with self.server.lock:
            names = sorted(name for name in self.server.objects if name.startswith(prefix))
        rows, folders = [], []
        for name in names:
            inner, found, _ = name[len(prefix) :].partition(cut) if cut else (name, "", "")
            if found:
                folders.append(f"{prefix}{inner}{cut}")
                continue
            size = len(self.server.objects.get(name, b""))
            rows.append(
                f"<Contents><Key>{escape(name)}</Key><Size>{size}</Size>"
                f"<LastModified>{DATE}</LastModified></Contents>"
            )
        rows += [
            f"<CommonPrefixes><Prefix>{escape(each)}</Prefix></CommonPrefixes>"
            for each in dict.fromkeys(folders)
        ]
        text = f"<KeyCount>{len(rows)}</KeyCount><IsTruncated>false</IsTruncated>{''.join(rows)}"
        return f"<ListBucketResult><Name>{BUCKET}</Name>{text}</ListBucketResult>".encode()

    def do_PUT(self) -> None:
        name, options = self._asked()
        data = self._body()
        with self.server.lock:
            if "uploadId" in options:
                self.server.parts[options["uploadId"]][int(options["partNumber"])] = data
            elif name:
                self.server.objects[name] = data
        self._answer(200, ETag=_tag(data))

    def do_POST(self) -> None:
        name, options = self._asked()
        self._body()
        with self.server.lock:
            if "uploads" in options:
                upload = str(next(self.server.numbers))
                self.server.parts[upload] = {}
                text = f"<UploadId>{upload}</UploadId><Key>{escape(name)}</Key>"
                body = f"<InitiateMultipartUploadResult>{text}</InitiateMultipartUploadResult>"
            else:
                parts = self.server.parts.pop(options["uploadId"])
                self.server.objects[name] = b"".join(parts[number] for number in sorted(parts))
                text = f"<Key>{escape(name)}</Key><ETag>{_tag(self.server.objects[name])}</ETag>"
                body = f"<CompleteMultipartUploadResult>{text}</CompleteMultipartUploadResult>"
        self._answer(200, body.encode(), Content_Type="application/xml")

    def do_DELETE(self) -> None:
        name, _ = self._asked()
        with self.server.lock:
            self.server.objects.pop(name, None)
        self._answer(204)


HTTP_DATE = "Thu, 01 Jan 2026 00:00:00 GMT"


def _tag(data: bytes) -> str:
    return f'"{md5(data, usedforsecurity=False).hexdigest()}"'


def _unwrapped(data: bytes) -> bytes:
    """What was signed chunk by chunk: each has its length in a line before it."""
    out, place = b"", 0
    while True:
        end = data.index(b"\r\n", place)
        size = int(data[place:end].split(b";")[0], 16)
        if not size:
            return out
        out += data[end + 2 : end + 2 + size]
        place = end + 2 + size + 2


@contextmanager
def serving() -> Iterator[ObjectStore]:
    """An empty one, until the block ends."""
    server = ObjectStore()
    thread = Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
