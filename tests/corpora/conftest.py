"""The samples in the corpora's own layouts, written for this project, and a server to download from."""

from __future__ import annotations

import http.server
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

SAMPLES = Path(__file__).parent.parent / "data" / "corpora"


@pytest.fixture(scope="session")
def samples() -> Path:
    return SAMPLES


@pytest.fixture
def spoilt(tmp_path: Path) -> Path:
    """The samples once more, to be spoilt."""
    return Path(shutil.copytree(SAMPLES, tmp_path / "samples"))


@dataclass
class Shop:
    """A server with one file, which answers as it is told."""

    content: bytes = bytes(range(256)) * 4000
    etag: str = '"one"'
    modified: str = ""
    ranges: bool = True
    lengths: bool = True
    cut_after: list[int] = field(default_factory=list)
    """Bytes to send before the connection is cut, request by request."""
    statuses: list[int] = field(default_factory=list)
    """Other answers to give first."""
    asked: list[dict[str, str]] = field(default_factory=list)
    sent: int = 0
    url: str = ""


class _Handler(http.server.BaseHTTPRequestHandler):
    shop: Shop

    def do_GET(self) -> None:
        shop = self.shop
        shop.asked.append({key.lower(): value for key, value in self.headers.items()})
        if shop.statuses:
            self.send_response(shop.statuses.pop(0))
            self.send_header("Retry-After", "7")
            self.end_headers()
            return
        start = self._start()
        if start is not None and start >= len(shop.content):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(shop.content)}")
            self.end_headers()
            return
        self.send_response(200 if start is None else 206)
        body = shop.content[start or 0 :]
        if start is not None:
            whole = len(shop.content)
            self.send_header("Content-Range", f"bytes {start}-{whole - 1}/{whole}")
        if shop.lengths:
            self.send_header("Content-Length", str(len(body)))
        if shop.etag:
            self.send_header("ETag", shop.etag)
        if shop.modified:
            self.send_header("Last-Modified", shop.modified)
        self.end_headers()
        cut = shop.cut_after.pop(0) if shop.cut_after else len(body)
        shop.sent += len(body[:cut])
        self.wfile.write(body[:cut])

    def _start(self) -> int | None:
        """Where the wanted part begins, if ranges are served and the file is still the same."""
        asked = self.headers.get("Range")
        condition = self.headers.get("If-Range")
        if (
            not self.shop.ranges
            or asked is None
            or condition not in (None, self.shop.etag, self.shop.modified)
        ):
            return None
        return int(asked.removeprefix("bytes=").rstrip("-"))

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def shop() -> Iterator[Shop]:
    found = Shop()
    handler = type("Handler", (_Handler,), {"shop": found})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        found.url = f"http://127.0.0.1:{server.server_address[1]}/files/corpus.bin"
        yield found
        server.shutdown()
        thread.join()
