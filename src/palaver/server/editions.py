"""The versions of a served study: as it began, as it is, and how an amendment is written down."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, func, insert, select

from palaver import __version__
from palaver.errors import UserError
from palaver.schema import Item, Study
from palaver.server.catalogue import Catalogue, ScreenContent, screen_rows
from palaver.server.leases import Lease
from palaver.server.media import keep_files
from palaver.server.tables import screen, study_version
from palaver.server.tables import study as study_table
from palaver.studies.screens import BLOCK, shown_order


@dataclass(frozen=True, slots=True)
class Edition:
    """A study since its latest amendment."""

    study: Study
    catalogue: Catalogue
    as_begun: Study
    version: int
    source: str
    hash: str

    def order(self, content: ScreenContent, held: Lease) -> tuple[int, ...]:
        """Outputs by shown position."""
        # By the design as it began: more raters per item would turn the square under screens in hand.
        return shown_order(self.as_begun, content.screen, len(content.item.outputs), held.turn, held.rater)


def newest_version(connection: Connection) -> int:
    """The number of the newest version."""
    return int(connection.execute(select(func.max(study_version.c.number))).scalar_one())


def read_edition(connection: Connection) -> Edition:
    """The study as it is now."""
    row = connection.execute(select(study_table)).first()
    if row is None:
        raise UserError("this database holds no study yet", "begin with: palaver study serve study.toml")
    study = as_begun = Study.model_validate_json(row.document)
    version = newest_version(connection)
    if version > 1:
        first = select(study_version.c.document).where(study_version.c.number == 1)
        as_begun = Study.model_validate_json(connection.execute(first).scalar_one())
    catalogue = Catalogue(study, connection.execute(select(screen)))
    return Edition(study, catalogue, as_begun, version, row.source, row.hash)


def add_version(connection: Connection, number: int, study: Study, source: str, now: float) -> dict[str, str]:
    """Write down a version of the study; what the row of the study says of its newest one."""
    document = study.model_dump_json()
    if "\\u0000" in document.replace("\\\\", ""):  # the character, not a text that spells it
        raise UserError("the study holds a NUL character, which no database takes", "take it out of the file")
    digest = hashlib.sha256(document.encode()).hexdigest()
    version = {"document": document, "source": source, "hash": digest}
    connection.execute(insert(study_version).values(number=number, at=now, **version))
    return version


def is_version(connection: Connection, study: Study) -> bool:
    """Whether the study is as it was in some version; fields that are new have their default."""
    newest_first = select(study_version.c.document).order_by(study_version.c.number.desc())
    documents = connection.execute(newest_first).scalars()
    return any(Study.model_validate_json(document) == study for document in documents)


def more_screens(connection: Connection, study: Study, items: Sequence[Item]) -> list[dict[str, object]]:
    """The screens of new items, after those that are there."""
    last = connection.execute(select(func.max(screen.c.id), func.max(screen.c.place))).one()
    rows = [
        row
        for row in screen_rows(study.model_copy(update={"items": tuple(items)}))
        if row["kind"] in ("main", "degraded")
    ]
    for number, row in enumerate(rows, start=1):
        place = last[1] + 1 + int(str(row["place"]))
        row |= {"id": last[0] + number, "place": place, "block_no": place // BLOCK}
    return rows


def begin_study(
    connection: Connection, study: Study, source: str, now: float, folder: Path | None = None
) -> None:
    """Put a study into an empty database; its images and sounds are beside its file, in `folder`."""
    keep_files(connection, study, folder)
    version = add_version(connection, 1, study, source, now)
    connection.execute(
        insert(study_table).values(
            id=1,
            name=study.name,
            **version,
            version=__version__,
            secret=secrets.token_hex(32),
            created_at=now,
        )
    )
    connection.execute(insert(screen), screen_rows(study))
