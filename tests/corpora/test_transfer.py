"""Downloads: whole or not at all, going on where they stopped, never two files mixed."""

from __future__ import annotations

import hashlib
import os
import resource
import signal
from pathlib import Path
from typing import Any

import pytest

from palaver.corpora.transfer import Patience, fetch, name_of
from palaver.errors import DataError, UserError

Shop = Any


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def patience(pauses: list[float]) -> Patience:
    return Patience(tries=3, timeout=5, sleep=pauses.append)


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_a_whole_file(shop: Shop, tmp_path: Path, patience: Patience) -> None:
    told: list[tuple[str, int, int]] = []
    target = tmp_path / "deep" / "f.bin"
    got = fetch(
        shop.url, target, sha256=sha(shop.content), progress=lambda *x: told.append(x), patience=patience
    )
    assert got == target
    assert target.read_bytes() == shop.content
    assert os.listdir(target.parent) == ["f.bin"]
    size = len(shop.content)
    assert told[-1] == ("f.bin", size, size)
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)
    assert "range" not in shop.asked[0]


def test_a_cut_connection_goes_on_where_it_stopped(
    shop: Shop, tmp_path: Path, patience: Patience, pauses: list[float]
) -> None:
    shop.cut_after = [400_000, 300_000, 0]
    fetch(shop.url, tmp_path / "f", sha256=sha(shop.content), patience=patience)
    assert (tmp_path / "f").read_bytes() == shop.content
    assert [a.get("range") for a in shop.asked] == [None, "bytes=400000-", "bytes=700000-", "bytes=700000-"]
    assert {a.get("if-range") for a in shop.asked[1:]} == {'"one"'}
    assert shop.sent == len(shop.content)
    assert pauses == [1, 1, 2]  # what brought something new does not count as a failure


def test_another_run_goes_on_too(shop: Shop, tmp_path: Path, patience: Patience) -> None:
    shop.cut_after = [500_000, 0, 0, 0]
    with pytest.raises(UserError) as refused:
        fetch(shop.url, tmp_path / "f", patience=patience)
    assert "500,000 bytes are kept" in refused.value.hint
    assert not (tmp_path / "f").exists()
    fetch(shop.url, tmp_path / "f", patience=patience)
    assert (tmp_path / "f").read_bytes() == shop.content
    assert shop.sent == len(shop.content)
    assert os.listdir(tmp_path) == ["f"]


@pytest.mark.parametrize("etag", ['"two"', 'W/"one"', ""])
def test_a_file_that_changed_meanwhile_is_begun_again(
    etag: str, shop: Shop, tmp_path: Path, patience: Patience
) -> None:
    shop.cut_after = [500_000, 0, 0, 0]
    with pytest.raises(UserError):
        fetch(shop.url, tmp_path / "f", patience=patience)
    shop.content, shop.etag = bytes(reversed(shop.content)), etag
    fetch(shop.url, tmp_path / "f", patience=patience)
    assert (tmp_path / "f").read_bytes() == shop.content


@pytest.mark.parametrize("mark", ["etag", "modified", "weak", "none"])
def test_only_what_is_surely_the_same_file_is_gone_on_with(
    mark: str, shop: Shop, tmp_path: Path, patience: Patience
) -> None:
    shop.etag = {"etag": '"one"', "weak": 'W/"one"'}.get(mark, "")
    shop.modified = "Mon, 01 Jan 2024 00:00:00 GMT" if mark == "modified" else ""
    shop.cut_after = [500_000]
    fetch(shop.url, tmp_path / "f", patience=patience)
    assert (tmp_path / "f").read_bytes() == shop.content
    went_on = "range" in shop.asked[1]
    assert went_on is (mark in ("etag", "modified"))


def test_a_server_without_ranges_sends_all_again(shop: Shop, tmp_path: Path, patience: Patience) -> None:
    shop.ranges = False
    shop.cut_after = [400_000]
    fetch(shop.url, tmp_path / "f", sha256=sha(shop.content), patience=patience)
    assert (tmp_path / "f").read_bytes() == shop.content
    assert shop.sent == len(shop.content) + 400_000


def test_a_server_that_does_not_say_how_much(shop: Shop, tmp_path: Path, patience: Patience) -> None:
    shop.lengths = False
    told: list[Any] = []
    fetch(shop.url, tmp_path / "f", progress=lambda *x: told.append(x), patience=patience)
    assert (tmp_path / "f").read_bytes() == shop.content
    assert told[-1] == ("f", len(shop.content), 0)


def test_a_part_that_is_whole_already(shop: Shop, tmp_path: Path, patience: Patience) -> None:
    (tmp_path / "f.part").write_bytes(shop.content)
    (tmp_path / "f.part.json").write_text(f'{{"url": "{shop.url}", "mark": "\\"one\\""}}')
    fetch(shop.url, tmp_path / "f", sha256=sha(shop.content), patience=patience)
    assert (tmp_path / "f").read_bytes() == shop.content
    assert shop.sent == 0


