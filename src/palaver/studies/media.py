"""The images and sounds that a study's texts name: read, checked and taken into the study by their content.

What a file is, its first bytes say, never its name.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath
from typing import NamedTuple

from palaver.config import Location
from palaver.errors import UserError, count_of, nearest
from palaver.schema import Dialogue, Item, Study
from palaver.schema.media import Media, MediaFile, MediaType
from palaver.text.markdown import Embedded, embedded

MOST_BYTES = 10_000_000
"""Of one file: raters wait for it on a phone."""
MOST_PIXELS = 50_000_000
"""Of one image: a small file may unpack to more than a phone holds."""
_IMAGES = "PNG, JPEG, GIF, WebP"
_SOUNDS = "MP3, WAV, Ogg, FLAC, M4A"


class ShownText(NamedTuple):
    """A text that raters see as Markdown, and where it stands in the study."""

    place: Location
    text: str
    item: str | None = None
    """The id of the item it belongs to."""


def shown_texts(study: Study) -> Iterator[ShownText]:
    """Every text of a study that is shown as Markdown."""
    yield ShownText(("instructions",), study.instructions)
    yield ShownText(("consent",), study.consent)
    for language, translation in study.translations.items():
        yield ShownText(("translations", language, "instructions"), translation.instructions)
        yield ShownText(("translations", language, "consent"), translation.consent)
    if study.markdown:
        for place, item in all_items(study):
            yield from (ShownText((*place, *inner), text, item.id) for inner, text in item_texts(item))


def all_items(study: Study) -> Iterator[tuple[Location, Item]]:
    """Items to be judged and items with known answers, each with its place in the study."""
    for i, item in enumerate(study.items):
        yield ("items", i), item
    known = {"training": study.training.items if study.training else (), "checks": study.checks.items}
    for section, items in known.items():
        for i, one in enumerate(items):
            yield (section, "items", i, "item"), one.item


def item_texts(item: Item) -> Iterator[tuple[Location, str]]:
    """The texts of an item that raters may see, each with its place in the item."""
    yield from _texts(("context",), item.context)
    yield from _texts(("knowledge",), item.knowledge)
    yield from _texts(("reference",), item.reference)
    for o, output in enumerate(item.outputs):
        yield from _texts(("outputs", o, "text"), output.text)
        yield from _texts(("outputs", o, "dialogue"), output.dialogue)


def _texts(place: Location, shown: str | Dialogue | None) -> Iterator[tuple[Location, str]]:
    if isinstance(shown, Dialogue):
        for t, turn in enumerate(shown.turns):
            yield (*place, "turns", t, "text"), turn.text
    elif shown:
        yield place, shown


def texts_of(shown: str | Dialogue | None) -> list[str]:
    """A text, or each turn of a dialogue."""
    return [text for _, text in _texts((), shown)]


def files_in(texts: Iterable[str], media: Media | None) -> tuple[MediaFile, ...]:
    """The files of a study that these texts show."""
    if media is None:
        return ()
    names = dict.fromkeys(one.source for text in texts for one in embedded(text))
    return tuple(file for name in names if (file := media.file(name)) is not None)


# --- reading ------------------------------------------------------------------------------------------------


def with_media(study: Study, beside: Path) -> tuple[Study, list[tuple[Location, str]]]:
    """The study with the files that its texts name, from a folder beside its file; and the mistakes."""
    if study.media is None:
        return study, []
    folder = beside / study.media.folder
    if not folder.is_dir():
        return study, [(("media",), f"there is no folder {study.media.folder!r} beside the study file")]
    files: list[MediaFile] = []
    mistakes: list[tuple[Location, str]] = []
    for name, place in _named(study).items():
        try:
            files.append(describe(name, read_file(folder, name)))
        except UserError as error:
            mistakes.append((place, error.message))
    return study.model_copy(update={"media": Media(folder=study.media.folder, files=tuple(files))}), mistakes


def with_known_media(study: Study, known: Media | None) -> tuple[Study, list[tuple[Location, str]]]:
    """The study with files that are known already: for a text alone, which can bring none."""
    if study.media is None:
        return study, []
    files: list[MediaFile] = []
    mistakes: list[tuple[Location, str]] = []
    for name, place in _named(study).items():
        file = known.file(name) if known is not None else None
        if file is not None:
            files.append(file)
        else:
            text = f"{name}: a text alone cannot bring a new file: use palaver study amend"
            mistakes.append((place, text))
    return study.model_copy(update={"media": Media(folder=study.media.folder, files=tuple(files))}), mistakes


def with_folder_beside(study: Study, old: Path, new: Path) -> Study:
    """The study with the name that its folder has beside another study file."""
    if study.media is None:
        return study
    folder = os.path.relpath(old.parent / study.media.folder, new.parent)
    media = study.media.model_copy(update={"folder": Path(folder).as_posix()})
    return study.model_copy(update={"media": media})


def _named(study: Study) -> dict[str, Location]:
    """The files that texts name, and where each is named first."""
    places: dict[str, Location] = {}
    for shown in shown_texts(study):
        for one in embedded(shown.text):
            if not one.is_foreign:
                places.setdefault(one.source, shown.place)
    return places


def read_file(folder: Path, name: str) -> bytes:
    """The content of a file inside the folder."""
    path = folder / name
    try:
        is_inside = path.resolve().is_relative_to(folder.resolve()) and not PurePath(name).is_absolute()
        if not is_inside:
            raise UserError(f"{name}: only files inside {folder.name} are shown")
        if not path.is_file():
            others = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
            close = nearest(path.name, others)
            raise UserError(f"{name or 'an image without a name'}: no such file in {folder.name}{close}")
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise UserError(f"{name} has {megabytes(size)}, and {megabytes(MOST_BYTES)} are the most")
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise UserError(f"{name!r} cannot be read: {error}") from None


def describe(name: str, content: bytes) -> MediaFile:
    """What a file is, by its first bytes."""
    kind = _type(content)
    if kind is None:
        start = content[:1000].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
        if start.startswith(b"<svg") or (start.startswith((b"<?xml", b"<!doctype svg")) and b"<svg" in start):
            raise UserError(f"{name} is an SVG, which may hold scripts: save it as PNG")
        raise UserError(f"{name} is neither an image ({_IMAGES}) nor a sound ({_SOUNDS})")
    width = height = None
    if kind.startswith("image/"):
        try:
            width, height = _dimensions(kind, content)
        except (struct.error, IndexError):
            raise UserError(f"{name} begins like an image but is damaged or cut short") from None
        if not width or not height:
            raise UserError(f"{name} is an image without any area")
        if width * height > MOST_PIXELS:
            raise UserError(f"{name} has {width} × {height} pixels: make it smaller")
    digest = hashlib.sha256(content).hexdigest()
    return MediaFile(name=name, hash=digest, type=kind, size=len(content), width=width, height=height)


def _type(content: bytes) -> MediaType | None:
    starts: dict[bytes, MediaType] = {
        b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg",
        b"GIF87a": "image/gif", b"GIF89a": "image/gif",
        b"ID3": "audio/mpeg", b"OggS": "audio/ogg", b"fLaC": "audio/flac",
    }  # fmt: skip
    for start, kind in starts.items():
        if content.startswith(start):
            return kind
    boxes: dict[bytes, MediaType] = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}
    if content.startswith(b"RIFF"):
        return boxes.get(content[8:12])
    if content[4:8] == b"ftyp" and content[8:11] == b"M4A":
        return "audio/mp4"
    is_frame = len(content) > 3 and content[0] == 0xFF and content[1] & 0xE6 == 0xE2
    if is_frame:  # of MPEG audio, layer III
        return "audio/mpeg"
    return None


def _dimensions(kind: str, content: bytes) -> tuple[int, int]:
    """Width and height, from the header."""
    if kind == "image/png":
        return struct.unpack(">II", content[16:24])
    if kind == "image/gif":
        return struct.unpack("<HH", content[6:10])
    if kind == "image/webp":
        return _webp_dimensions(content)
    at = 2
    while True:  # JPEG: from segment to segment, to the one that begins a frame
        marker = content[at + 1]
        if content[at] != 0xFF:
            raise IndexError
        if marker == 0xFF:  # filling
            at += 1
        elif 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", content[at + 5 : at + 9])
            return width, height
        else:
            at += 2 + struct.unpack(">H", content[at + 2 : at + 4])[0]


def _webp_dimensions(content: bytes) -> tuple[int, int]:
    form = content[12:16]
    if form == b"VP8X":
        width, height = (int.from_bytes(content[at : at + 3], "little") + 1 for at in (24, 27))
        return (width, height) if len(content) >= 30 else (0, 0)
    if form == b"VP8L":
        bits = struct.unpack("<I", content[21:25])[0]
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    width, height = struct.unpack("<HH", content[26:30])
    return width & 0x3FFF, height & 0x3FFF


# --- what an owner should know ------------------------------------------------------------------------------


def media_summary(study: Study) -> str:
    """`3 images and 1 sound from pictures (1.2 MB)`; empty where there are none."""
    if study.media is None:
        return ""
    files = study.media.files
    n_images = sum(file.is_image for file in files)
    counts = {"image": n_images, "sound": len(files) - n_images}
    shown = " and ".join(count_of(n, noun) for noun, n in counts.items() if n) or "nothing is shown"
    size = megabytes(sum({file.hash: file.size for file in files}.values()))
    return f"{shown} from {study.media.folder} ({size})"


def media_notes(study: Study) -> list[str]:
    """What raters would not see as the owner may think, and what some of them cannot."""
    shown = [one for text in shown_texts(study) for one in embedded(text.text)]
    foreign = [one for one in shown if one.is_foreign]
    own = [one for one in shown if not one.is_foreign]
    notes = []
    if foreign:
        n = count_of(len(foreign), "image")
        notes.append(f"{n} from other addresses: shown as text, nothing is loaded ({foreign[0].source})")
    if own and study.media is None:
        how = 'name the folder: media = { folder = "pictures" }'
        notes.append(f"{count_of(len(own), 'image')} shown as text: {how}")
    silent = _without_label(own) if study.media is not None else []
    if silent:
        n = count_of(len(silent), "file")
        notes.append(f"{n} without a description, which some raters need: ![what it shows]({silent[0]})")
    if not study.markdown:
        n_plain = sum(len(embedded(text)) for _, item in all_items(study) for _, text in item_texts(item))
        if n_plain:
            notes.append(f"{count_of(n_plain, 'image')} in items shown as text: say markdown = true")
    return notes


def _without_label(shown: Iterable[Embedded]) -> list[str]:
    return list(dict.fromkeys(one.source for one in shown if not one.label.strip()))


def megabytes(size: int) -> str:
    """A size for people: 812 kB, 1.2 MB."""
    return f"{size / 1e6:.3g} MB" if size >= 1e6 else f"{size / 1e3:.3g} kB"
