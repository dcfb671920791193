"""`get`: from an address or a copy into a folder of the corpus's name, readable or not there at all."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from palaver.corpora import catalogue
from palaver.corpora.catalogue import corpus, corpus_names, read_corpus
from palaver.corpora.download import get
from palaver.corpora.transfer import Patience
from palaver.errors import DataError, UserError

Shop = Any
QUICK = Patience(tries=2, sleep=lambda seconds: None)


def zipped(folder: Path, around: str = "") -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for file in sorted(p for p in folder.rglob("*") if p.is_file()):
            archive.write(file, f"{around}{file.relative_to(folder).as_posix()}")
    return packed.getvalue()


def ids(name: str, root: Path) -> list[str]:
    return [d.id for d in read_corpus(name, root=root)]


@pytest.mark.parametrize("name", [n for n in corpus_names() if corpus(n).card.urls])
def test_an_archive_as_the_makers_pack_it(name: str, shop: Shop, samples: Path, tmp_path: Path) -> None:
    shop.content = zipped(samples / name, f"{name}-HEAD/")
    url = shop.url.replace("corpus.bin", "HEAD.zip")
    got = get(name, tmp_path, url=url, patience=QUICK)
    assert got.folder == tmp_path / name
    assert os.listdir(tmp_path) == [name]
    assert ids(name, tmp_path) == ids(name, samples)
    assert any("not pinned, its sha256 is" in note for note in got.notes)


def test_the_address_of_the_card_is_used(
    shop: Shop, samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = corpus("dream")
    shop.content = zipped(samples / "dream", "dream-HEAD/")
    card = catalogue.CorpusCard(**{**vars(known.card), "urls": (shop.url,)})
    monkeypatch.setattr(
        "palaver.corpora.download.corpus", lambda name: catalogue.Corpus(card, known.layouts, known.folder)
    )
    told: list[Any] = []
    get("dream", tmp_path, progress=lambda *x: told.append(x), patience=QUICK)
    assert ids("dream", tmp_path) == ids("dream", samples)
    assert told


def test_only_what_belongs_to_it_is_kept(shop: Shop, spoilt: Path, tmp_path: Path) -> None:
    (spoilt / "taskmaster4/TM-1-2019").mkdir()
    (spoilt / "taskmaster4/TM-1-2019/big.json").write_text("[]")
    shop.content = zipped(spoilt / "taskmaster4", "Taskmaster-HEAD/")
    get("taskmaster4", tmp_path / "to", url=shop.url, patience=QUICK)
    assert os.listdir(tmp_path / "to/taskmaster4") == ["TM-4-2024"]


def test_archives_in_an_archive(shop: Shop, spoilt: Path, tmp_path: Path) -> None:
    """DailyDialog: `ijcnlp_dailydialog/train.zip` holds `train/dialogues_train.txt`."""
    home = spoilt / "dailydialog"
    for split in ("train", "validation", "test"):
        (home / f"{split}.zip").write_bytes(zipped(home / split, f"{split}/"))
        shutil.rmtree(home / split)
    shop.content = zipped(home, "ijcnlp_dailydialog/")
    get("dailydialog", tmp_path / "to", url=shop.url, patience=QUICK)
    assert len(ids("dailydialog", tmp_path / "to")) == 3
    assert read_corpus("dailydialog", root=tmp_path / "to", split="valid").path.name == "dialogues_train.txt"


def test_a_tar(shop: Shop, samples: Path, tmp_path: Path) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        archive.add(samples / "sgd", "sgd-1.0")
    shop.content = packed.getvalue()
    get("sgd", tmp_path, url=shop.url.replace("corpus.bin", "sgd.tar.gz"), patience=QUICK)
    assert ids("sgd", tmp_path) == ids("sgd", samples)


@pytest.mark.parametrize(
    "member", ["../outside.json", "/outside.json", "a/../../outside.json", "..\\outside.json"]
)
def test_an_archive_cannot_write_elsewhere(member: str, shop: Shop, tmp_path: Path) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(member, "{}")
    shop.content = packed.getvalue()
    with pytest.raises(DataError, match="outside its folder"):
        get("dream", tmp_path / "to", url=shop.url.replace(".bin", ".zip"), patience=QUICK)
    assert not list(tmp_path.rglob("outside.json"))
    assert not (tmp_path / "to/dream").exists()


def test_links_in_a_tar_are_not_followed(shop: Shop, samples: Path, tmp_path: Path) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        link = tarfile.TarInfo("dream/data/evil.json")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
        archive.add(samples / "dream", "dream")
    shop.content = packed.getvalue()
    get("dream", tmp_path, url=shop.url.replace(".bin", ".tar"), patience=QUICK)
    assert not list((tmp_path / "dream").rglob("evil.json"))


@pytest.mark.parametrize("content", [b"<html>Please log in</html>", b"PK\x03\x04 cut short", b""])
def test_what_is_no_archive_is_an_error(content: bytes, shop: Shop, tmp_path: Path) -> None:
    shop.content = content
    with pytest.raises(DataError):
        get("dream", tmp_path, url=shop.url.replace(".bin", ".zip"), patience=QUICK)
    assert not (tmp_path / "dream").exists()


def test_an_archive_of_something_else(shop: Shop, samples: Path, tmp_path: Path) -> None:
    shop.content = zipped(samples / "scripts")
    with pytest.raises(DataError, match="holds none of the files that were expected"):
        get("dream", tmp_path, url=shop.url, patience=QUICK)
    with pytest.raises(
        DataError, match="Self-dialogue Corpus cannot be read from it: what was given does not"
    ):
        get("self-dialogue", tmp_path, url=shop.url, patience=QUICK)
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".") or "." not in name]


def test_a_download_that_failed_goes_on(shop: Shop, samples: Path, tmp_path: Path) -> None:
    shop.content = zipped(samples / "dream", "d/")
    shop.cut_after = [100, 0, 0]
    with pytest.raises(UserError, match="cannot download"):
        get("dream", tmp_path, url=shop.url, patience=QUICK)
    get("dream", tmp_path, url=shop.url, patience=QUICK)
    assert shop.asked[-1]["range"] == "bytes=100-"
    assert os.listdir(tmp_path) == ["dream"]


# --- from a copy ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", corpus_names())
def test_from_a_folder_of_many(name: str, samples: Path, tmp_path: Path) -> None:
    """Only the corpus itself is taken, and it is found again by its name."""
    get(name, tmp_path, copy=samples)
    assert ids(name, tmp_path) == ids(name, samples)
    others = {f"{n}{ending}" for n in ("friends_turns", "bbt_turns") for ending in (".csv", ".csv.gz")}
    taken = {p.name for p in (tmp_path / name).rglob("*")}
    assert len(taken & others) == (name in ("friends", "big-bang-theory"))


@pytest.mark.parametrize("name", ["switchboard", "self-dialogue", "opensubtitles", "topical-chat"])
def test_from_its_very_folder(name: str, samples: Path, tmp_path: Path) -> None:
    inner = {"switchboard": "swda_data", "self-dialogue": "corpus", "opensubtitles": "", "topical-chat": ""}[
        name
    ]
    get(name, tmp_path, copy=samples / name / inner)
    expected = ids(name, samples)
    if name == "self-dialogue":
        expected = ["a1", "a3", "a4", "a5"]  # the list of blocked workers was not given
    assert ids(name, tmp_path) == expected


def test_from_a_file_of_any_name(samples: Path, tmp_path: Path) -> None:
    copy = tmp_path / "my transcripts.csv"
    shutil.copyfile(samples / "scripts/friends_turns.csv", copy)
    got = get("friends", tmp_path / "to", copy=copy)
    assert ids("friends", tmp_path / "to") == ids("friends", samples)
    assert os.listdir(got.folder) == ["friends_turns.csv"]
    assert got.notes == ("1 of 1 files are not pinned: taken as they are",)
    assert copy.exists()


def test_from_an_archive(samples: Path, tmp_path: Path) -> None:
    copy = tmp_path / "sd.zip"
    copy.write_bytes(zipped(samples / "self-dialogue/corpus", "corpus/"))
    get("self-dialogue", tmp_path / "to", copy=copy)
    assert "a1" in ids("self-dialogue", tmp_path / "to")


def test_a_known_file_must_have_the_known_hash(shared_data: Path, samples: Path, tmp_path: Path) -> None:
    got = get("dream", tmp_path / "to", copy=shared_data / "dialogue/dream.jsonl.gz")
    assert got.notes == ()
    again = get("topical-chat", tmp_path / "to", copy=shared_data)
    assert again.notes == ("3 of 13 files are not pinned: taken as they are",)  # licence, wiki, topics


def test_another_version_is_refused_unless_wanted(tmp_path: Path) -> None:
    copy = tmp_path / "dream.jsonl.gz"
    copy.write_bytes(gzip.compress(b'{"id": "x", "split": "dev", "turns": [{"s": "A", "t": "hi"}]}'))
    with pytest.raises(DataError) as refused:
        get("dream", tmp_path / "to", copy=copy)
    assert "another version" in refused.value.message
    assert "--no-check" in refused.value.hint
    got = get("dream", tmp_path / "to", copy=copy, check=False)
    assert "another version" in got.notes[0]
    assert ids("dream", tmp_path / "to") == ["x"]


# --- and otherwise --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [n for n in corpus_names() if not corpus(n).card.urls])
def test_what_needs_a_person_says_what_to_do(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as refused:
        get(name, tmp_path)
    assert corpus(name).card.manual in refused.value.message
    assert corpus(name).card.source in refused.value.hint
    assert "--from" in refused.value.hint


def test_nothing_is_replaced_unasked(samples: Path, tmp_path: Path) -> None:
    (tmp_path / "dream").mkdir()
    (tmp_path / "dream/mine").write_text("")
    with pytest.raises(UserError, match="is there already"):
        get("dream", tmp_path, copy=samples)
    assert os.listdir(tmp_path / "dream") == ["mine"]
    with pytest.raises(DataError):
        get("dream", tmp_path, copy=samples / "scripts", force=True)
    assert os.listdir(tmp_path / "dream") == ["mine"]  # also when it fails
    get("dream", tmp_path, copy=samples, force=True)
    assert os.listdir(tmp_path / "dream") == ["data"]


def test_wrong_arguments(samples: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no corpus 'drem'"):
        get("drem", tmp_path)
    with pytest.raises(UserError, match="there is no .*nowhere"):
        get("dream", tmp_path, copy=tmp_path / "nowhere")
    with pytest.raises(UserError, match="a copy and an address"):
        get("dream", tmp_path, copy=samples, url="http://x/y")
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write into"):
        get("dream", tmp_path / "file", copy=samples)
    with pytest.raises(DataError, match="does not look like DREAM"):
        get("dream", tmp_path, copy=samples / "scripts")


def test_the_usual_place(samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("PALAVER_DATA", raising=False)
    assert get("sgd", copy=samples).folder == tmp_path / "palaver/corpora/sgd"
    assert len(list(read_corpus("sgd"))) == 2
