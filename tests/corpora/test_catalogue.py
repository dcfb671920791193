"""The catalogue: cards, where copies are looked for, and `read_corpus`."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from palaver.corpora.catalogue import corpus, corpus_names, load, read_corpus, usual_roots
from palaver.errors import DataError, UserError
from palaver.files import sha256_of
from palaver.readers import write_dialogues
from palaver.schema import Dialogue, Turn

PLAIN = [name for name in corpus_names() if any("plain:" in x.loader for x in corpus(name).layouts)]


def put_plain(folder: Path, name: str, splits: list[str]) -> Path:
    file = next(x.file for x in corpus(name).layouts if "plain:" in x.loader)
    path = folder / "dialogue" / f"{file}.gz"
    path.parent.mkdir(exist_ok=True)
    rows = [
        {
            "id": f"d{i}",
            "split": split,
            "topic": ["Travel"],
            "turns": [{"s": "A", "t": "x"}, {"s": "A", "t": "y"}],
        }
        for i, split in enumerate(splits)
    ]
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    return path


# --- cards ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", corpus_names())
def test_every_card_is_whole(name: str) -> None:
    known = corpus(name)
    card = known.card
    assert card.name == name
    assert card.title
    assert card.licence
    assert card.description
    assert card.source.startswith("http")
    assert card.urls or card.manual, "it can be downloaded, or there is something to do by hand"
    assert all(re.fullmatch(r"[0-9a-f]{64}", value) for value in card.sha256.values())
    assert {"dialogues", "turns"} <= set(card.counts) or not card.counts
    assert set(card.counts) - {"dialogues", "turns"} <= set(card.splits)
    assert all(callable(load(layout)) for layout in known.layouts)


def test_only_free_licences_may_ship() -> None:
    free = {name for name in corpus_names() if corpus(name).card.redistributable}
    assert free == {"topical-chat", "self-dialogue", "taskmaster4", "sgd"}
    assert not any("NC" in corpus(name).card.licence for name in free)


@pytest.mark.parametrize("name", corpus_names())
def test_every_corpus_is_read_from_its_own_layout(name: str, samples: Path) -> None:
    reader = read_corpus(name, root=samples)
    found = list(reader)
    assert found
    assert reader.card is corpus(name).card
    assert {d.source for d in found} == {name}
    assert {d.labels.get("split") for d in found} - {None} <= set(reader.card.splits)
    assert [Dialogue.model_validate(d.model_dump()) for d in found] == found


@pytest.mark.parametrize("name", PLAIN)
def test_every_corpus_of_the_plain_layout(name: str, tmp_path: Path) -> None:
    path = put_plain(tmp_path, name, ["train", "dev", "val", "validation", "test"])
    found = list(read_corpus(name, root=tmp_path))
    assert [d.labels["split"] for d in found] == ["train", "valid", "valid", "valid", "test"]
    assert [d.labels.get("original_split") for d in found] == [None, "dev", "val", "validation", None]
    assert {d.labels["topic"] for d in found} == {"Travel"}
    assert {d.source for d in found} == {name}
    assert [d.id for d in corpus(name).read(path, "train")] == ["d0"]


@pytest.mark.parametrize("name", corpus_names())
def test_the_counts_of_the_cards(name: str, shared_data: Path) -> None:
    known = corpus(name)
    if not known.card.counts:
        pytest.skip("no copy to count")
    reader = read_corpus(name, root=shared_data)
    splits: Counter[Any] = Counter(d.labels.get("split") for d in reader)
    del splits[None]
    assert {"dialogues": reader.n_dialogues, "turns": reader.n_turns, **splits} == known.card.counts
    base = shared_data / known.folder
    assert {file: sha256_of(base / file) for file in known.card.sha256} == known.card.sha256


# --- where copies are looked for ------------------------------------------------------------------------


def test_the_usual_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, samples: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("PALAVER_DATA", raising=False)
    assert usual_roots() == (tmp_path / "palaver" / "corpora",)
    with pytest.raises(UserError) as found:
        read_corpus("friends")
    assert str(tmp_path) in found.value.message
    assert "palaver corpus get friends" in found.value.hint
    mine = tmp_path / "palaver/corpora/friends/friends_turns.csv"
    mine.parent.mkdir(parents=True)
    mine.write_text("show,season,episode,scene,speaker,text\nx,1,1,1,A,mine\n")
    assert [d.id for d in read_corpus("friends")] == ["x-s01e01-01"]
    monkeypatch.setenv("PALAVER_DATA", str(samples))
    assert read_corpus("friends").path == samples / "scripts/friends_turns.csv"
    assert read_corpus("friends", root=mine.parent).path == mine
    assert read_corpus("friends", root=str(mine)).path == mine
    assert corpus("friends").read(str(mine)).path == mine


def test_a_wrong_name_and_a_wrong_folder(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no corpus 'frends' .did you mean 'friends'"):
        read_corpus("frends")
    with pytest.raises(UserError, match="is not here; looked in"):
        read_corpus("friends", root=tmp_path / "nowhere")
    with pytest.raises(DataError, match="there is no"):
        corpus("friends").read(tmp_path / "nowhere.csv")
    with pytest.raises(DataError, match="does not look like Friends"):
        corpus("friends").read(tmp_path)
    with pytest.raises(UserError, match="is a folder"):
        read_corpus(tmp_path)
    with pytest.raises(DataError, match="there is no file"):
        read_corpus("missing.jsonl")


def test_a_file_by_its_path(tmp_path: Path) -> None:
    said = (Turn(speaker="A", text="x"), Turn(speaker="A", text="y"))
    written = [Dialogue(id=f"d{i}", turns=said, labels={"split": s}) for i, s in enumerate(["train", "dev"])]
    for ending in ("jsonl", "jsonl.gz", "csv", "parquet"):
        path = tmp_path / f"t.{ending}"
        write_dialogues(written, path)
        reader = read_corpus(path, split="validation", merge_turns=True)
        (only,) = reader
        assert only.id == "d1"
        assert only.labels == {"split": "valid", "original_split": "dev"}
        assert [t.text for t in only.turns] == ["x y"]
        assert (reader.n_dialogues, reader.n_turns, reader.n_merged) == (1, 1, 1)
    with pytest.raises(DataError, match="no dialogue of split 'test' in it\nit has: train, valid"):
        list(read_corpus(path, split="test"))
    write_dialogues([Dialogue(id="d", turns=said)], tmp_path / "plain.jsonl")
    with pytest.raises(DataError, match="name no split; leave out"):
        list(read_corpus(tmp_path / "plain.jsonl", split="test"))


def test_a_broken_line_of_the_plain_layout(tmp_path: Path) -> None:
    path = tmp_path / "dream.jsonl"
    path.write_text('{"id": "a", "split": "train", "turns": [{"s": "A", "t": "x"}]}\n{"id": "b", "split"\n')
    with pytest.raises(DataError, match=f"{path}, line 2: "):
        list(read_corpus("dream", root=tmp_path))
    path.write_text('{"id": "a", "split": "train", "turns": [{"s": "", "t": "x"}, {"s": "A"}]}\n')
    with pytest.raises(DataError) as found:
        list(corpus("dream").read(path))
    assert len(found.value.problems) == 2


# --- corpora of others -----------------------------------------------------------------------------------


def test_a_function_of_somebody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "their_corpus.py").write_text(
        "from palaver.corpora.catalogue import Corpus, CorpusCard, Layout\n"
        "from palaver.schema import Dialogue\n"
        "def talks():\n"
        "    for split in ('train', 'test'):\n"
        "        yield Dialogue(id=split, turns=(), labels={'split': split})\n"
        "def read(path, split, tally):\n"
        "    yield Dialogue(id=path.read_text(), turns=())\n"
        "card = CorpusCard(name='theirs', title='', licence='', source='',"
        " redistributable=True, description='')\n"
        "corpus = Corpus(card, (Layout('theirs.txt', read),))\n"
    )
    (tmp_path / "theirs.txt").write_text("x")
    monkeypatch.syspath_prepend(tmp_path)
    assert [d.id for d in read_corpus("their_corpus:talks")] == ["train", "test"]
    assert [d.id for d in read_corpus("their_corpus:talks", split="test")] == ["test"]
    (only,) = read_corpus("their_corpus:corpus", root=tmp_path)
    assert (only.id, only.source) == ("x", "theirs")
    with pytest.raises(UserError, match="has no card"):
        corpus("their_corpus:talks")
    with pytest.raises(UserError, match="no Python module"):
        read_corpus("no_such_module:x")


# --- what is imported -----------------------------------------------------------------------------------

LIGHT = """
import importlib.abc, sys
class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pyarrow", "numpy", "torch"):
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Refuse())
from pathlib import Path
from palaver.corpora.catalogue import corpus_names, read_corpus
from palaver.readers import write_dialogues
import palaver.corpora.download
root = Path(sys.argv[1])
out = Path(sys.argv[2])
for name in corpus_names():
    write_dialogues(read_corpus(name, root=root), out)
    print(name, sum(1 for _ in read_corpus(out)))
"""


def test_corpora_need_neither_numpy_nor_pyarrow(samples: Path, tmp_path: Path) -> None:
    """Also to write and read JSON lines. Only Parquet brings them in."""
    command = [sys.executable, "-c", LIGHT, str(samples), str(tmp_path / "out.jsonl.gz")]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert len(ran.stdout.splitlines()) == len(corpus_names())
