"""Images and sounds beside a study file: what is taken in, what is refused, what its owner is told."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest

from palaver.errors import ConfigError, UserError
from palaver.schema import Dialogue, Item, Output, Study, Turn
from palaver.studies import media
from palaver.studies.amendment import compare_studies
from palaver.studies.checks import degrade
from palaver.studies.design import load_study, parse_study, study_toml
from palaver.studies.draft import draft_study
from palaver.studies.media import describe, media_notes, media_summary

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "rich-items"
HEAD = """
name = "s"
{settings}
[[questions]]
criterion = "quality"
text = "Good?"
scale = {{ kind = "likert" }}
"""
ITEM = """
[[items]]
id = "{id}"
context = {context}
outputs = [{{ system = "a", text = {text} }}]
"""
RICH = 'markdown = true\nmedia = { folder = "pictures" }\n'


def png(width: int = 2, height: int = 1, colour: bytes = b"\x01\x02\x03") -> bytes:
    lines = b"".join(b"\0" + colour * width for _ in range(height))
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(lines)),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in (*chunks, (b"IEND", b""))
    )


def write(folder: Path, text: str, context: str = "hello", settings: str = RICH, **files: bytes) -> Path:
    """A study of one item, with files in `pictures` (`cat_png=…` is cat.png)."""
    pictures = folder / "pictures"
    pictures.mkdir(exist_ok=True)
    for name, content in files.items():
        (pictures / name.replace("_", ".")).write_bytes(content)
    path = folder / "study.toml"
    item = ITEM.format(id="i1", context=f"'{context}'", text=f"'{text}'")
    path.write_text(HEAD.format(settings=settings) + item, encoding="utf-8")
    return path


def problems(path: Path) -> list[str]:
    with pytest.raises(ConfigError) as error:
        load_study(path)
    return list(error.value.problems)


JPEG = b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc0\x00\x0b\x08\x00\x07\x00\x05\x01\x01\x11\x00"
WEBP = b"RIFF\0\0\0\0WEBP"


@pytest.mark.parametrize(
    ("content", "kind", "size"),
    [
        (png(3, 2), "image/png", (3, 2)),
        (JPEG, "image/jpeg", (5, 7)),
        (b"GIF89a\x04\x00\x03\x00", "image/gif", (4, 3)),
        (WEBP + b"VP8X" + bytes(8) + b"\x09\0\0\x04\0\0", "image/webp", (10, 5)),
        (WEBP + b"VP8L" + bytes(4) + b"\x2f" + struct.pack("<I", 9 | 4 << 14), "image/webp", (10, 5)),
        (WEBP + b"VP8 " + bytes(7) + b"\x9d\x01\x2a" + struct.pack("<HH", 10, 5), "image/webp", (10, 5)),
        (b"ID3\x03", "audio/mpeg", (None, None)),
        (b"\xff\xfb\x90\x00", "audio/mpeg", (None, None)),
        (b"RIFF\0\0\0\0WAVEfmt ", "audio/wav", (None, None)),
        (b"OggS\0", "audio/ogg", (None, None)),
        (b"fLaC\0", "audio/flac", (None, None)),
        (b"\0\0\0\x20ftypM4A ", "audio/mp4", (None, None)),
    ],
)
def test_a_file_is_what_its_first_bytes_say(
    content: bytes, kind: str, size: tuple[int | None, int | None]
) -> None:
    file = describe("misleading.txt", content)
    assert (file.type, (file.width, file.height)) == (kind, size)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "neither an image"),
        (b"<html><script>", "neither an image"),
        (b"\0\0\0\x20ftypisom", "neither an image"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'>", "may hold scripts: save it as PNG"),
        (b"\xef\xbb\xbf <?xml version='1.0'?>\n<!-- x --><svg>", "may hold scripts"),
        (png()[:20], "damaged or cut short"),
        (JPEG[:12], "damaged or cut short"),
        (WEBP + b"VP8X", "without any area"),
        (png(0, 0), "without any area"),
        (png()[:16] + struct.pack(">II", 60_000, 60_000), "60000 × 60000 pixels"),
    ],
)  # fmt: skip
def test_what_is_no_image_is_refused_with_the_reason(content: bytes, reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        describe("photo.jpg", content)


def test_a_study_holds_its_files_by_content(tmp_path: Path) -> None:
    path = write(tmp_path, "![a cat](cat.png) and ![again](cat.png)", cat_png=png(), unused_png=b"?")
    study = load_study(path)
    assert study.media is not None
    assert [(file.name, file.size) for file in study.media.files] == [("cat.png", len(png()))]
    assert media_summary(study) == "1 image from pictures (0.07 kB)"
    again = tmp_path / "again.toml"
    again.write_text(study_toml(study), encoding="utf-8")
    assert load_study(again) == study
    (tmp_path / "pictures" / "cat.png").write_bytes(png(colour=b"abc"))
    assert load_study(path) != study


def test_every_file_that_cannot_be_shown_is_named_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(media, "MOST_BYTES", 500)
    (tmp_path / "secret.png").write_bytes(png())
    names = ("cta.png", "big.png", "page.png", "../secret.png", "/etc/passwd", "way.png", "%00", "")
    text = " ".join(f"![]({name})" for name in names)
    path = write(tmp_path, text, cat_png=png(), big_png=bytes(501), page_png=b"<html>")
    (tmp_path / "pictures" / "way.png").symlink_to(tmp_path / "secret.png")
    listed = problems(path)
    assert all(line.startswith("line 14: items[1].outputs[1].text: ") for line in listed)
    expected = (
        "cta.png: no such file in pictures (did you mean 'cat.png'?)",
        "big.png has 0.501 kB, and 0.5 kB are the most",
        "page.png is neither an image",
        "../secret.png: only files inside pictures are shown",
        "/etc/passwd: only files inside pictures are shown",
        "way.png: only files inside pictures are shown",
        "'\\x00' cannot be read",
        "an image without a name: no such file",
    )
    assert len(listed) == len(expected)
    for one in expected:
        assert any(one in line for line in listed), one


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    path = write(tmp_path, "x", settings='media = { folder = "fotos" }')
    assert problems(path) == ["line 3: media: there is no folder 'fotos' beside the study file"]


def test_files_of_items_that_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    path = tmp_path / "study.toml"
    path.write_text(HEAD.format(settings=RICH + 'items_from = "items.jsonl"'), encoding="utf-8")
    turn = Turn(speaker="user", text="![x](gone.png)")
    item = Item(id="i", context=Dialogue(id="d", turns=(turn,)), outputs=(Output(system="a", text="x"),))
    (tmp_path / "items.jsonl").write_text(item.model_dump_json(), encoding="utf-8")
    assert problems(path) == [
        "line 5: items_from: items.jsonl, line 1: context.turns.1.text: gone.png: no such file in pictures"
    ]


def test_translated_instructions_show_files_too(tmp_path: Path) -> None:
    translated = '[translations.de]\ninstructions = "![ein Hund](hund.png)"'
    path = write(tmp_path, "x", settings=RICH + translated)
    assert problems(path) == ["line 6: translations.de.instructions: hund.png: no such file in pictures"]


def test_notes_tell_what_raters_will_not_see(tmp_path: Path) -> None:
    foreign = "![x](https://evil.example/x.png)"
    text = f"![](cat.png) {foreign}"
    with_folder = media_notes(load_study(write(tmp_path, text, cat_png=png())))
    assert with_folder == [
        "1 image from other addresses: shown as text, nothing is loaded (https://evil.example/x.png)",
        "1 file without a description, which some raters need: ![what it shows](cat.png)",
    ]
    without = media_notes(load_study(write(tmp_path, "![a](cat.png)", settings="markdown = true")))
    assert without == ['1 image shown as text: name the folder: media = { folder = "pictures" }']
    plain = load_study(write(tmp_path, text, settings=""))
    assert media_notes(plain) == ["2 images in items shown as text: say markdown = true"]
    assert media_notes(load_study(EXAMPLE / "study.toml")) == []


def test_an_amendment_may_bring_files_and_not_exchange_them(tmp_path: Path) -> None:
    settings = RICH + 'instructions = "![a dog](dog.png)"'
    path = write(tmp_path, "![a cat](cat.png)", settings=settings, cat_png=png(), dog_png=png())
    before = load_study(path)
    more = ITEM.format(id="i2", context="'x'", text="'![an owl](owl.png)'")
    path.write_text(path.read_text() + more, encoding="utf-8")
    (tmp_path / "pictures" / "owl.png").write_bytes(png(5, 5))
    amendment = compare_studies(before, load_study(path))
    assert (amendment.changes, amendment.refusals) == (("1 item more",), ())
    (tmp_path / "pictures" / "dog.png").write_bytes(png(9, 9))
    (tmp_path / "pictures" / "cat.png").write_bytes(png(9, 9))
    amendment = compare_studies(before, load_study(path))
    assert amendment.changes == ("instructions: dog.png shows something else", "1 item more")
    assert amendment.refusals == ("an item cannot show another file than before: cat.png in i1",)
    plain = before.model_copy(update={"media": None})
    assert "cat.png in i1" in compare_studies(before, plain).refusals[0]


def test_a_text_alone_can_name_files_that_are_known(tmp_path: Path) -> None:
    path = write(tmp_path, "![a cat](cat.png)", cat_png=png())
    study = load_study(path)
    assert parse_study(path.read_text(), "text", study.media) == study
    with pytest.raises(ConfigError) as error:
        parse_study(path.read_text(), "text")
    assert "cat.png: a text alone cannot bring a new file: use palaver study amend" in str(error.value)


def test_a_broken_copy_keeps_an_image_whole() -> None:
    text = "look at ![a cat on a mat](cat.png) it is here now"
    item = Item(id="i", outputs=(Output(system="a", text=text),))
    words = {degrade(item, seed).outputs[0].text for seed in range(5)}
    assert all("[a cat" not in (word or "").replace("![a cat on a mat](cat.png)", "") for word in words)


def test_a_study_of_responses_keeps_their_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "x", cat_png=png())
    lines = [
        f'{{"id": "1", "system": "{s}", "context": "What?", "response": "![a cat](cat.png)"}}' for s in "ab"
    ]
    Path("responses.jsonl").write_text("\n".join(lines), encoding="utf-8")
    Path("out").mkdir()
    draft = draft_study("responses.jsonl", preset="pairwise", media="pictures")
    written, _ = draft.write(Path("out") / "study.toml")
    assert 'media = { folder = "../pictures" }' in written.read_text()
    study: Study = load_study(written)
    assert study.media is not None
    assert [file.name for file in study.media.files] == ["cat.png"]
    assert draft_study("responses.jsonl", preset="pairwise").notes == (
        "2 images in items shown as text: say markdown = true",
    )
    (tmp_path / "pictures" / "cat.png").unlink()
    with pytest.raises(UserError, match="not every file can be shown"):
        draft_study("responses.jsonl", preset="pairwise", media="pictures")
