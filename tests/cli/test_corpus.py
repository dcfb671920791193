"""`palaver corpus list | show | get | convert`."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from palaver.corpora.catalogue import corpus_names, read_corpus
from palaver.readers import read_dialogues

Palaver = Callable[..., Any]

pytestmark = pytest.mark.filterwarnings("error")

SAMPLES = Path(__file__).parent.parent / "data" / "corpora"


@pytest.fixture(autouse=True)
def nothing_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PALAVER_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


# --- list -----------------------------------------------------------------------------------------------


def test_list_names_all_and_where_they_are(palaver: Palaver, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = palaver("corpus", "list")
    assert ran.code == 0
    lines = {line.split()[0]: line for line in ran.out.splitlines()}
    assert set(corpus_names()) <= set(lines)
    assert "61,298" in lines["friends"]
    assert "CDLA-Sharing 1.0" in lines["topical-chat"]
    assert " yes " in lines["self-dialogue"]
    assert " no " in lines["dailydialog"]
    assert lines["friends"].rstrip().endswith("–")
    monkeypatch.setenv("PALAVER_DATA", str(SAMPLES))
    found = palaver("corpus", "list").out
    assert str(SAMPLES) in found.replace("\n", "")
    lines = {line.split()[0]: line.rstrip() for line in found.splitlines()}
    assert lines["friends"].endswith(" scripts")
    assert lines["dream"].endswith(" dream")
    monkeypatch.setenv("COLUMNS", "80")
    assert "commonsense-dialogues" in palaver("corpus", "list").out


def test_list_as_json(palaver: Palaver) -> None:
    found = json.loads(palaver("corpus", "list", "--data", SAMPLES, "--json").out)
    assert found["looked_in"] == [str(SAMPLES)]
    cards = {card["name"]: card for card in found["corpora"]}
    assert set(cards) == set(corpus_names())
    assert (cards["dream"]["present_in"], cards["switchboard"]["licence"] != "") == ("dream", True)


# --- show -----------------------------------------------------------------------------------------------


def test_show_prints_card_dialogues_and_counts(palaver: Palaver) -> None:
    ran = palaver("corpus", "show", "friends", "--data", SAMPLES, "-n", 2)
    assert ran.code == 0
    assert "Friends transcripts" in ran.out
    assert "broadcaster's; research use (not to be passed on" in ran.out
    assert "friends-s01e01-01" in ran.out
    assert "  Bo: It was raining, and yours was dry." in ran.out
    assert "friends-s01e02-01" not in ran.out
    assert "counted: 4 dialogues, 8 turns, 29 words between spaces, 5 speakers" in ran.out
    assert "note: turns without a speaker, called (unknown) here: 1" in ran.out


def test_show_as_json(palaver: Palaver) -> None:
    found = json.loads(palaver("corpus", "show", "friends", "--data", SAMPLES, "-n", 2, "--json").out)
    assert found["card"]["title"] == "Friends transcripts"
    assert found["dialogues"][0]["id"] == "friends-s01e01-01"
    assert found["counts"] == {"dialogues": 4, "turns": 8, "words": 29, "speakers": 5, "splits": {}}
    assert found["notes"] == ["turns without a speaker, called (unknown) here: 1"]
    absent = json.loads(palaver("corpus", "show", "friends", "--json").out)
    assert (absent["file"], absent["card"]) == (None, found["card"])


def test_show_one_split(palaver: Palaver) -> None:
    ran = palaver("corpus", "show", "topical-chat", "--data", SAMPLES, "--split", "valid", "-n", 1)
    assert ran.code == 0
    assert "(valid_freq 1, valid_rare 1)" in ran.out
    wrong = palaver("corpus", "show", "topical-chat", "--data", SAMPLES, "--split", "valid_rar")
    assert wrong.code == 1
    assert "did you mean 'valid_rare'?" in wrong.err


def test_show_without_a_copy_shows_the_card(palaver: Palaver) -> None:
    ran = palaver("corpus", "show", "switchboard")
    assert ran.code == 0
    assert "LDC user agreement" in ran.out
    assert "palaver corpus get switchboard" in ran.out
    nowhere = palaver("corpus", "show", "switchboard", "--data", "nowhere")
    assert nowhere.code == 1
    assert "is not here; looked in nowhere" in nowhere.err


def test_show_a_file_quickly(palaver: Palaver) -> None:
    Path("d.jsonl").write_text(
        '{"id": "a", "turns": [{"s": "[b]X", "t": "[red]hi[/red]"}]}\n'
        '{"id": "b", "turns": [{"s": "Y", "t": "yes"}]}\nbroken\n'
    )
    ran = palaver("corpus", "show", "d.jsonl", "-n", 1, "--no-count")
    assert ran.code == 0
    assert "  [b]X: [red]hi[/red]" in ran.out  # as it stands there
    assert "first dialogues: 1 dialogue, 1 turn, 1 word between spaces, 1 speaker" in ran.out
    whole = palaver("corpus", "show", "d.jsonl")
    assert whole.code == 1
    assert "d.jsonl, line 3" in whole.err


@pytest.mark.parametrize(
    ("name", "said"),
    [("frends", "did you mean 'friends'?"), ("missing.jsonl", "there is no file"), (".", "is a folder")],
)
def test_show_what_is_not_there(name: str, said: str, palaver: Palaver) -> None:
    ran = palaver("corpus", "show", name)
    assert (ran.code, ran.out) == (1, "")
    assert said in ran.err


# --- get ------------------------------------------------------------------------------------------------


def test_get_a_copy_then_show_it(palaver: Palaver) -> None:
    ran = palaver("corpus", "get", "friends", "--from", SAMPLES / "scripts/friends_turns.csv")
    assert ran.code == 0
    assert "Friends transcripts is in " in ran.out
    assert "licence: broadcaster's; research use" in ran.out
    assert "note: 1 of 1 files are not pinned" in ran.out
    assert palaver("corpus", "show", "friends").out.count("friends-s") == 3
    again = palaver("corpus", "get", "friends", "--from", SAMPLES)
    assert again.code == 1
    assert "--force" in again.err
    assert palaver("corpus", "get", "friends", "--from", SAMPLES, "--force").code == 0


def test_get_to_a_folder(palaver: Palaver) -> None:
    ran = palaver("corpus", "get", "sgd", "--from", SAMPLES, "--to", "here")
    assert ran.code == 0
    assert f"next: palaver corpus show sgd --data {Path('here/sgd')}" in ran.out
    assert len(list(read_corpus("sgd", root=Path("here")))) == 2


@pytest.fixture
def address() -> Iterator[str]:
    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args, directory=str(SAMPLES))

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_get_from_an_address(palaver: Palaver, address: str) -> None:
    ran = palaver("corpus", "get", "friends", "--url", f"{address}/scripts/friends_turns.csv")
    assert ran.code == 0
    assert "not pinned, its sha256 is" in ran.out
    missing = palaver("corpus", "get", "bbt", "--url", f"{address}/nowhere.csv")
    assert missing.code == 1
    gone = palaver("corpus", "get", "big-bang-theory", "--url", f"{address}/nowhere.csv")
    assert gone.code == 1
    assert "the server answers 404" in gone.err
    assert "--from" in gone.err


def test_get_what_needs_a_person(palaver: Palaver) -> None:
    ran = palaver("corpus", "get", "opensubtitles")
    assert (ran.code, ran.out) == (1, "")
    assert "visit https://opus.nlpl.eu" in ran.err
    wrong = palaver("corpus", "get", "opensubtitle")
    assert "did you mean 'opensubtitles'?" in wrong.err


# --- convert --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("out", ["o.jsonl", "o.jsonl.gz", "o.csv", "o.parquet"])
@pytest.mark.parametrize("name", ["topical-chat", "switchboard"])
def test_convert_keeps_everything(name: str, out: str, palaver: Palaver) -> None:
    ran = palaver("corpus", "convert", name, out, "--data", SAMPLES)
    assert ran.code == 0
    assert list(read_dialogues(out)) == list(read_corpus(name, root=SAMPLES))
    back = palaver("corpus", "convert", out, "back.jsonl")
    assert back.code == 0
    assert list(read_dialogues("back.jsonl")) == list(read_corpus(name, root=SAMPLES))


def test_convert_a_split_with_merged_turns(palaver: Palaver) -> None:
    ran = palaver(
        "corpus", "convert", "switchboard", "o.jsonl", "--data", SAMPLES, "--split", "train", "--merge-turns"
    )
    assert "wrote 1 dialogues, 2 turns to o.jsonl" in ran.out
    assert "note: turns joined to the one before, of the same speaker: 1" in ran.out
    (only,) = read_dialogues("o.jsonl")
    assert [t.speaker for t in only.turns] == ["A", "B"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("friends", "o.jsonl"), "is not here"),
        (("friends", "o.xyz", "--data", SAMPLES), "cannot tell the format"),
        (("friends", "there.jsonl", "--data", SAMPLES), "is there already"),
        (("friends", "o.jsonl", "--data", SAMPLES, "--split", "train"), "has no splits"),
        (("dream", "o.jsonl", "--data", SAMPLES, "--split", "test"), "no dialogue of split 'test'"),
        (("nothing.jsonl", "o.jsonl"), "there is no file"),
        (("there.jsonl", "./there.jsonl", "--force"), "is the file that is read"),
    ],
)
def test_convert_says_what_is_wrong_and_writes_nothing(
    words: tuple[object, ...], said: str, palaver: Palaver
) -> None:
    Path("there.jsonl").write_text("mine")
    ran = palaver("corpus", "convert", *words)
    assert (ran.code, ran.out) == (2 if said == "is the file that is read" else 1, "")
    assert said in ran.err
    assert Path("there.jsonl").read_text() == "mine"
    assert not Path("o.jsonl").exists()
    if words[1] == "there.jsonl":
        assert palaver("corpus", "convert", *words, "--force").code == 0


@pytest.mark.parametrize("verb", ["list", "show", "get", "convert"])
def test_help_gives_examples(verb: str, palaver: Palaver) -> None:
    ran = palaver("corpus", verb, "--help")
    assert ran.code == 0
    assert f"palaver corpus {verb}" in ran.out.replace("Usage: palaver", "")
