"""From a served collection to a dataset: `palaver collect check`, `stats` and `export` read the database."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palaver.readers import read_dialogues
from palaver.server.database import Database
from palaver.server.migrations import migrate

settings = pytest.importorskip("palaver.collection.settings", reason="there is no chat server here")
chat_log = pytest.importorskip("palaver.server.chat_log")

Palaver = Callable[..., Any]
GRADES = '["Poor", "Not Good", "Passable", "Good", "Excellent"]'
COLLECTION = f"""
name = "small"
[conversation]
fewest_turns = 6
[knowledge]
base = "sample"
[quality.seconds]
review = 5
[[about_own]]
criterion = "sentiment"
text = "How do you feel?"
scale = {{ kind = "choice", options = ["Happy", "Sad"] }}
[[about_own]]
criterion = "knowledge_source"
text = "Where does it come from?"
scale = {{ kind = "checkboxes", exclusive = [], options = ["FS1", "Personal Knowledge"] }}
[[about_partner]]
criterion = "turn_rating"
text = "How good is it?"
scale = {{ kind = "likert", low = 1, high = 5, labels = {GRADES} }}
[[about_whole]]
criterion = "rating"
text = "How good was it?"
scale = {{ kind = "likert", low = 1, high = 5, labels = {GRADES} }}
"""


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    """Two pairs: one submits its conversation, of the other one leaves after a message each."""
    path = tmp_path / "collection.toml"
    path.write_text(COLLECTION)
    database = Database(f"sqlite:///{tmp_path / 'collection.db'}")
    migrate(database)
    chat_log.create_collection(
        database, settings.parse_collection(COLLECTION, path.name), COLLECTION, tmp_path
    )
    clock = Clock()
    log = chat_log.ChatLog(database, clock)

    def do(name: str, *given: Any, **more: Any) -> None:
        clock.now += 3
        [result], _ = log.run([lambda host, now: getattr(host, name)(*given, now=now, **more)])
        if isinstance(result, Exception):
            raise result

    def converse(people: list[str], n_turns: int) -> None:
        for person in people:
            do("join", person)
        for person in people:
            do("say_ready", person)
        for number in range(n_turns):
            speaker = people[number % 2]
            text = f"{speaker} says thing {number} about owls, tea and the number {number * number}."
            for person in people:
                answer(person)
            do("say", speaker, f"{speaker}{number}", text)

    def answer(person: str) -> None:
        for number in log.host.turns_to_answer(person):
            is_own = log.host.lobby.room_of(person).turns[number].by == person
            own = {"sentiment": ["Happy", "Sad"][number // 2 % 2], "knowledge_source": "FS1"}
            do("answer", person, own if is_own else {"turn_rating": "5"}, turn=number)

    converse(["ann", "bob"], 6)
    for person in ("ann", "bob"):
        answer(person)
    do("submit", "ann")
    for person in ("ann", "bob"):
        do("answer", person, {"rating": "5"})
    converse(["cid", "dot"], 2)
    do("leave", "dot")
    do("leave", "cid")
    database.close()
    return path


def test_from_the_server_to_a_dataset(palaver: Palaver, collection: Path, tmp_path: Path) -> None:
    checked = palaver("collect", "check", collection, "--out", tmp_path / "checked")
    assert (checked.code, checked.err) == (0, "")
    assert "conversations: 1 accepted, 0 review, 1 rejected" in checked.out
    with (tmp_path / "checked" / "payout.csv").open() as file:
        due = {row["participant"]: row["due"] for row in csv.DictReader(file)}
    assert due == {"ann": "1.00", "bob": "1.00", "cid": "0.33", "dot": "0.33"}
    [accepted] = read_dialogues(tmp_path / "checked" / "accepted.jsonl")
    assert accepted.labels["participant_agent_1"] in ("ann", "bob")
    counted = json.loads(palaver("collect", "stats", collection, "--json").out)
    assert [size["utterances"] for size in counted["sizes"] if size["configuration"] is None] == [8]
    made = palaver("collect", "export", collection, "--out", tmp_path / "release")
    assert "wrote 1 conversation to" in made.out
    assert "note: left out, incomplete: 1" in made.out
    shown = palaver("collect", "stats", tmp_path / "release")
    assert "utterances              total              6" in shown.out
    palaver("collect", "decide", collection, "1", "reject")
    made = palaver("collect", "export", collection, "--out", tmp_path / "without")
    assert (made.code, "left out, rejected by hand: 1" in made.out + made.err) == (1, True)


def test_what_people_said_is_analysed_without_an_export(
    palaver: Palaver, collection: Path, tmp_path: Path
) -> None:
    for named in (collection, collection.with_suffix(".db")):
        analysed = json.loads(palaver("study", "analyse", named, "--json").out)
        assert [one["criterion"] for one in analysed["criteria"]] == ["turn_rating", "rating"]
    for verb in (["export", "--out", tmp_path / "answers.csv"], ["status"]):
        refused = palaver("study", verb[0], collection, *verb[1:])
        assert (refused.code, refused.out) == (1, "")
        assert "holds a collection of conversations\nhint: try: palaver collect " in refused.err
    said = palaver("collect", "ratings", collection, "--out", tmp_path / "ratings.csv").out
    assert said.endswith(f"next: palaver study analyse {tmp_path / 'ratings.csv'}\n")


def test_collected_conversations_go_into_other_commands(
    palaver: Palaver, collection: Path, tmp_path: Path
) -> None:
    talks, study = tmp_path / "talks.jsonl", tmp_path / "study.toml"
    assert palaver("collect", "conversations", collection, "--out", talks).code == 0
    made = palaver("study", "new", "--from", talks, "--preset", "likert", "--out", study)
    assert (made.code, made.err) == (0, "")
    assert "1 item of 1 system" in made.out


def test_the_owner_decides_by_command(palaver: Palaver, collection: Path, tmp_path: Path) -> None:
    wrong = palaver("collect", "decide", collection, "9", "accept")
    assert (wrong.code, "there is no conversation '9'" in wrong.err) == (1, True)
    assert (
        "took no part in '1'"
        in palaver("collect", "decide", collection, "1", "accept", "--participant", "cid").err
    )
    assert "expected accept or reject" in palaver("collect", "decide", collection, "1", "maybe").err
    made = palaver(
        *("collect", "decide", collection, "1", "reject"),
        *("--participant", "bob", "--reason", "copied it all"),
    )
    assert made.out == "bob in 1: rejected\n"
    out = json.loads(palaver("collect", "check", collection, "--json").out)
    assert out["counts"] == {"accepted": 0, "review": 0, "rejected": 2}
    refused = [line["reason"] for line in out["payments"] if line["participant"] == "bob"]
    assert refused == ["refused: copied it all"]
    palaver("collect", "decide", collection, "1", "accept", "--participant", "bob")
    out = json.loads(palaver("collect", "check", collection, "--json").out)
    assert out["counts"]["accepted"] == 1


def test_people_without_the_qualification_are_looked_at(
    palaver: Palaver, collection: Path, tmp_path: Path
) -> None:
    with collection.open("a", encoding="utf-8") as file:
        file.write("\n[qualification]\napproved = 1000\napproval_rate = 0.99\n")
    workers = tmp_path / "workers.csv"
    workers.write_text("participant,approved,approval_rate\nann,5000,100%\nbob,20,99%\n", encoding="utf-8")
    out = json.loads(palaver("collect", "check", collection, "--qualifications", workers, "--json").out)
    assert out["counts"]["review"] == 1
    assert "bob: approved 20, fewer than 1000" in str(out["conversations"])


def test_a_change_is_taken_over_or_refused(palaver: Palaver, collection: Path) -> None:
    text = collection.read_text(encoding="utf-8")
    assert "nothing has changed" in palaver("collect", "amend", collection).out
    collection.write_text('title = "Owls"\n' + text, encoding="utf-8")
    tried = palaver("collect", "amend", collection, "--dry-run")
    assert tried.out == "  title is changed\nnothing was changed (--dry-run)\n"
    assert palaver("collect", "amend", collection).out == "  title is changed\nOwls is changed\n"
    collection.write_text("seed = 5\n" + text, encoding="utf-8")
    refused = palaver("collect", "amend", collection)
    assert (refused.code, "seed cannot change" in refused.err) == (1, True)