def test_a_part_that_is_longer_than_the_file(shop: Shop, tmp_path: Path, patience: Patience) -> None:
    (tmp_path / "f.part").write_bytes(shop.content + b"x")
    (tmp_path / "f.part.json").write_text(f'{{"url": "{shop.url}", "mark": "\\"one\\""}}')
    fetch(shop.url, tmp_path / "f", patience=patience)
    assert (tmp_path / "f").read_bytes() == shop.content


@pytest.mark.parametrize("about", ["", "[]", "{}", '{"url": "http://elsewhere", "mark": "x"}'])
def test_a_part_of_nobody_knows_what_is_not_used(
    about: str, shop: Shop, tmp_path: Path, patience: Patience
) -> None:
    (tmp_path / "f.part").write_bytes(b"junk")
    (tmp_path / "f.part.json").write_text(about)
    fetch(shop.url, tmp_path / "f", patience=patience)
    assert (tmp_path / "f").read_bytes() == shop.content


def test_a_wrong_hash_keeps_nothing(shop: Shop, tmp_path: Path, patience: Patience) -> None:
    with pytest.raises(DataError) as refused:
        fetch(shop.url, tmp_path / "f", sha256="0" * 64, patience=patience)
    assert sha(shop.content) in refused.value.message
    assert os.listdir(tmp_path) == []
    assert len(shop.asked) == 1


def test_parts_that_do_not_fit_are_fetched_once_more(shop: Shop, tmp_path: Path, patience: Patience) -> None:
    """A server that keeps its ETag although the file changed."""
    (tmp_path / "f.part").write_bytes(b"junk")
    (tmp_path / "f.part.json").write_text(f'{{"url": "{shop.url}", "mark": "\\"one\\""}}')
    fetch(shop.url, tmp_path / "f", sha256=sha(shop.content), patience=patience)
    assert (tmp_path / "f").read_bytes() == shop.content
    assert [a.get("range") for a in shop.asked] == ["bytes=4-", None]


@pytest.mark.parametrize("status", [404, 403, 410])
def test_what_is_not_there_is_not_tried_again(
    status: int, shop: Shop, tmp_path: Path, patience: Patience
) -> None:
    shop.statuses = [status]
    with pytest.raises(UserError) as refused:
        fetch(shop.url, tmp_path / "f", patience=patience)
    assert f"the server answers {status}" in refused.value.message
    assert "--from" in refused.value.hint
    assert len(shop.asked) == 1
    assert os.listdir(tmp_path) == []


def test_a_busy_server_is_asked_again_later(
    shop: Shop, tmp_path: Path, patience: Patience, pauses: list[float]
) -> None:
    shop.statuses = [503, 429]
    fetch(shop.url, tmp_path / "f", patience=patience)
    assert (tmp_path / "f").read_bytes() == shop.content
    assert pauses == [7, 7]  # as the server asks
    shop.statuses = [500] * 9
    with pytest.raises(UserError, match=r"the server answers 500 \(3 times in a row\)"):
        fetch(shop.url, tmp_path / "g", patience=patience)


def test_nobody_there(tmp_path: Path, patience: Patience, pauses: list[float]) -> None:
    with pytest.raises(UserError, match="cannot download http://127.0.0.1:1/f: .*refused"):
        fetch("http://127.0.0.1:1/f", tmp_path / "f", patience=patience)
    assert pauses == [1, 2]


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://x/y", "corpus.zip", "http://", ""])
def test_other_addresses_are_refused(url: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="expected an address"):
        fetch(url, tmp_path / "f")


def test_where_nothing_can_be_written(shop: Shop, tmp_path: Path, patience: Patience) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write"):
        fetch(shop.url, tmp_path / "file" / "f", patience=patience)


def test_a_full_disk_keeps_the_part(shop: Shop, tmp_path: Path, patience: Patience) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, before[1]))
    try:
        with pytest.raises(UserError) as refused:
            fetch(shop.url, tmp_path / "f", patience=patience)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert "cannot write" in refused.value.message
    fetch(shop.url, tmp_path / "f", patience=patience)
    assert (tmp_path / "f").read_bytes() == shop.content


def test_pauses_double_up_to_a_limit(tmp_path: Path) -> None:
    pauses: list[float] = []
    with pytest.raises(UserError, match="8 times in a row"):
        fetch("http://127.0.0.1:1/f", tmp_path / "f", patience=Patience(tries=8, sleep=pauses.append))
    assert pauses == [1, 2, 4, 8, 16, 30, 30]


def test_names_of_files() -> None:
    assert name_of("https://h/a/b%20c.zip?x=1#y") == "b c.zip"
    assert name_of("https://h/a/..%2f..") == "download"
    assert name_of("https://h") == "download"
