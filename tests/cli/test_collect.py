"""`palaver collect` on a real server: as the tutorials say, and what can be typed wrong."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pytest

sys.path.append(str(Path(__file__).parent.parent / "server"))  # tests are no package
from chatting import Guest, is_my_turn, is_talking, meet

from palaver.collection.records import read_conversations
from palaver.comparator.reading import read_rated
from palaver.readers import read_dialogues

Palaver = Callable[..., Any]
ROOT = Path(__file__).parents[2]
SCRIPT = "from palaver.cli.main import run; run()"


@contextmanager
def serving(*words: str, folder: Path) -> Iterator[str]:
    """`palaver collect serve …` until the block ends; the link for people."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, "collect", "serve", *words, "--port", "0", "--no-qr"],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line.startswith("Ctrl+C"):
                break
        link = next((line.split()[2] for line in lines if "for people" in line), "")
        assert link, process.stderr.read() if process.stderr else ""
        _wait_for(link, process)
        yield link.rstrip("/")
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)


def _wait_for(link: str, process: subprocess.Popen[str]) -> None:
    for _ in range(1500):
        try:
            urllib.request.urlopen(f"{link}health", timeout=5).close()
            return
        except OSError:
            assert process.poll() is None
            time.sleep(0.02)
    raise AssertionError("the server did not come up")


def tutorial(name: str) -> list[list[str]]:
    """The `palaver` commands of a tutorial that come after people have talked."""
    text = (ROOT / "docs" / "tutorials" / f"{name}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```([^\n]*)\n(.*?)^```", text, flags=re.M | re.S)
    shown = [block for language, block in blocks if language.startswith("console")]
    lines = [line for block in shown for line in block.splitlines() if line.startswith("palaver ")]
    return [line.split()[1:] for line in lines if " serve " not in line]


def test_collect_conversations_as_the_tutorial_says(tmp_path: Path, palaver: Palaver) -> None:
    file = tmp_path / "collection.toml"
    assert palaver("collect", "new", "--preset", "topical-chat", "--out", file).code == 0
    text = file.read_text(encoding="utf-8")
    assert "fewest_turns = 20" in text
    file.write_text(text.replace("fewest_turns = 20", "fewest_turns = 2"), encoding="utf-8")
    with serving("collection.toml", folder=tmp_path) as url:
        ann, bob = meet(url)
        for number, (speaker, listener) in enumerate(((ann, bob), (bob, ann))):
            answer_all(speaker)
            speaker.wait(is_my_turn)
            assert speaker.say(f"message {number}")["type"] == "done"
            listener.wait(lambda view, number=number: view["n_turns"] > number)
        answer_all(ann)
        answer_all(bob)
        assert ann.ask(type="submit")["type"] == "done"
        for guest in (ann, bob):
            guest.wait(lambda view: view["state"] == "rating")
            guest.ask(type="answer", place="", answers={"rating": "4"})
    known = [words for words in tutorial("collect-conversations") if words[1] != "stats"]
    for words in known:
        ran = palaver(*words)
        assert ran.code == 0, ran.err
    status = json.loads(palaver("collect", "status", file, "--json").out)
    assert (status["conversations"], status["pay"]) == ({"complete": 1}, {"full": 2})
    (dialogue,) = read_dialogues(tmp_path / "dialogues.jsonl")
    assert [turn.labels["sentiment"] for turn in dialogue.turns] == ["Neutral", "Neutral"]
    assert dialogue.labels["rating_agent_2"] == "Good"
    people = [json.loads(line) for line in (tmp_path / "people.jsonl").read_text().splitlines()]
    assert [(person["exit"], person["pay"], person["reason"] != "") for person in people] == [
        ("finished", "full", True)
    ] * 2
    assert palaver("collect", "conversations", file, "--out", "held.jsonl").code == 0
    assert [c.configuration for c in read_conversations(tmp_path / "held.jsonl")] == [
        dialogue.labels["config"]
    ]


