"""Templates, and the style sheets and scripts that pages load."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined

_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A style sheet or script, read once."""

    content: bytes
    media_type: str
    version: str


def static_files() -> dict[str, StaticFile]:
    """Everything under `static/` by name: what is not in here is not served."""
    by_name = {}
    for entry in (files("palaver.server") / "static").iterdir():
        suffix = "." + entry.name.rpartition(".")[2]
        if suffix in _TYPES:
            content = entry.read_bytes()
            if entry.name == "admin.css":
                content = (files("palaver.reports") / "templates" / "shared.css").read_bytes() + content
            by_name[entry.name] = StaticFile(
                content, _TYPES[suffix], hashlib.sha256(content).hexdigest()[:12]
            )
    return by_name


def environment(root_path: str, static: dict[str, StaticFile]) -> Environment:
    """The templates. `url("/study")` and `asset("palaver.css")` respect the root path."""
    jinja = Environment(
        loader=PackageLoader("palaver.server"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )

    def asset(name: str) -> str:
        return f"{root_path}/static/{name}?v={static[name].version}"

    jinja.globals["static"] = frozenset(static)
    jinja.globals["url"] = lambda path: f"{root_path}{path}"
    jinja.globals["asset"] = asset
    return jinja
