"""Files as they really come, and files that are written whole or not at all."""

from __future__ import annotations

import gzip
import hashlib
import os
import random
import re
import stat
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palaver import files
from palaver.errors import DataError, UserError
from palaver.files import (
    TextStream,
    check_readable,
    check_text,
    check_writable,
    detect_format,
    format_by_name,
    sha256_of,
    write_atomically,
)

relaxed = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
not_as_root = pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")


def read(path: Path) -> bytes:
    with TextStream(path) as stream:
        return stream.read()


def put(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


TEXT = "item,value\né,😀\nlast,1"


@pytest.mark.parametrize(
    ("name", "encode"),
    [
        ("utf-8", lambda t: t.encode()),
        ("utf-8 with byte-order mark", lambda t: b"\xef\xbb\xbf" + t.encode()),
        ("utf-16", lambda t: b"\xff\xfe" + t.encode("utf-16-le")),
        ("utf-16", lambda t: b"\xfe\xff" + t.encode("utf-16-be")),
        ("utf-32", lambda t: b"\xff\xfe\0\0" + t.encode("utf-32-le")),
        ("utf-32", lambda t: b"\0\0\xfe\xff" + t.encode("utf-32-be")),
    ],
)
@pytest.mark.parametrize("pack", ["", ".gz", ".zip"])
@pytest.mark.parametrize("text", [TEXT, TEXT.replace("\n", "\r\n"), TEXT.replace("\n", "\r"), "", "\n"])
def test_any_encoding_in_any_wrapping_comes_out_as_utf8(name, encode, pack, text, tmp_path) -> None:  # type: ignore[no-untyped-def]
    raw = encode(text)
    if not raw:
        pytest.skip("an empty file is an error of its own")
    path = tmp_path / f"t.csv{pack}"
    if pack == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("folder/t.csv", raw)
            archive.writestr("__MACOSX/._t.csv", b"junk")
            archive.mkdir("folder/sub")
    else:
        path.write_bytes(gzip.compress(raw) if pack else raw)
    with TextStream(path) as stream:
        assert stream.read() == text.encode()
        assert stream.encoding.name == name
        assert stream.encoding.recoded_lines == 0


lines = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), max_size=6).map(str.encode),
    st.text("abc é€ÿŽ", max_size=6).map(lambda t: t.encode("cp1252")),
    st.binary(max_size=6).map(lambda b: b.replace(b"\n", b"").replace(b"\r", b"")),
    st.just(b"x" * 70),
)
ends = st.sampled_from([b"\n", b"\r\n", b"\r", b"\n\n"])