def answer_all(guest: Guest) -> None:
    for number in list(guest.view["ask"]):
        own = {"sentiment": "Neutral", "knowledge_source": "Personal Knowledge"}
        for answers in (own, {"turn_rating": "5"}):
            guest.ask(type="answer", turn=number, answers=answers)


def test_let_people_rate_your_bot_as_the_tutorial_says(tmp_path: Path, palaver: Palaver) -> None:
    page = (ROOT / "docs/tutorials/let-people-rate-your-bot.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python bots.py\n(.*?)^```", page, flags=re.M | re.S)
    (tmp_path / "bots.py").write_text(code, encoding="utf-8")
    file = tmp_path / "collection.toml"
    assert palaver("collect", "new", "--preset", "talk-and-rate", "--out", file).code == 0
    text = file.read_text(encoding="utf-8").replace('["default"]', '["bots:echo"]')
    file.write_text(text.replace("fewest_turns = 10", "fewest_turns = 2"), encoding="utf-8")
    with serving("collection.toml", folder=tmp_path) as url:
        for rating in ("2", "5"):
            guest = Guest(url).connect()
            guest.wait(is_talking)
            guest.say("hello")
            guest.wait(lambda view: view["n_turns"] == 2)
            assert guest.said == ["hello", "You said: hello"]
            guest.ask(type="answer", turn=1, answers={"makes_sense": "1"})
            guest.ask(type="submit")
            guest.ask(type="answer", place="", answers={"rating": rating, "would_talk_again": "0"})
            guest.wait(lambda view: view["state"] == "out")
            guest.close()
    for words in tutorial("let-people-rate-your-bot"):
        ran = palaver(*words)
        assert ran.code == 0, ran.err
    table = pl.read_csv(tmp_path / "ratings.csv")
    assert set(table["system"]) == {"bots:echo"}
    assert set(table["kind"]) == {"user"}
    assert sorted(set(table["criterion"])) == ["makes_sense", "rating", "would_talk_again"]
    assert (tmp_path / "results" / "report.html").is_file()
    rated = read_rated(tmp_path / "dialogues.jsonl")
    assert sorted(row.rating or 0 for row in rated.rows) == [2.0, 5.0]
    assert {row.system for row in rated.rows} == {"bots:echo"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("fewest_turns = 10", "fewest_turns = 0"), "line 23: conversation.fewest_turns"),
        (('["default"]', '["defalt"]'), "there is no system 'defalt'"),
        (('["default"]', '["bots:missing"]'), "bots"),
    ],
)
def test_what_is_wrong_is_said_before_anybody_comes(
    change: tuple[str, str], said: str, tmp_path: Path, palaver: Palaver
) -> None:
    file = tmp_path / "collection.toml"
    palaver("collect", "new", "--preset", "talk-and-rate", "--out", file)
    file.write_text(file.read_text(encoding="utf-8").replace(*change), encoding="utf-8")
    ran = palaver("collect", "serve", file, "--port", "0")
    assert ran.code == 1
    assert said in ran.err


def test_there_is_nothing_to_write_before_anybody_came(tmp_path: Path, palaver: Palaver) -> None:
    file = tmp_path / "collection.toml"
    palaver("collect", "new", "--out", file)
    assert palaver("collect", "new", "--out", file).code == 1  # it is there
    ran = palaver("collect", "status", file)
    assert "there is no database" in ran.err
    from palaver.collection.settings import load_collection
    from palaver.server.chat_log import create_collection
    from palaver.server.database import Database
    from palaver.server.migrations import migrate

    database = Database(f"sqlite:///{tmp_path / 'collection.db'}")
    migrate(database)
    create_collection(database, load_collection(file), file.read_text(encoding="utf-8"), tmp_path)
    database.close()
    assert "0 conversations: none" in palaver("collect", "status", file).out
    for words, why in (
        (("conversations", file, "--out", "a.jsonl"), "there is no complete conversation yet"),
        (("conversations", file, "--people", "--out", "a.jsonl"), "nobody has come in yet"),
        (("ratings", file, "--out", "a.csv"), "nobody has rated anything yet"),
    ):
        ran = palaver("collect", *words)
        assert (ran.code, why in ran.err) == (1, True)
