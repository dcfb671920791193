"""Written replies: how a file of exchanges is read, and which reply is chosen."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from palaver.errors import DataError
from palaver.generation.conversation import Conversation
from palaver.generation.written import ANY, SHIPPED, WrittenSystem, parse_exchanges, read_exchanges
from palaver.models.encoders import Encoder
from palaver.schema import Dialogue, Request, Turn

TEXT = """
# a comment
= bad
> I lost my job.
> My job is gone.
< I'm sorry. What happened?
< That is hard. How are you?
>> nobody knows why
<< Then it is even harder.
= joke
> Tell me a joke.
< One.
< Two.
>> another joke
<< Here: ^
= fact
> What is the capital of France?
< Paris.
= self
> Do you like him?
< She is nice.
= good
> The job is mine!
< Congratulations!
= bad
> *
< Oh dear.
~ sad
= good
> *
< How nice!
~ glad
= plain
> *
< I see.
< Go on.
= fact
> *
< I don't know that.
"""


def encode(texts: list[str]) -> np.ndarray:
    """Words as vectors: what shares words is near. Hashes differ between processes, so letters are summed."""
    vectors = np.zeros((len(texts), 512), dtype=np.float32)
    for row, text in enumerate(texts):
        for word in re.findall(r"[a-z]+", text.lower()):
            vectors[row, sum(ord(c) * 31**i for i, c in enumerate(word)) % 512] += 1
    return vectors


ENCODER = Encoder("words", "", "for a test", encode)


@pytest.fixture(scope="module")
def system() -> WrittenSystem:
    return WrittenSystem("written", parse_exchanges(TEXT, "test"), ENCODER, near=0.55)


def talk(system: WrittenSystem, *lines: str) -> list[str]:
    conversation = Conversation([system])
    return [conversation.say(line)[0].reply.text for line in lines]


def test_the_nearest_line_and_what_follows_it(system: WrittenSystem) -> None:
    first, second = talk(system, "I lost my job", "Nobody knows why.")
    assert first in ("I'm sorry. What happened?", "That is hard. How are you?")
    assert second == "Then it is even harder."
    assert talk(system, "Nobody knows why.")[0] in ("I see.", "Go on.")


def test_nothing_is_said_twice(system: WrittenSystem) -> None:
    replies = talk(system, "Tell me a joke", "another joke", "another joke", "Tell me a joke")
    assert {replies[0], replies[1].removeprefix("Here: ")} == {"One.", "Two."}
    assert replies[1].startswith("Here: ")
    assert {replies[2], replies[3]} == {"I see.", "Go on."}


def test_a_fact_is_told_only_where_every_word_is_the_same(system: WrittenSystem) -> None:
    assert talk(system, "What is the capital of France?") == ["Paris."]
    assert talk(system, "What is the capital of Spain?") == ["I don't know that."]


def test_words_speak_for_a_kind_and_against_its_opposite(system: WrittenSystem) -> None:
    assert talk(system, "The job is mine!") == ["Congratulations!"]
    assert talk(system, "The job is mine, sad to say!") == ["Oh dear."]
    assert talk(system, "So glad today.") == ["How nice!"]


def test_nobody_is_spoken_of_who_was_not_named(system: WrittenSystem) -> None:
    assert talk(system, "Do you like him?") == ["I don't know that."]
    assert talk(system, "My sister is here.", "Do you like him?")[1] == "She is nice."


def test_a_greeting_before_it_and_a_question_after_it(system: WrittenSystem) -> None:
    assert talk(system, "Hello there, tell me a joke.")[0] in ("One.", "Two.")
    assert talk(system, "I was on holiday there. What is the capital of France?") == ["Paris."]


def test_replies_do_not_depend_on_those_beside_them(system: WrittenSystem) -> None:
    requests = [
        Request(Dialogue(id=str(n), turns=(Turn(speaker="you", text=text),)))
        for n, text in enumerate(["I lost my job", "So glad today.", "Tell me a joke"])
    ]
    assert system.reply(requests) == [system.reply([request])[0] for request in requests]


def test_without_general_replies_the_nearest_is_said() -> None:
    system = WrittenSystem(
        "w", parse_exchanges("> Hello.\n< Hi!\n> Bye.\n< See you.\n", "t"), ENCODER, near=0.9
    )
    assert talk(system, "hello my friend") == ["Hi!"]


def test_mistakes_are_told_with_their_lines() -> None:
    with pytest.raises(DataError) as caught:
        parse_exchanges("< Hi!\n> Hello.\n? what\n<< no\n", "mine.txt")
    assert [problem.split(":")[0] for problem in caught.value.problems] == [
        "line 1",
        "line 3",
        "line 4",
        "'Hello.' has no reply",
    ]


def test_files_as_people_have_them(tmp_path: Path) -> None:
    file = tmp_path / "mine.txt"
    file.write_bytes("> Café?\r\n< Très bon.\r\n".encode("cp1252"))
    (one,) = read_exchanges([file])
    assert (one.lines, one.replies) == (["Café?"], ["Très bon."])
    file.write_text("> *\n< I see.\n")
    with pytest.raises(DataError, match="no exchanges to choose from"):
        read_exchanges([file])


def test_vectors_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    calls: list[int] = []

    def counted(texts: list[str]) -> Any:
        calls.append(len(texts))
        return encode(texts)

    exchanges = parse_exchanges(TEXT, "test")
    encoder = Encoder("words", "signed", "for a test", counted)
    first, second = (WrittenSystem("w", exchanges, encoder, near=0.55) for _ in range(2))
    assert len(calls) == 1
    assert first.settings == second.settings
    (kept,) = tmp_path.rglob("*.npy")
    kept.write_bytes(kept.read_bytes()[:99])  # cut short
    WrittenSystem("w", exchanges, encoder, near=0.55)
    assert len(calls) == 2


def test_what_is_shipped() -> None:
    exchanges = read_exchanges(sorted(SHIPPED.glob("*.txt")))
    general = {one.kind for one in exchanges if one.lines == [ANY]}
    assert {"bad", "good", "plain", "fact", "advice", "request"} <= general
    assert sum(path.stat().st_size for path in SHIPPED.glob("*.txt")) < 600_000
    for one in exchanges:
        for reply in [*one.replies, *(text for child in one.follow_ups for text in child.replies)]:
            assert len(reply.split()) <= 60, reply
            assert not re.search(
                r"\b(my (wife|husband|mother|childhood)|when i was (young|a child))\b", reply, re.I
            )


def test_no_written_line_is_a_held_out_prompt() -> None:
    """Those who wrote the lines had read the prompts; nothing may be taken over."""

    def trigrams(text: str) -> set[str]:
        spelled = f" {re.sub(r'[^a-z0-9 ]', '', text.lower())} "
        return {spelled[i : i + 3] for i in range(len(spelled) - 2)}

    file = Path(__file__).parents[2] / "experiments/responders/everyday-prompts.jsonl"
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    exchanges = read_exchanges(sorted(SHIPPED.glob("*.txt")))
    written = [trigrams(line) for one in exchanges for part in (one, *one.follow_ups) for line in part.lines]
    for prompt in (line for row in rows if row["part"] == "held-out" for line in row["lines"]):
        own = trigrams(prompt)
        assert max(len(own & other) / len(own | other) for other in written) < 0.7, prompt


def test_an_exchange_is_as_near_as_its_two_nearest_lines(system: WrittenSystem) -> None:
    text = "I lost my job"
    vector = system._encode([text])[0]
    expected = []
    for exchange in (one for one in parse_exchanges(TEXT, "test") if one.lines != [ANY]):
        asks = [0.1 * ("?" in line) for line in exchange.lines]
        cosines = sorted(system._encode(exchange.lines) @ vector - asks, reverse=True)
        second = cosines[1] if len(cosines) > 1 else cosines[0] - 0.15
        expected.append((0.65 * cosines[0] + 0.35 * second, exchange.lines[0]))
    found = [(nearness, exchange.lines[0]) for nearness, exchange in system._line(text, vector).nearest]
    assert [line for _, line in found] == [line for _, line in sorted(expected, key=lambda one: -one[0])]
    assert [nearness for nearness, _ in found] == pytest.approx(
        sorted((n for n, _ in expected), reverse=True)
    )
