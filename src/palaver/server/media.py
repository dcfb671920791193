"""Images and sounds of a study: kept in its database by content, served under their hash.

All processes serve the same bytes, a backup holds them, and a file that changes on disk changes nothing here:
another content is another study, which `palaver study amend` takes over or refuses.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from markupsafe import escape
from sqlalchemy import Connection, Row, insert, select
from starlette.datastructures import Headers

from palaver.errors import UserError
from palaver.schema import Study
from palaver.schema.media import Media
from palaver.server.database import Database
from palaver.server.refusal import Refusal
from palaver.server.tables import media_file, media_piece
from palaver.server.words import Words
from palaver.studies.media import describe, read_file
from palaver.text.markdown import Embed, Embedded

PIECE = 65_536
"""Bytes of a row."""
POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
"""For a file that is opened by itself: nothing in it can run or load anything."""
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")

router = APIRouter()


def keep_files(connection: Connection, study: Study, folder: Path | None) -> None:
    """Put the files of a study into its database; `folder` is where the study file is."""
    if study.media is None:
        return
    kept = set(connection.execute(select(media_file.c.hash)).scalars())
    for file in study.media.files:
        if file.hash in kept:
            continue
        if folder is None:
            raise UserError(f"{file.name} is not in the database", "serve or amend the study from its file")
        content = read_file(folder / study.media.folder, file.name)
        if describe(file.name, content).hash != file.hash:
            raise UserError(f"{file.name} has changed while the study was read", "start again")
        connection.execute(insert(media_file).values(hash=file.hash, type=file.type, size=file.size))
        pieces = [content[at : at + PIECE] for at in range(0, len(content), PIECE)]
        rows = [{"hash": file.hash, "number": n, "content": piece} for n, piece in enumerate(pieces)]
        connection.execute(insert(media_piece), rows)
        kept.add(file.hash)


def copy_files(served: Database, target: Database) -> None:
    """Put the files of one database into another that lacks some of them."""
    with served.reading() as source, target.writing() as connection:
        kept = set(connection.execute(select(media_file.c.hash)).scalars())
        for file in source.execute(select(media_file).where(media_file.c.hash.not_in(kept))).mappings():
            connection.execute(insert(media_file).values(**file))
            pieces = select(media_piece).where(media_piece.c.hash == file["hash"])
            for piece in source.execute(pieces).mappings():
                connection.execute(insert(media_piece).values(**piece))


def embedding(media: Media | None, root_path: str, t: Words) -> Embed:
    """How a study's texts show its files: an image that can be enlarged, a sound with controls."""

    def embed(one: Embedded) -> str | None:
        file = media.file(one.source) if media is not None else None
        if file is None:
            return None
        address = f"{root_path}/media/{file.hash}"
        label = escape(one.label.strip())
        if file.is_image:
            return (
                f'<a class="picture" href="{address}" target="_blank" rel="noopener">'
                f'<img src="{address}" alt="{label or escape(t("Picture"))}" '
                f'width="{file.width}" height="{file.height}" loading="lazy"></a>'
            )
        return (
            f'<span class="sound">{label}<audio controls preload="metadata" src="{address}" '
            f'aria-label="{label or escape(t("Sound"))}"></audio></span>'
        )

    return embed


@router.get("/media/{hash}", include_in_schema=False)
def show_file(request: Request, hash: str) -> Response:
    """A file of the study. Its address is its content, so it can be kept for ever."""
    database: Database = request.app.state.site.study_state.database
    with database.reading() as connection:
        file = connection.execute(select(media_file).where(media_file.c.hash == hash)).first()
        if file is None:
            raise Refusal("there is no such file", 404)
        return _reply(connection, file, request.headers)


def _reply(connection: Connection, file: Row[Any], asked: Headers) -> Response:
    tag = f'"{file.hash}"'
    headers = {
        "cache-control": "private, max-age=31536000, immutable",
        "etag": tag,
        "accept-ranges": "bytes",
        "content-security-policy": POLICY,
        "cross-origin-resource-policy": "same-origin",
    }
    if tag in asked.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    span = _span(asked.get("range", ""), file.size) if asked.get("if-range", tag) == tag else None
    if span is None:
        content = _read(connection, file.hash, 0, file.size)
        return Response(content, 200, headers, media_type=file.type)
    start, end = span
    if start >= end:
        return Response(status_code=416, headers={**headers, "content-range": f"bytes */{file.size}"})
    headers["content-range"] = f"bytes {start}-{end - 1}/{file.size}"
    return Response(_read(connection, file.hash, start, end), 206, headers, media_type=file.type)


def _span(wanted: str, size: int) -> tuple[int, int] | None:
    """The bytes that a Range header asks for, without the last one; None for all, or for several ranges."""
    match = _RANGE.fullmatch(wanted.replace(" ", ""))
    if match is None or match[0] == "bytes=-":
        return None
    first, last = match.groups()
    if not first:  # the last so many
        return max(0, size - int(last)), size
    return int(first), min(int(last) + 1, size) if last else size


def _read(connection: Connection, hash: str, start: int, end: int) -> bytes:
    is_wanted = media_piece.c.number.between(start // PIECE, (end - 1) // PIECE)
    pieces = select(media_piece.c.content).where(media_piece.c.hash == hash, is_wanted)
    content = b"".join(connection.execute(pieces.order_by(media_piece.c.number)).scalars())
    skipped = start // PIECE * PIECE
    return content[start - skipped : end - skipped]
