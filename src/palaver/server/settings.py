"""How studies are served: a frozen value each, which worker processes read from an environment variable."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, field_validator

from palaver.errors import UserError

_PLAIN_PATH = re.compile(r"(/[A-Za-z0-9._~-]+)*/?")
VARIABLE = "PALAVER_SERVER"
"""The environment variable that worker processes read their settings from."""
OWN_PATHS = ("/admin", "/api", "/chat", "/health", "/static", "/study")
"""Where our own pages are: nothing else can live there."""


class Settings(BaseModel):
    """Where the study is, where it listens, and how careful it is."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    study_file: Path | None = None
    """Without it, the study or collection that the database holds is served."""
    collection_file: Path | None = None
    database: str
    host: str = "127.0.0.1"
    port: int = Field(default=8000, ge=0, le=65535)
    workers: int = Field(default=1, ge=1)
    public_url: str = ""
    """The address that people use, where a proxy stands in front: `https://lab.example.org/study-1`.
    Links, redirects, cookies and the check of a request's origin follow it, whatever the proxy says."""
    study_path: str = ""
    """Where this study lives on a server of several: `/likert`, behind the path of the public address."""
    prolific_keys: Path | None = None
    """Prolific's public keys: with them, only people whose link Prolific has signed come in."""
    admin_token: str | None = Field(default=None, repr=False)
    rate_limits: bool = True
    preview_folder: Path | None = None
    """Where previews lie, which all processes share; without it each makes one."""
    is_preview: bool = False
    """The owner walks the study as a rater: the pages say so, and there is no admin."""

    @field_validator("public_url")
    @classmethod
    def _check_address(cls, url: str) -> str:
        if not url:
            return ""
        try:
            parts = urlsplit(url)
            is_whole = bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_whole = False
        if not is_whole or parts.scheme not in ("http", "https") or not _PLAIN_PATH.fullmatch(parts.path):
            raise ValueError(f"expected an address such as https://lab.example.org/study-1, found {url!r}")
        if parts.query or parts.fragment or "@" in parts.netloc:
            raise ValueError(f"expected an address without user, ? and #, found {url!r}")
        if parts.path.rstrip("/") in OWN_PATHS:
            raise ValueError(f"{parts.path} is a path of Palaver's own pages: choose another")
        return url.rstrip("/")

    @property
    def root_path(self) -> str:
        """The path under which people see the study: `/study-1`."""
        return f"{self.base_path}{self.study_path}"

    @property
    def base_path(self) -> str:
        """The path under which people see the server: the study's own, unless it serves several."""
        return urlsplit(self.public_url).path

    @property
    def is_secure(self) -> bool:
        """People come over TLS: cookies are `Secure`."""
        return self.public_url.startswith("https://")

    @property
    def origin(self) -> str:
        """What a browser calls the origin of our pages; empty without a public address."""
        if not self.public_url:
            return ""
        parts = urlsplit(self.public_url)
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        usual = {"http": 80, "https": 443}[parts.scheme]
        port = f":{parts.port}" if parts.port not in (None, usual) else ""
        return f"{parts.scheme}://{host}{port}"


_LIST = TypeAdapter(tuple[Settings, ...])


def to_environment(studies: Sequence[Settings]) -> dict[str, str]:
    """What a worker process needs in its environment."""
    return {VARIABLE: _LIST.dump_json(tuple(studies)).decode()}


def from_environment() -> tuple[Settings, ...]:
    """The studies that this process serves."""
    text = os.environ.get(VARIABLE)
    if text is None:
        raise UserError(
            f"{VARIABLE} is not set, so there is nothing to serve",
            "start the server with: palaver study serve study.toml",
        )
    return _LIST.validate_json(text)
