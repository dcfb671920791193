"""How a study is served: one frozen value, which worker processes read from an environment variable."""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, field_validator

from palaver.errors import UserError

VARIABLE = "PALAVER_SERVER"
"""The environment variable that worker processes read their settings from."""


class Settings(BaseModel):
    """Where the study is, where it listens, and how careful it is."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    study_file: Path | None = None
    """Without it, the study that the database holds is served."""
    database: str
    host: str = "127.0.0.1"
    port: int = Field(default=8000, ge=0, le=65535)
    workers: int = Field(default=1, ge=1)
    root_path: str = ""
    """The path under which a proxy shows the study: `/study-1`."""
    secure_cookies: bool = False
    """There is TLS in front: cookies are `Secure`, and pages come from `https://`."""
    admin_token: str | None = Field(default=None, repr=False)
    rate_limits: bool = True

    @field_validator("root_path")
    @classmethod
    def _slashes(cls, path: str) -> str:
        path = path.strip("/")
        return f"/{path}" if path else ""

    def to_environment(self) -> dict[str, str]:
        """What a worker process needs in its environment."""
        return {VARIABLE: self.model_dump_json()}

    @classmethod
    def from_environment(cls) -> Settings:
        text = os.environ.get(VARIABLE)
        if text is None:
            raise UserError(
                f"{VARIABLE} is not set, so there is nothing to serve",
                "start the server with: palaver study serve study.toml",
            )
        return cls.model_validate_json(text)
