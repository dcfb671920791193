"""The form of the audit set, and how a judge is measured on it. What a judge reaches is not tested."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from palaver.errors import UserError
from palaver.judges.audit import KINDS, AuditPair, Part, audit, read_audit_pairs
from palaver.schema import Criterion, Dialogue, Rating, Response
from palaver.schema.scale import Real

PARTS: tuple[Part, ...] = ("open", "held out", "second")
PAIRS = [pair for part in PARTS for pair in read_audit_pairs(part)]
EQUAL = {"language", "spelling"}


def of_kind(kind: str) -> list[AuditPair]:
    return [pair for pair in PAIRS if pair.kind == kind]


def said(dialogue: Dialogue) -> int:
    return sum(len(turn.text) for turn in dialogue.turns if turn.speaker == "system")


def test_counts() -> None:
    assert len(PAIRS) >= 300
    assert len(KINDS) >= 12
    assert {pair.kind for pair in PAIRS} == set(KINDS)
    assert len({pair.id for pair in PAIRS}) == len(PAIRS)
    for kind in KINDS:
        pairs = of_kind(kind)
        assert len(pairs) >= 25
        assert Counter(pair.part for pair in pairs) == dict.fromkeys(PARTS, 13)
        assert len({pair.domain for pair in pairs}) >= 15
    texts = Counter(tuple(turn.text for turn in side.turns) for pair in PAIRS for side in (pair.a, pair.b))
    assert max(texts.values()) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_the_two_dialogues_differ_in_one_thing(kind: str) -> None:
    for pair in of_kind(kind):
        speakers = [turn.speaker for turn in pair.a.turns]
        assert speakers == [turn.speaker for turn in pair.b.turns]
        assert speakers == ["user", "system"] * (len(speakers) // 2) + ["user"] * (len(speakers) % 2)
        differ = [
            i for i, turns in enumerate(zip(pair.a.turns, pair.b.turns, strict=True)) if turns[0] != turns[1]
        ]
        last = max(i for i, speaker in enumerate(speakers) if speaker == "system")
        if kind == "language":
            assert differ == list(range(len(speakers))), pair.id
        elif kind == "praise":  # what the system says, and how the user takes it
            assert differ == [last, last + 1], pair.id
        else:
            assert differ == [last], pair.id
        assert (pair.better == "equal") is (kind in EQUAL)


@pytest.mark.parametrize("kind", sorted(set(KINDS) - EQUAL))
def test_neither_the_side_nor_the_length_gives_it_away(kind: str) -> None:
    pairs = of_kind(kind)
    assert 0.4 <= sum(pair.better == "a" for pair in pairs) / len(pairs) <= 0.6
    sides = [(pair.a, pair.b) if pair.better == "a" else (pair.b, pair.a) for pair in pairs]
    longer = sum((said(good) > said(bad)) + (said(good) == said(bad)) / 2 for good, bad in sides) / len(sides)
    expected = {"length": (0, 0), "silence": (1, 1)}.get(kind, (0.3, 0.7))
    assert expected[0] <= longer <= expected[1]
    for part in PARTS:
        assert {pair.better for pair in pairs if pair.part == part} == {"a", "b"}


def knows(response: Response) -> float:
    """The answers, by heart."""
    pair = next(pair for pair in PAIRS if response.id.startswith(f"{pair.id}/"))
    return float(pair.better == response.system)


def knows_nothing(response: Response) -> float:
    return 1.0


def test_a_judge_that_knows_and_one_that_does_not() -> None:
    perfect = audit(knows)
    assert perfect.overall.accuracy == 1
    assert perfect.overall.n == len(PAIRS) / 3
    assert perfect.judge == "knows"
    assert len(perfect.pairs) == perfect.overall.n
    ignorant = {row.kind: row.accuracy for row in audit(knows_nothing).kinds}
    assert ignorant == {kind: 1.0 if kind in EQUAL else 0.5 for kind in KINDS}
    assert perfect.to_polars()["accuracy"].to_list() == [1.0] * (len(KINDS) + 1)


@pytest.mark.parametrize("part", PARTS[1:])
def test_a_part_held_out_shows_no_pair(part: Part) -> None:
    result = audit(knows, part=part)
    assert result.part == part
    assert result.pairs == ()
    assert result.overall.accuracy == 1
    assert result.run.signature != audit(knows).run.signature


def test_what_is_not_rated_is_wrong() -> None:
    result = audit(lambda response: knows(response) if response.response else None)
    silence = next(row for row in result.kinds if row.kind == "silence")
    assert silence.accuracy == 0
    assert silence.n_unrated == silence.n
    assert any("count as wrong" in note for note in result.notes)


class Lower:
    """A judge of dialogues whose lower end is better."""

    name = "lower"
    kind = "model"
    looks_at = frozenset({"dialogues"})
    needs: frozenset[Any] = frozenset()
    criteria = (Criterion(name="errors", scale=Real(), better="lower"),)
    signature = "lower"

    def judge(self, batch: Sequence[Dialogue]) -> Iterator[Rating]:
        for dialogue in batch:
            system = str(dialogue.labels["system"])
            response = Response(id=dialogue.id, system=system, response="")
            yield Rating(
                item=dialogue.id, system=system, rater="lower", criterion="errors", value=-knows(response),
                kind="model", signature="lower",
            )  # fmt: skip


def test_a_judge_of_dialogues_and_the_direction_of_its_scale() -> None:
    assert audit(Lower()).overall.accuracy == 1  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("judge", "message"),
    [
        ("unigram_f1", "needs references"),
        ("personality", "which of two dialogues is better"),
        ("user", "rated none"),
        ("comparater", "no judge 'comparater'"),
    ],
)
def test_judges_that_cannot_be_audited(judge: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        audit(judge)
