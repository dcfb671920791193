"""Files from the web, in one piece although connections break.

The file is written as `NAME.part` and takes its name when it is whole and its hash is right. When a download
breaks off, now or in an earlier run, it goes on from there (`Range`), but only if the server says that the
file is still the same one (`If-Range` with the ETag or date of the first part); otherwise it begins again.
"""

from __future__ import annotations

import http.client
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from palaver.errors import DataError, UserError
from palaver.files import sha256_of
from palaver.progress import Progress, no_progress

_BLOCK = 1 << 18
_LONGEST_PAUSE = 30.0
_PASSING = (408, 425, 429, 500, 502, 503, 504)
"""Answers of a server that may be others a little later."""


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long to go on when a connection breaks: `tries` in a row that bring nothing new are the end."""

    tries: int = 5
    timeout: float = 30.0
    sleep: Callable[[float], None] = time.sleep


class _Interruption(Exception):
    """It may work when tried again, `after` seconds later."""

    def __init__(self, reason: str, after: float = 0.0) -> None:
        super().__init__(reason)
        self.after = after


def fetch(
    url: str,
    target: Path,
    *,
    sha256: str | None = None,
    progress: Progress = no_progress,
    patience: Patience | None = None,
) -> Path:
    """Download `url` to `target`, going on where an earlier attempt stopped."""
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).netloc:
        raise UserError(f"cannot download {url!r}: expected an address that begins with http:// or https://")
    part = _Part(target, url)
    resumed = part.size > 0
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _complete(part, progress, patience or Patience())
        if sha256 is not None and (actual := sha256_of(part.path)) != sha256:
            part.discard()
            if resumed:  # the parts may not have belonged together: once more from the beginning
                return fetch(url, target, sha256=sha256, progress=progress, patience=patience)
            raise DataError(
                f"{url} is not the file that was expected: its sha256 is {actual}, not {sha256}",
                "it was changed or damaged on the way; nothing was kept",
            )
        part.path.replace(target)
        part.discard()
    except OSError as error:
        raise UserError(
            f"cannot write {target}: {error.strerror or error}",
            "make room; the download goes on where it stopped",
        ) from error
    return target


def _complete(part: _Part, progress: Progress, patience: Patience) -> None:
    failures = 0
    while True:
        before = part.size
        try:
            return _attempt(part, progress, patience.timeout)
        except _Interruption as interruption:
            failures = 1 if part.size > before else failures + 1
            if failures >= patience.tries:
                raise UserError(
                    f"cannot download {part.url}: {interruption} ({failures} times in a row)",
                    f"{part.size:,} bytes are kept; the same command goes on from there",
                ) from None
            patience.sleep(min(max(2.0 ** (failures - 1), interruption.after), _LONGEST_PAUSE))


def _attempt(part: _Part, progress: Progress, timeout: float) -> None:
    """One request: the rest of the file, or all of it."""
    headers = {"User-Agent": "palaver", "Accept-Encoding": "identity", **part.conditions()}
    try:
        answer = urllib.request.urlopen(urllib.request.Request(part.url, headers=headers), timeout=timeout)
    except urllib.error.HTTPError as error:
        answer = error
    except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
        raise _Interruption(str(getattr(error, "reason", error)) or type(error).__name__) from None
    with answer:
        extent = answer.headers.get("Content-Range") or ""
        if answer.status == 416 and extent.endswith(f"/{part.size}"):
            return  # nothing beyond what we have: it is whole
        if answer.status in (206, 416) and not extent.startswith(f"bytes {part.size}-"):
            part.discard()
            raise _Interruption("the part that is here does not belong to the file there")
        if answer.status not in (200, 206):
            raise _refusal(part.url, answer)
        if answer.status == 200:
            part.begin(answer.headers)
        _copy(answer, part, progress)


def _refusal(url: str, answer: Any) -> Exception:
    if answer.status in _PASSING:
        asked = answer.headers.get("Retry-After", "")
        return _Interruption(
            f"the server answers {answer.status}", float(asked) if asked.isdecimal() else 0.0
        )
    return UserError(
        f"cannot download {url}: the server answers {answer.status} {answer.reason}".rstrip(),
        "has it moved? give another address with --url, or a copy with --from",
    )


def _copy(answer: http.client.HTTPResponse, part: _Part, progress: Progress) -> None:
    total = 0 if answer.length is None else part.size + answer.length
    with part.path.open("ab") as file:
        while True:
            try:
                block = answer.read(_BLOCK)
            except (http.client.HTTPException, OSError) as error:
                raise _Interruption(f"the connection broke off ({error or type(error).__name__})") from None
            if not block:
                break
            file.write(block)
            part.size += len(block)
            progress(part.name, part.size, total)
        file.flush()
        os.fsync(file.fileno())
    if part.size < total:
        raise _Interruption(f"the connection broke off after {part.size:,} of {total:,} bytes")


class _Part:
    """`NAME.part`, and beside it which file of which server it is a part of."""

    def __init__(self, target: Path, url: str) -> None:
        self.name = target.name
        self.url = url
        self.path = target.with_name(f"{target.name}.part")
        self.size = 0
        self._about = target.with_name(f"{target.name}.part.json")
        self._mark = ""
        try:
            about = json.loads(self._about.read_text(encoding="utf-8"))
            if about["url"] == url and about["mark"]:  # nothing else says whether the rest would belong to it
                self.size, self._mark = self.path.stat().st_size, str(about["mark"])
        except (OSError, ValueError, KeyError, TypeError):
            pass

    def conditions(self) -> dict[str, str]:
        """The headers that ask for the rest, if the file is still the same."""
        return {"Range": f"bytes={self.size}-", "If-Range": self._mark} if self.size and self._mark else {}

    def begin(self, headers: Message) -> None:
        """Make ready for the whole file."""
        etag = headers.get("ETag") or ""
        # a weak ETag only promises the same meaning, not the same bytes
        self._mark = etag if etag.startswith('"') else headers.get("Last-Modified") or ""
        self._about.write_text(json.dumps({"url": self.url, "mark": self._mark}), encoding="utf-8")
        self.path.write_bytes(b"")
        self.size = 0

    def discard(self) -> None:
        self.path.unlink(missing_ok=True)
        self._about.unlink(missing_ok=True)
        self.size, self._mark = 0, ""


def name_of(url: str) -> str:
    """What to call the file behind an address."""
    name = unquote(urlsplit(url).path).rstrip("/").rpartition("/")[2]
    return name if name and name not in (".", "..") and "\0" not in name else "download"
