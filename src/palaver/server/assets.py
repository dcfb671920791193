"""Templates, and the style sheets and scripts that pages load."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from fastapi.responses import Response
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from palaver.schema.media import Media
from palaver.server.media import embedding
from palaver.server.refusal import Refusal
from palaver.server.words import ENGLISH, words_of
from palaver.text.markdown import render

_IMPORT = re.compile(rb'from "\./([\w.]+)"')
"""In a script: it is given the version of what it imports, so that browsers keep both."""
_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A style sheet or script, read once."""

    content: bytes
    media_type: str
    version: str


def static_files() -> dict[str, StaticFile]:
    """Everything under `static/` by name: what is not in here is not served."""
    folder = files("palaver.server") / "static"
    by_name: dict[str, StaticFile] = {}

    def read(name: str) -> StaticFile:
        if name not in by_name:
            content = _IMPORT.sub(
                lambda script: b'from "./%b?v=%b"' % (script[1], read(script[1].decode()).version.encode()),
                (folder / name).read_bytes(),
            )
            if name == "admin.css":
                content = (files("palaver.reports") / "templates" / "shared.css").read_bytes() + content
            version = hashlib.sha256(content).hexdigest()[:12]
            by_name[name] = StaticFile(content, _TYPES[Path(name).suffix], version)
        return by_name[name]

    for entry in folder.iterdir():
        if Path(entry.name).suffix in _TYPES:
            read(entry.name)
    return by_name


def static_reply(static: dict[str, StaticFile], name: str, version: str) -> Response:
    """A style sheet or script; browsers keep the version that a page has named."""
    if name not in static:
        raise Refusal("there is no such file", 404)
    file = static[name]
    caching = "public, max-age=31536000, immutable" if version == file.version else "no-cache"
    return Response(file.content, media_type=file.media_type, headers={"cache-control": caching})


def environment(root_path: str, static: dict[str, StaticFile]) -> Environment:
    """The templates. `url("/study")` and `asset("palaver.css")` respect the root path; `t("Thank you!")` says
    it in English unless the page brings other words. `markdown(text, media)` is safe HTML; `media` are the
    images and sounds that the text may show."""
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

    t = words_of(ENGLISH)

    def markdown(text: str, media: Media | None = None, *, links: bool = False, level: int = 2) -> Markup:
        return Markup(render(text, embedding(media, root_path, t), links=links, level=level))

    jinja.globals["markdown"] = markdown
    jinja.globals["static"] = frozenset(static)
    jinja.globals["url"] = lambda path: f"{root_path}{path}"
    jinja.globals["asset"] = asset
    jinja.globals["t"] = t
    return jinja