@given(
    parts=st.lists(st.tuples(lines, ends), max_size=8),
    last=lines,
    chunk=st.integers(1, 40),
    bom=st.booleans(),
)
@relaxed
def test_mixed_lines_are_mended_one_by_one_wherever_chunks_end(
    parts: list[tuple[bytes, bytes]],
    last: bytes,
    chunk: int,
    bom: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    raw = b"\xef\xbb\xbf" * bom + b"".join(line + end for line, end in parts) + last
    if not raw or (not bom and raw.startswith((b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff", b"\xef\xbb\xbf"))):
        return
    try:
        check_text(raw[:4096], "raw")
    except DataError:  # it begins as a picture does, or such
        return
    expected, recoded = b"", 0
    for line, end in [*parts, (last, b"")]:
        try:
            line.decode()
            expected += line + end
        except UnicodeDecodeError:
            expected += line.decode("cp1252", errors="replace").encode() + end
            recoded += 1
    path = put(tmp_path_factory.mktemp("mixed") / "t.txt", raw)
    for size in (chunk, files._CHUNK):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(files, "_CHUNK", size)
            with TextStream(path) as stream:
                assert stream.read() == expected
                assert stream.encoding.recoded_lines == recoded
            with TextStream(path) as stream:
                assert b"".join(stream) == expected


@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=30), chunk=st.integers(1, 9))
@relaxed
def test_wide_characters_may_be_cut_anywhere(
    text: str, chunk: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("wide")
    for encoding, mark in {
        "utf-16-le": b"\xff\xfe",
        "utf-16-be": b"\xfe\xff",
        "utf-32-be": b"\0\0\xfe\xff",
    }.items():
        if encoding == "utf-16-le" and text.startswith("\0"):
            continue  # its first four bytes are the mark of UTF-32
        path = put(folder / encoding, mark + text.encode(encoding))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(files, "_CHUNK", chunk)
            assert read(path) == text.encode()


def test_windows_lines_are_counted(tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", "a\né\n".encode() + "ü\n€\n".encode("cp1252") + b"\x81\n")
    with TextStream(path) as stream:
        assert stream.read().decode() == "a\né\nü\n€\n\ufffd\n"
        assert stream.encoding.recoded_lines == 3


def test_bytes_used_up_grow_to_the_size_on_disk(tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv.gz", gzip.compress(os.urandom(200_000).hex().encode()))
    with TextStream(path) as stream:
        assert 0 <= stream.consumed() <= path.stat().st_size
        stream.read()
        assert stream.consumed() == path.stat().st_size


def test_one_very_long_line_takes_time_in_proportion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """16 MB in pieces of 2 kB: copying all that was read with each of them would move 64 GB."""
    monkeypatch.setattr(files, "_CHUNK", 1 << 11)
    path = put(tmp_path / "t.txt", b"x" * (1 << 24) + b"\nend")
    started = time.perf_counter()
    with TextStream(path) as stream:
        assert sum(len(piece) for piece in iter(lambda: stream.read(1 << 11), b"")) == (1 << 24) + 4
    assert time.perf_counter() - started < 2


@pytest.mark.parametrize("cut", [3, 9, 15, 30, -9, -4, -1])
@pytest.mark.parametrize("text", [TEXT * 50, (TEXT * 50).encode("utf-16")], ids=["utf-8", "utf-16"])
def test_gzip_cut_short(cut: int, text: str | bytes, tmp_path: Path) -> None:
    raw = text.encode() if isinstance(text, str) else text
    path = put(tmp_path / "t.csv.gz", gzip.compress(raw)[:cut])
    with pytest.raises(DataError, match="damaged, cut short or not what its name says"):
        read(path)


@given(at=st.integers(10, 400), flip=st.integers(1, 255))
@relaxed
def test_gzip_with_a_flipped_byte_never_passes_for_good(
    at: int, flip: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    whole = bytes(range(256)).hex().encode()
    packed = bytearray(gzip.compress(whole))
    packed[at % len(packed)] ^= flip
    path = put(tmp_path_factory.mktemp("flip") / "t.gz", bytes(packed))
    try:
        assert read(path) == whole  # bytes of the header that mean nothing
    except DataError as error:
        assert "damaged" in str(error)


def test_not_gzip(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not what its name says"):
        read(put(tmp_path / "t.gz", b"item,value\n"))


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "t.zip"
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("t.csv", TEXT)
    return path


def test_zips_that_cannot_be_read(archive: Path, tmp_path: Path) -> None:
    whole = archive.read_bytes()
    directory = whole.index(b"PK\x01\x02")

    def with_byte(at: int, value: int) -> bytes:
        changed = bytearray(whole)
        changed[at] = value
        return bytes(changed)

    for content, words in [
        (b"item,value", "is not a zip file, or is cut short"),
        (whole[:40], "is not a zip file, or is cut short"),
        (with_byte(directory + 8, whole[directory + 8] | 1), "password"),
        (with_byte(directory + 10, 77), "cannot be unpacked"),
        (whole.replace(b"last,1", b"last,2"), "damaged"),
        (whole.replace(b"PK\x03\x04", b"PK\x03\x05"), "cannot be unpacked"),
    ]:
        path = put(tmp_path / "bad.zip", content)
        with pytest.raises(DataError, match=words):
            read(path)


@pytest.mark.parametrize(
    ("members", "found"), [([], "found 0 \\(none\\)"), (["a.csv", "b.csv"], "found 2 \\(a.csv, b.csv\\)")]
)
def test_a_zip_holds_one_file(members: list[str], found: str, tmp_path: Path) -> None:
    path = tmp_path / "t.zip"
    with zipfile.ZipFile(path, "w") as made:
        for member in members:
            made.writestr(member, "x")
    for use in (read, detect_format):
        with pytest.raises(DataError, match=f"should hold exactly one file, {found}"):
            use(path)


def test_not_utf16_after_all(tmp_path: Path) -> None:
    for content in (b"\xff\xfea", b"\xff\xfe\x00\xd8a\x00", b"\xfe\xff\xd8\x00"):
        with pytest.raises(DataError, match="begins like UTF-16 but is not"):
            read(put(tmp_path / "t.csv", content))


def test_what_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "ratings.csv").write_text("x")
    (tmp_path / "hollow").mkdir()
    (tmp_path / "empty.csv").touch()
    (tmp_path / "broken.csv").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe")
    for name, words in {
        "hollow": "is a directory, not a file .it is empty.",
        ".": "is a directory, not a file .it holds empty.csv, ratings.csv.",
        "empty.csv": "is empty",
        "rating.csv": "did you mean 'ratings.csv'",
        "zzz": "^there is no file [^?]*$",
        "no/such/folder": "^there is no file [^?]*$",
        "ratings.csv/x": "^there is no file [^?]*$",
        "broken.csv": "^there is no file [^?]*$",
        "pipe": "pipe or a device",
        "x" * 5000: "cannot be read: file name too long",
    }.items():
        for use in (check_readable, read):
            with pytest.raises(DataError, match=words):
                use(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "expected"), [("e.csv", "a table with a header"), ("e.txt", "lines of text"), ("e.toml", "")]
)
def test_an_empty_file_says_what_it_should_hold(name: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / name).touch()
    with pytest.raises(DataError, match="is empty") as caught:
        check_readable(tmp_path / name)
    assert expected in caught.value.hint
    assert bool(expected) == bool(caught.value.hint)


@not_as_root
def test_what_must_not_be_read(tmp_path: Path) -> None:
    path = put(tmp_path / "secret.csv", b"x")
    path.chmod(0)
    with pytest.raises(DataError, match="permission denied"):
        check_readable(path)
    tmp_path.chmod(0)
    try:
        with pytest.raises(DataError, match="permission denied"):
            check_readable(path)
    finally:
        tmp_path.chmod(0o700)


def test_refusals_by_the_system_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same as above for those who run the tests as root."""

    def refuse(self: Path, *args: object, **kwargs: object) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    path = put(tmp_path / "secret.csv", b"x")
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(DataError, match="secret.csv cannot be read: permission denied"):
        check_readable(path)


@pytest.mark.filterwarnings("error")
def test_no_file_stays_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").is_dir() else 0
    for name, content in {"t.gz": b"no gzip", "t.zip": b"no zip", "t.csv": b"\xff\xfe\x00\xd8"}.items():
        with pytest.raises(DataError):
            read(put(tmp_path / name, content))
    for name, content in {"good.csv": b"x", "good.csv.gz": gzip.compress(b"x")}.items():
        stream = TextStream(put(tmp_path / name, content))
        stream.close()
        stream.close()
        assert stream.closed
    if before:
        assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("a.csv", b"x", "csv"),
        ("a.TSV", b"x", "csv"),
        ("a.txt", b"x", "csv"),
        ("a.jsonl", b"x", "jsonl"),
        ("a.ndjson", b"x", "jsonl"),
        ("a.JSON", b"x", "jsonl"),
        ("a.parquet", b"x", "parquet"),
        ("a.csv.gz", b"x", "csv"),
        ("a.jsonl.GZ", b"x", "jsonl"),
        ("noname", b"PAR1 and so on", "parquet"),
        ("noname", b' \n{"a": 1}', "jsonl"),
        ("noname", b"a,b\n1,2", "csv"),
        ("noname", "\ufeff{}".encode(), "jsonl"),
        ("noname", '{"a": 1}'.encode("utf-16"), "jsonl"),
        ("data.v2", b"{", "jsonl"),
    ],
)
def test_formats_by_name_or_by_first_bytes(name: str, content: bytes, kind: str, tmp_path: Path) -> None:
    assert detect_format(put(tmp_path / name, content)) == kind


def test_the_format_of_a_zip_is_that_of_its_member(tmp_path: Path) -> None:
    path = tmp_path / "t.zip"
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("x/ratings.JSONL", "{}")
    assert detect_format(path) == "jsonl"
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("ratings", '{"a": 1}')
    assert detect_format(path) == "jsonl"


def test_the_format_to_write_must_be_in_the_name() -> None:
    assert format_by_name(Path("a.csv")) == "csv"
    assert format_by_name(Path("a.JSONL")) == "jsonl"
    assert format_by_name(Path("a.jsonl.gz")) == "jsonl"
    assert format_by_name(Path("a.b.pq")) == "parquet"
    for bad in ("a.txt", "a", "csv", "a.xlsx", "a.gz", "a.parquet.gz"):
        with pytest.raises(UserError):
            format_by_name(Path(bad))


def test_hashes_are_of_the_bytes_on_disk(tmp_path: Path) -> None:
    path = put(tmp_path / "t.gz", b"\xff" * 100_000)
    assert sha256_of(path) == hashlib.sha256(b"\xff" * 100_000).hexdigest()


def test_writing_makes_folders_and_leaves_only_the_file(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folders" / "t.csv"
    with write_atomically(path) as file:
        file.write("é\r\n")
        assert not path.exists()
    assert path.read_bytes() == "é\r\n".encode()
    assert os.listdir(path.parent) == ["t.csv"]


def test_the_file_can_be_read_by_those_the_umask_lets(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with write_atomically(tmp_path / "t") as file:
            file.write("x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "t").stat().st_mode) == 0o640


@pytest.mark.parametrize(
    "error", [ValueError("x"), KeyboardInterrupt(), DataError("x"), OSError(28, "No space left")]
)
@pytest.mark.parametrize("existing", [True, False])
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_an_error_leaves_nothing_behind(
    error: BaseException, existing: bool, name: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    if existing:
        path.write_text("old")
    expected = UserError if isinstance(error, OSError) else type(error)
    with pytest.raises(expected) as caught, write_atomically(path) as file:
        file.write("half a fi")
        raise error
    assert os.listdir(tmp_path) == ([name] if existing else [])
    if existing:
        assert path.read_text() == "old"
    if isinstance(error, OSError):
        assert "No space left" in str(caught.value)


def test_text_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(UnicodeEncodeError), write_atomically(tmp_path / "t") as file:
        file.write("\ud800")
    assert os.listdir(tmp_path) == []


def test_trouble_with_another_file_is_not_called_trouble_with_writing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), write_atomically(tmp_path / "t"):
        (tmp_path / "input").read_text()
    assert os.listdir(tmp_path) == []


def test_an_abandoned_writer_leaves_nothing_behind(tmp_path: Path) -> None:
    def lines() -> Iterator[None]:
        with write_atomically(tmp_path / "t") as file:
            file.write("x")
            yield

    writer = lines()
    next(writer)
    del writer
    assert os.listdir(tmp_path) == []


def test_an_existing_file_is_replaced_in_one_step(tmp_path: Path) -> None:
    path = put(tmp_path / "t", b"old")
    with write_atomically(path, "wb") as file:
        file.write(b"new\xff")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new\xff"


@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
@relaxed
def test_what_is_written_packed_is_read_back(text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("packed") / "t.jsonl.gz"
    for mode in ("w", "wb"):
        with write_atomically(path, mode) as file:  # type: ignore[arg-type]
            file.write("{" + text if mode == "w" else ("{" + text).encode())
        assert gzip.decompress(path.read_bytes()).decode() == "{" + text
        assert read(path) == ("{" + text).encode()


def test_packed_twice_gives_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gzip.time.time", iter([1e9, 2e9]).__next__)
    for name in ("a.gz", "b.gz"):
        with write_atomically(tmp_path / name) as file:
            file.write("same")
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("target")
    with write_atomically(tmp_path / "link") as file:
        file.write("x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "x"


def test_names_may_be_as_long_as_the_system_lets(tmp_path: Path) -> None:
    with write_atomically(tmp_path / ("x" * 250)) as file:
        file.write("x")
    with pytest.raises(UserError, match="cannot write"), write_atomically(tmp_path / ("x" * 300)) as file:
        file.write("x")
    assert os.listdir(tmp_path) == ["x" * 250]


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    put(tmp_path / "file", b"x")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name, words in {
        "folder": "it is a directory",
        "file/below": "cannot write .*below: .*file is a file, not a folder",
        "file/far/below": "file is a file, not a folder",
        "pipe": "pipe or a device",
    }.items():
        with pytest.raises(UserError, match=words), write_atomically(tmp_path / name):
            raise AssertionError("must not get here")
    assert sorted(os.listdir(tmp_path)) == ["file", "folder", "pipe"]
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


@not_as_root
def test_folders_that_must_not_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(UserError, match="Permission denied"), write_atomically(tmp_path / "t"):
            pass
        with pytest.raises(UserError, match="Permission denied"):
            check_writable(tmp_path)
        with pytest.raises(UserError, match="Permission denied"):
            check_writable(tmp_path / "new")
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="no /proc here")
def test_folders_that_nobody_may_write() -> None:
    """Also for root, who is refused nothing in ordinary folders."""
    with pytest.raises(UserError, match="cannot write"), write_atomically(Path("/proc/palaver-test")):
        pass
    with pytest.raises(UserError):
        check_writable(Path("/proc/palaver-test"))


def test_trying_a_folder_leaves_it_as_it_is(tmp_path: Path) -> None:
    put(tmp_path / "x", b"x")
    check_writable(tmp_path)
    assert os.listdir(tmp_path) == ["x"]
    check_writable(tmp_path / "new" / "folder")
    assert os.listdir(tmp_path / "new" / "folder") == []
    with pytest.raises(UserError, match="is a file, not a folder"):
        check_writable(tmp_path / "x")


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "a picture (PNG)"),
        (b"PAR1" + bytes(100), "a Parquet table"),
        (b"%PDF-1.7\n", "a PDF document"),
        (random.Random(0).randbytes(3000), "not a text"),
    ],
)
def test_what_is_no_text_is_refused(tmp_path: Path, content: bytes, what: str) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(content)
    with pytest.raises(DataError, match=re.escape(what)), TextStream(path):
        pass
    packed = tmp_path / "t.jsonl.gz"
    packed.write_bytes(gzip.compress(content))
    with pytest.raises(DataError, match=re.escape(what)), TextStream(packed):
        pass


@pytest.mark.parametrize(
    "text", ["PAR1 is a label.\n", "RIFF\n", "a\0b\n", "\x1b[31mred\x1b[0m\n", "é\x01\x02\x03\x04\n", "héé\n"]
)
def test_odd_texts_are_texts(tmp_path: Path, text: str) -> None:
    path = tmp_path / "t.txt"
    path.write_text(text, encoding="utf-8")
    with TextStream(path) as stream:
        assert stream.read().decode() == text


@pytest.mark.parametrize("kind", ["gz", "zip"])
def test_an_archive_that_would_fill_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr("palaver.files.MOST_UNPACKED", 1000)
    for size, is_too_large in ((1000, False), (1001, True)):
        path = tmp_path / f"{size}.csv.{kind}"
        if kind == "gz":
            path.write_bytes(gzip.compress(b"x" * size))
        else:
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("x.csv", b"x" * size)
        if is_too_large:
            with pytest.raises(DataError, match="when unpacked"), TextStream(path) as stream:
                stream.read()
        else:
            with TextStream(path) as stream:
                assert len(stream.read()) == size
    (tmp_path / "plain.csv").write_bytes(b"x" * 5000)
    with TextStream(tmp_path / "plain.csv") as stream:
        assert len(stream.read()) == 5000
