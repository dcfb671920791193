"""Checks, thresholds and verdicts; what a person decides."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palaver.collection.labels import as_conversation
from palaver.collection.measures import MEASURES, Side, sides_of
from palaver.collection.quality import Checker, Quality, check_quality, decide
from palaver.collection.records import Conversation, Participant, Person
from palaver.collection.review import read_decisions, write_review
from palaver.collection.standards import Check, Qualification, Standards, default_checks, read_standards
from palaver.errors import ConfigError, DataError, UserError
from palaver.schema import Dialogue, Turn

Talk = Callable[..., Dialogue]
TEXTS = [
    "What do you know about the owl, my friend?",
    "It hunts by night and hears very well indeed.",
    "Have you ever seen one near your own house?",
    "Once, on the roof of the old barn outside.",
    "They say that its feathers make no sound at all.",
    "That is why the mice never hear it coming.",
    "Do you think that they are as wise as stories tell?",
    "No, a crow would beat every one of them at chess.",
    "I would pay quite some money to watch that game.",
    "The crow would steal the money, and the board too.",
]
ANNOTATIONS = [
    {"sentiment": ["Happy", "Neutral", "Sad"][n // 2 % 3], "turn_rating": "Good"} for n in range(20)
]
SOURCES = [("FS1",), ("AS1", "Personal Knowledge"), ("Personal Knowledge",)] * 7


@pytest.fixture
def good(talk: Talk) -> Callable[..., Dialogue]:
    def make(id: str = "c1", texts: list[str] | None = None, **more: Any) -> Dialogue:
        fields = {"turn_labels": ANNOTATIONS, "knowledge": SOURCES, **more}
        return talk(id, texts or TEXTS + [f"{text} Number {n}." for n, text in enumerate(TEXTS)], **fields)

    return make


NO_REPEATS = Standards(
    quality={**default_checks(), "repeats": default_checks()["repeats"].model_copy(update={"on": False})}
)


def verdicts(quality: Quality) -> list[tuple[str, tuple[str, ...]]]:
    return [(result.verdict, result.reasons) for result in quality.results]


def first_side(dialogue: Dialogue) -> Side:
    return sides_of([as_conversation(dialogue)])[0][0]


def test_a_good_conversation_is_accepted(good: Talk) -> None:
    quality = check_quality([as_conversation(good())], NO_REPEATS)
    assert verdicts(quality) == [("accepted", ())]
    assert quality.results[0].score == 1
    assert quality.counts == {"accepted": 1, "review": 0, "rejected": 0}
    assert quality.notes == ("there was nothing to measure: reuse, seconds",)
    assert "1 accepted, 0 review, 0 rejected" in repr(quality)


def test_sides_too_short_to_judge_are_counted(good: Talk) -> None:
    talk = good()
    brief = talk.model_copy(update={"turns": talk.turns[:7]})
    *_, note = check_quality([as_conversation(brief)], NO_REPEATS).notes
    assert note == "not judged by most checks, fewer than 4 messages: 1 side"


@pytest.mark.parametrize(
    ("change", "measure", "value"),
    [
        ({"texts": TEXTS[:8]}, "turns", 8),
        ({"texts": ["Yes.", "No."] * 5}, "length", 1),
        ({"texts": TEXTS + [text.upper() for text in TEXTS]}, "repeats", 0.5),
        ({"texts": [TEXTS[0]] * 10}, "repeats", 0.8),
        ({"texts": ["Owl is a thing of nature, as far as I know, so says the book."] * 10}, "copied", 0),
        ({"knowledge": [("Personal Knowledge",)] * 20}, "sources", 0),
        ({"knowledge": [("FS1",), (), (), (), ()] * 4}, "sources", 0.2),
        ({"knowledge": [], "turn_labels": [{"sentiment": "Sad"}] * 5}, "annotated", 0.3),
        ({"turn_labels": [{"sentiment": "Happy"}] * 20, "knowledge": [("FS1",)] * 20}, "straight_lining", 1),
        ({"texts": [*TEXTS[:8], "What the fuck do you mean by that?", TEXTS[9]]}, "profanity", 0.2),
        ({"turn_labels": [{"seconds": n} for n in (1, 9, 3, 9, 5, 9, 7, 9)]}, "seconds", 4),
        ({"texts": ["Ich weiß nicht, was das alles hier soll."] * 8}, "language", 1),
        ({"texts": ["12345678"] * 8, "turn_labels": [{"pasted": 8}, {}, {"pasted": 900}, {}]}, "pasted", 0.5),
        (
            {"turn_labels": [{"turn_rating": grade} for grade in ["Poor", "x", "excellent", "x"] * 3]},
            "partner",
            3,
        ),
    ],
)
def test_what_is_measured(good: Talk, change: dict[str, Any], measure: str, value: float) -> None:
    assert MEASURES[measure](first_side(good(**change))) == pytest.approx(value)


def test_copied_words_are_those_in_long_runs(talk: Talk) -> None:
    lead = "Owl is a thing of nature."  # of the reading set; six words are no run
    assert MEASURES["copied"](first_side(talk(texts=[lead] * 8))) == 0
    copied = talk(texts=["x"] * 8)
    assert copied.knowledge is not None
    first, second = copied.knowledge
    section = first.sections[0].model_copy(
        update={"lead": "One two three four five six seven eight nine ten."}
    )
    knowledge = (first.model_copy(update={"sections": (section,)}), second)
    texts = ["Well: ONE two, three four five six seven eight!", "a", "b c d", "b", "b", "b", "b", "b"]
    turns = [Turn(speaker=f"agent_{1 + n % 2}", text=text) for n, text in enumerate(texts)]
    copied = copied.model_copy(update={"knowledge": knowledge, "turns": tuple(turns)})
    assert MEASURES["copied"](first_side(copied)) == pytest.approx(8 / 14)


def test_what_is_missing_is_not_measured(talk: Talk) -> None:
    plain = Dialogue(
        id="d", turns=tuple(Turn(speaker="ab"[n % 2], text=text) for n, text in enumerate(TEXTS))
    )
    side = first_side(plain)
    missing = {name for name, measure in MEASURES.items() if measure(side) is None}
    assert missing == {"reuse", "copied", "sources", "straight_lining", "seconds", "pasted", "partner"}
    quality = check_quality([as_conversation(plain)])
    assert (
        "nobody annotated anything, so these were not checked: sources, annotated, straight_lining"
        in quality.notes
    )
    assert verdicts(quality) == [("review", ("turns 10",))]


def test_one_bad_side_does_not_spoil_the_other(good: Talk) -> None:
    texts = [text if n % 2 else "Ok." for n, text in enumerate(TEXTS * 2)]
    dialogue = good(texts=texts, participant_agent_1="lazy", participant_agent_2="keen")
    [result] = check_quality([as_conversation(dialogue)], NO_REPEATS).results
    lazy, keen = result.sides
    assert (lazy.participant, lazy.verdict, keen.participant, keen.verdict) == (
        *("lazy", "rejected"),
        *("keen", "accepted"),
    )
    assert result.verdict == "rejected"
    assert result.reasons == ("lazy: length 1.000",)
    assert lazy.score < keen.score == 1


def test_messages_of_earlier_conversations_are_remembered(good: Talk) -> None:
    people = {"participant_agent_1": "ann", "participant_agent_2": "bob"}
    other = [f"Another thing that nobody has said so far is {n} {n}{n} {n}{n}{n}." for n in range(20)]
    mixed = [TEXTS[n] if n % 2 == 0 and n < 10 else text for n, text in enumerate(other)]
    quality = check_quality(
        [as_conversation(good("1", **people)), as_conversation(good("2", mixed, **people))], NO_REPEATS
    )
    ann, bob = quality.results[1].sides
    assert ann.reasons == ("reuse 0.500",)
    assert bob.reasons == ()


def test_seats_that_changed_hands(good: Talk) -> None:
    people = (
        Participant(id="ann", seat="agent_1", n_turns=3, exit="left"),
        Participant(id="bob", seat="agent_2", n_turns=10, exit="finished"),
        Participant(id="cid", seat="agent_1", first_turn=6, n_turns=7, exit="finished"),
        Participant(id="echo", seat="agent_2", is_bot=True, first_turn=20),
    )
    held = Conversation(id="c", dialogue=good(), participants=people, ending="complete", began_at=0)
    [sides] = sides_of([held])
    assert [(side.name, len(side.turns)) for side in sides] == [("ann", 3), ("cid", 7), ("bob", 10)]
    assert sides[1].turns[0].text == TEXTS[6]


def test_a_seat_that_the_dialogue_does_not_know(good: Talk) -> None:
    people = (Participant(id="ann", seat="agent_9", n_turns=3),)
    held = Conversation(id="c", dialogue=good(), participants=people, ending="complete", began_at=0)
    [result] = check_quality([held], NO_REPEATS).results
    assert [(side.participant, side.n_turns) for side in result.sides] == [
        ("agent_1", 10),
        ("agent_2", 10),
        ("ann", 0),
    ]


def test_endings_and_silence(talk: Talk, good: Talk) -> None:
    def held(id: str, dialogue: Dialogue, ending: Any) -> Conversation:
        return Conversation(id=id, dialogue=dialogue, participants=(), ending=ending, began_at=0)

    alone = Dialogue(id="x", turns=(Turn(speaker="a", text="Hello?"),))
    quality = check_quality(
        [
            held("1", good(), "incomplete"),
            held("2", good(), "failed"),
            held("3", good(), "open"),
            held("4", alone, "complete"),
            held("5", talk(texts=[]), "complete"),
        ],
        NO_REPEATS,
    )
    assert [(r.conversation, r.verdict, r.reasons[0]) for r in quality.results] == [
        ("1", "rejected", "not completed"),
        ("2", "rejected", "the bot failed"),
        ("4", "rejected", "one side alone speaks"),
        ("5", "rejected", "nothing was said"),
    ]
    assert quality.notes[0] == "not looked at, still open: 1"
    with pytest.raises(UserError, match="the same id"):
        check_quality([held("1", good(), "complete"), held("1", good(), "complete")])


def test_qualification(good: Talk) -> None:
    paper = Qualification(approved=1000, approval_rate=0.99)
    assert paper.fault({"approved": 1000, "approval_rate": 0.99}) == ""
    assert paper.fault({"approved": 12, "approval_rate": 1}) == "approved 12, fewer than 1000"
    assert paper.fault({"approved": 5000}) == "approval rate not known"
    assert Qualification().fault({}) == ""
    people = [Person(id="ann", entered_at=0), Person(id="bob", entered_at=0)]
    standards = NO_REPEATS.model_copy(update={"qualification": paper})
    dialogue = good(participant_agent_1="ann")
    [result] = check_quality([as_conversation(dialogue)], standards, people).results
    assert (result.verdict, result.reasons) == ("review", ("ann: approved not known",))


def test_scores_lie_between_the_thresholds() -> None:
    low = Check(says="", bad="low", review=20, reject=10)
    assert [low.score(value) for value in (25, 20, 15, 10, 3)] == [1, 1, 0.5, 0, 0]
    high = Check(says="", bad="high", review=0.2, reject=0.6)
    assert [round(high.score(value), 6) for value in (0, 0.2, 0.3, 0.6, 1)] == [1, 1, 0.75, 0, 0]
    assert Check(says="", bad="low", review=1).score(0) == 0.5
    assert Check(says="", bad="low", review=1, reject=1).score(0) == 0


def test_every_check_has_a_measure() -> None:
    assert default_checks().keys() == MEASURES.keys()
    assert [name for name, check in default_checks().items() if not check.on] == ["pasted"]


def test_standards_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "collection.toml"
    path.write_text(
        'title = "x"\n[quality.turns]\nreview = 12\n[quality.pasted]\non = true\n[pay]\nconversation = 2.5\n'
    )
    standards = read_standards(path)
    assert (standards.quality["turns"].review, standards.quality["turns"].reject) == (12, 10)
    assert standards.quality["pasted"].on
    assert str(standards.pay.conversation) == "2.5"
    path.write_text("a = 1")
    assert read_standards(path) == Standards()
    path.write_text("[conversation]\nfewest_turns = 6\n[quality.turns]\nreject = 2")
    turns = read_standards(path).quality["turns"]
    assert (turns.review, turns.reject) == (6, 2)
    path.write_text('[partners]\ncompare = "side by side"\n[conversation]\nfewest_turns = 3')
    turns = read_standards(path).quality["turns"]
    assert (turns.review, turns.reject) == (2, 1)  # one message and two replies are two turns with each bot


def test_every_mistake_of_a_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "collection.toml"
    path.write_text(
        "[quality.turn]\nreview = 1\n[quality.length]\nreject = 9\nsays = 'x'\n[quality.copied]\nrewiev = 1\n"
        "[pay]\nconversation = -1\n[qualification]\naproved = 3\n"
    )
    with pytest.raises(ConfigError) as error:
        read_standards(path)
    assert list(error.value.problems) == [
        "line 1: quality.turn: there is no such check (did you mean 'turns'?)",
        "line 3: quality.length: reject (9) must not be better than review; expected it below",
        "line 5: quality.length.says: cannot be changed",
        "line 7: quality.copied.rewiev: there is no such field (did you mean 'review'?)",
        "line 9: pay.conversation: expected at least 0, found -1",
        "line 11: qualification.aproved: there is no such field (did you mean 'approved'?)",
    ]
    path.write_text("quality = 3")
    with pytest.raises(ConfigError, match=r"expected tables such as \[quality.turns\]"):
        read_standards(path)


@pytest.fixture
def doubtful(good: Talk) -> Quality:
    lazy = good(
        "lazy", [text if n % 2 else "Ok." for n, text in enumerate(TEXTS * 2)], participant_agent_1="ann"
    )
    short = good("short", TEXTS, participant_agent_1="bob")
    return check_quality([as_conversation(d) for d in (lazy, short)], NO_REPEATS)


def decided(path: Path, quality: Quality, decisions: dict[tuple[str, str], str]) -> Quality:
    """As an owner does it: the list is written, edited and read."""
    write_review(quality, path)
    with path.open() as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row["decision"] = decisions.get((row["conversation"], row["participant"]), "")
    with path.open("w") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return decide(quality, read_decisions(path, quality))


def test_a_person_decides(doubtful: Quality, tmp_path: Path) -> None:
    path = tmp_path / "review.csv"
    assert [result.verdict for result in doubtful.results] == ["rejected", "review"]
    assert decided(path, doubtful, {}) == doubtful
    side = decided(path, doubtful, {("lazy", "ann"): " Accept ", ("short", ""): "reject"})
    assert [result.verdict for result in side.results] == ["accepted", "rejected"]
    assert [s.verdict for s in side.results[1].sides] == ["accepted", "accepted"]  # and are paid
    whole = decided(path, doubtful, {("lazy", ""): "accepted"})
    assert (whole.results[0].verdict, whole.results[0].sides[0].verdict) == ("accepted", "rejected")
    one_side = decided(path, doubtful, {("short", "bob"): "accept"})
    assert one_side.results[1].verdict == "review"  # it is still too short


def test_decisions_that_cannot_be_followed(doubtful: Quality, tmp_path: Path) -> None:
    path = tmp_path / "review.csv"
    path.write_text(
        "conversation,participant,decision\nlazy,ann,perhaps\nlasy,,accept\nlazy,zoe,reject\nshort,,accept\nshort,,reject\n"
    )
    with pytest.raises(DataError) as error:
        read_decisions(path, doubtful)
    assert list(error.value.problems) == [
        "row 2: decision: expected accept or reject, found 'perhaps'",
        "row 3: there is no conversation 'lasy' (did you mean 'lazy'?)",
        "row 4: 'zoe' took no part in 'lazy'",
        "row 6: another row decides otherwise",
    ]
    path.write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match="not a list of decisions"):
        read_decisions(path, doubtful)


def test_on_the_release_few_are_doubted(valid_rare: list[Dialogue]) -> None:
    """The authors accepted all of these."""
    quality = check_quality([as_conversation(dialogue) for dialogue in valid_rare[:150]])
    assert quality.counts["rejected"] == 0
    assert quality.counts["review"] < 15


def test_conversations_that_are_checked_one_after_the_other_get_the_same_verdicts(good: Talk) -> None:
    people = {"participant_agent_1": "ann", "participant_agent_2": "bob"}
    talks = [
        good("c1", **people),
        good("c2", **people),
        good("c3", **{**people, "participant_agent_1": "cid"}),
    ]
    held = [as_conversation(talk) for talk in talks]
    checker = Checker()
    for n in range(1, 4):
        quality = checker.check(held[:n], NO_REPEATS)
    assert quality.results == check_quality(held, NO_REPEATS).results
    assert quality.counts == {"accepted": 1, "review": 0, "rejected": 2}  # the same messages again
    strict = Standards(quality={"turns": Check(says="turns", bad="low", review=99)})
    assert checker.check(held, strict).counts == {"accepted": 0, "review": 3, "rejected": 0}
