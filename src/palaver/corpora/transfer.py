"""Files from the web, in one piece although connections break.

The file is written as `NAME.part` and takes its name when it is whole and its hash is right. When a download
breaks off, now or in an earlier run, it goes on from there (`Range`), but only if the server says that the
file is still the same one (`If-Range` with the ETag or date of the first part); otherwise it begins again.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from palaver.errors import DataError, UserError
from palaver.files import sha256_of
from palaver.progress import Progress, no_progress

_BLOCK = 1 << 18
_PASSING = (408, 425, 429, 500, 502, 503, 504)
"""Answers of a server that may be others a little later."""


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long to go on when a connection breaks: `tries` in a row that bring nothing new are the end."""

    tries: int = 5
    first_pause: float = 1.0
    longest_pause: float = 30.0
    timeout: float = 30.0
    sleep: Callable[[float], None] = time.sleep

    def pause(self, failures: int, asked: float = 0.0) -> None:
        doubled = self.first_pause * 2 ** (failures - 1)
        self.sleep(min(max(doubled, asked), self.longest_pause))


class _Broken(Exception):
    """It may work when tried again, `after` seconds later."""

    def __init__(self, reason: str, after: float = 0.0) -> None:
        super().__init__(reason)
        self.after = after


def fetch(
    url: str,
    target: Path,
    *,
    sha256: str | None = None,
    tell: Progress | None = None,
    patience: Patience | None = None,
) -> Path:
    """Download `url` to `target`, going on where an earlier attempt stopped."""
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).netloc:
        raise UserError(f"cannot download {url!r}: expected an address that begins with http:// or https://")
    patience = patience or Patience()
    part = _Part(target, url)
    resumed = part.size > 0
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _complete(url, part, tell or no_progress, patience)
        if sha256 is not None and (actual := sha256_of(part.path)) != sha256:
            part.discard()
            if resumed:  # the parts may not have belonged together: once more from the beginning
                return fetch(url, target, sha256=sha256, tell=tell, patience=patience)
            raise DataError(
                f"{url} is not the file that was expected: its sha256 is {actual}, not {sha256}",
                "it was changed or damaged on the way; nothing was kept",
            )
        part.finish()
    except OSError as error:
        raise UserError(
            f"cannot write {target}: {error.strerror or error}",
            "make room; the download goes on where it stopped",
        ) from error
    return target


def _complete(url: str, part: _Part, tell: Progress, patience: Patience) -> None:
    failures = 0
    while True:
        before = part.size
        try:
            return _attempt(url, part, tell, patience.timeout)
        except _Broken as broken:
            failures = 1 if part.size > before else failures + 1
            if failures >= patience.tries:
                raise UserError(
                    f"cannot download {url}: {broken} ({failures} times in a row)",
                    f"{part.size:,} bytes are kept; the same command goes on from there",
                ) from None
            patience.pause(failures, broken.after)


def _attempt(url: str, part: _Part, tell: Progress, timeout: float) -> None:
    """One request: the rest of the file, or all of it."""
    headers = {"User-Agent": "palaver", "Accept-Encoding": "identity", **part.conditions()}
    try:
        answer = urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=timeout)
    except urllib.error.HTTPError as error:
        with error:
            _refused(url, part, error)
        return
    except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
        raise _Broken(str(getattr(error, "reason", error)) or type(error).__name__) from None
    with answer:
        start, total = _extent(answer, part)
        part.open(answer, start)
        _copy(answer, part, total, lambda done: tell(part.target.name, done, total))


def _refused(url: str, part: _Part, error: urllib.error.HTTPError) -> None:
    if error.code == 416:  # nothing beyond what we have: it is whole, or it is none of this file
        if _total(error.headers.get("Content-Range")) == part.size:
            return
        part.discard()
        raise _Broken("the part that is here does not belong to the file there")
    if error.code in _PASSING:
        asked = error.headers.get("Retry-After", "")
        raise _Broken(f"the server answers {error.code}", float(asked) if asked.isdecimal() else 0.0)
    raise UserError(
        f"cannot download {url}: the server answers {error.code} {error.reason}".rstrip(),
        "has it moved? give another address with --url, or a copy with --from",
    )


def _extent(answer: http.client.HTTPResponse, part: _Part) -> tuple[int, int]:
    """Where what comes belongs in the file, and how long the whole is (0: unknown)."""
    if answer.status == 206:
        match = re.match(r"bytes (\d+)-", answer.headers.get("Content-Range") or "")
        if match is None or int(match[1]) != part.size:
            part.discard()
            raise _Broken("the server sends another part than the one asked for")
        return part.size, _total(answer.headers.get("Content-Range")) or 0
    length = answer.headers.get("Content-Length") or ""
    return 0, int(length) if length.isdecimal() else 0


def _total(content_range: str | None) -> int | None:
    match = re.search(r"/(\d+)$", content_range or "")
    return int(match[1]) if match else None


def _copy(answer: http.client.HTTPResponse, part: _Part, total: int, tell: Callable[[int], None]) -> None:
    with part.path.open("ab") as file:
        while True:
            try:
                block = answer.read(_BLOCK)
            except (http.client.HTTPException, OSError) as error:
                raise _Broken(f"the connection broke off ({error or type(error).__name__})") from None
            if not block:
                break
            file.write(block)
            part.size += len(block)
            tell(part.size)
        file.flush()
        os.fsync(file.fileno())
    if total and part.size < total:
        raise _Broken(f"the connection broke off after {part.size:,} of {total:,} bytes")
    if total and part.size > total:
        part.discard()
        raise _Broken("more came than the server had announced")


class _Part:
    """`NAME.part`, and beside it which file of which server it is a part of."""

    def __init__(self, target: Path, url: str) -> None:
        self.target = target
        self.url = url
        self.path = target.with_name(f"{target.name}.part")
        self._about = target.with_name(f"{target.name}.part.json")
        self._mark = self._known_mark()
        self.size = self.path.stat().st_size if self.path.is_file() else 0
        if self.size and not self._mark:
            self.discard()  # nothing can say whether the rest would belong to it

    def _known_mark(self) -> str:
        try:
            about = json.loads(self._about.read_text(encoding="utf-8"))
            return str(about["mark"]) if about["url"] == self.url else ""
        except (OSError, ValueError, KeyError, TypeError):
            return ""

    def conditions(self) -> dict[str, str]:
        """The headers that ask for the rest, if the file is still the same."""
        return {"Range": f"bytes={self.size}-", "If-Range": self._mark} if self.size and self._mark else {}

    def open(self, answer: http.client.HTTPResponse, start: int) -> None:
        """Make ready for what comes from byte `start` on."""
        if start == 0:
            self.discard()
            etag = answer.headers.get("ETag") or ""
            # a weak ETag only promises the same meaning, not the same bytes
            self._mark = etag if etag.startswith('"') else answer.headers.get("Last-Modified") or ""
            self._about.write_text(json.dumps({"url": self.url, "mark": self._mark}), encoding="utf-8")
            self.path.touch()

    def discard(self) -> None:
        self.path.unlink(missing_ok=True)
        self._about.unlink(missing_ok=True)
        self.size, self._mark = 0, ""

    def finish(self) -> None:
        self.path.replace(self.target)
        self._about.unlink(missing_ok=True)


def name_of(url: str) -> str:
    """What to call the file behind an address."""
    name = unquote(urlsplit(url).path).rstrip("/").rpartition("/")[2]
    return name if name and name not in (".", "..") and "\0" not in name else "download"
