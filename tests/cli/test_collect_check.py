"""`palaver collect check`: from conversations to verdicts, decisions and payments."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palaver.readers import read_dialogues, write_dialogues
from palaver.schema import Dialogue, Turn

Palaver = Callable[..., Any]


def conversation(id: str, n_turns: int, people: tuple[str, str]) -> Dialogue:
    turns = tuple(
        Turn(
            speaker=f"agent_{1 + n % 2}",
            text=f"In {id} I say that {n} old owls <b>saw</b> {n * n} mice.",
            knowledge=(f"FS{1 + n % 3}",),
            labels={"sentiment": ["Happy", "Sad"][n // 4 % 2], "turn_rating": "Excellent"},
        )
        for n in range(n_turns)
    )
    labels = {f"participant_agent_{n}": name for n, name in enumerate(people, start=1)}
    labels |= {"rating_agent_1": "Excellent", "rating_agent_2": "Good"}
    return Dialogue(id=id, turns=turns, labels=labels)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    talks = [("good", 20, ("ann", "bob")), ("short", 14, ("cid", "bob")), ("tiny", 4, ("ann", "dot"))]
    path = tmp_path / "conversations.jsonl"
    write_dialogues([conversation(*talk) for talk in talks], path)
    return path


STANDARDS = """
[pay]
currency = "EUR"
conversation = 3
[bonus]
amount = 1
[quality.repeats]
on = false
[quality.reuse]
on = false
"""


def rows(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def test_check_decide_and_pay_the_rest(palaver: Palaver, file: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(STANDARDS)
    words = ["collect", "check", file, "--standards", tmp_path / "mine.toml"]
    first = palaver(*words, "--out", tmp_path / "first")
    assert (first.code, first.err) == (0, "")
    assert "conversations: 1 accepted, 1 review, 1 rejected" in first.out
    assert (
        "due: 20.00 EUR" in first.out
    )  # six times three, and two for bob, whom his partners found excellent
    assert [d.id for d in read_dialogues(tmp_path / "first" / "accepted.jsonl")] == ["good"]
    assert {row["participant"]: row["due"] for row in rows(tmp_path / "first" / "payout.csv")} == {
        "ann": "6.00",
        "bob": "8.00",
        "cid": "3.00",
        "dot": "3.00",
    }
    assert [row["conversation"] for row in rows(tmp_path / "first" / "bonus.csv")] == ["good", "short"]
    page = (tmp_path / "first" / "report.html").read_text()
    assert "1 of 3 conversations accepted, 1 to be looked at, 1 rejected." in " ".join(page.split())
    assert "owls &lt;b&gt;saw&lt;/b&gt;" in page
    review = tmp_path / "first" / "review.csv"
    decisions = [{**row, "decision": "accept" if row["verdict"] == "review" else ""} for row in rows(review)]
    with review.open("w") as out:
        writer = csv.DictWriter(out, decisions[0])
        writer.writeheader()
        writer.writerows(decisions)
    more = ["--decisions", review, "--paid", tmp_path / "first" / "payments.csv"]
    second = palaver(*words, *more, "--out", tmp_path / "second", "--json")
    result = json.loads(second.out)
    assert result["counts"] == {"accepted": 2, "review": 0, "rejected": 1}
    assert result["due"] == "0"
    assert {payment["status"] for payment in result["payments"]} == {"paid"}
    again = palaver(*words, "--out", tmp_path / "second")
    assert (again.code, "is there already" in again.err) == (1, True)
    assert palaver("collect", "stats", tmp_path / "second" / "accepted.jsonl", "--json").code == 0


@pytest.mark.parametrize(
    ("standards", "said"),
    [
        (
            "[quality.turn]\nreview = 3",
            "line 1: quality.turn: there is no such check (did you mean 'turns'?)",
        ),
        ("[pay]\nconversation = 'much'", "line 2: pay.conversation"),
        ("[pay", "is not valid TOML"),
    ],
)
def test_wrong_standards(palaver: Palaver, file: Path, tmp_path: Path, standards: str, said: str) -> None:
    (tmp_path / "mine.toml").write_text(standards)
    ran = palaver("collect", "check", file, "--standards", tmp_path / "mine.toml", "--out", tmp_path / "out")
    assert (ran.code, ran.out) == (1, "")
    assert said in ran.err
    assert not (tmp_path / "out").exists()


def test_nothing_accepted(palaver: Palaver, tmp_path: Path) -> None:
    write_dialogues([conversation("tiny", 3, ("ann", "bob"))], tmp_path / "c.jsonl")
    ran = palaver("collect", "check", tmp_path / "c.jsonl", "--out", tmp_path / "out")
    assert ran.code == 0
    assert "no conversation was accepted, so there is no accepted.jsonl" in ran.out
    assert not (tmp_path / "out" / "accepted.jsonl").exists()


def test_whose_standards_are_not_named(palaver: Palaver, file: Path, tmp_path: Path) -> None:
    """A collection's conversations leave its collection.toml behind."""
    said = "by the usual standards: --standards collection.toml takes those of a collection"
    assert said in palaver("collect", "check", file).out
    (tmp_path / "collection.toml").write_text(STANDARDS)
    assert said not in palaver("collect", "check", file, "--standards", tmp_path / "collection.toml").out
