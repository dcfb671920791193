"""The whole protocol on characters whose truth is known."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from palaver.errors import DataError, UserError
from palaver.personality.plan import Settings
from palaver.personality.pools import Pools
from palaver.personality.protocol import run_protocol
from palaver.personality.results import Distinguishability
from palaver.personality.samples import TextVectors

SMALL = Settings(samples=30, size=25, repetitions=3, replicates=12, ocean_samples=10)


def f1(found: Distinguishability, name: str) -> float:
    condition = found.condition(name)
    assert condition is not None
    return condition.f1


def run(known: SimpleNamespace, likes: list[int | None], **more: float) -> Distinguishability:
    return run_protocol(known.pools(likes, n=200, n_groups=40, **more), SMALL)


def test_clearly_different_characters(known: SimpleNamespace) -> None:
    found = run(known, [0, 1, 2])
    assert f1(found, "characters") > 0.95
    assert f1(found, "characters by group") > 0.95
    assert f1(found, "words") > 0.95
    assert abs(f1(found, "shuffled labels") - 1 / 3) < 0.2
    assert f1(found, "pseudo-characters") < 0.75  # of one pool: not chance, but nothing like the characters
    assert abs(f1(found, "pseudo-characters by group") - 1 / 3) < 0.2
    verdict = found.verdict
    assert verdict.answer == "yes"
    assert 0 < verdict.low <= verdict.difference <= verdict.high
    assert verdict.difference == pytest.approx(
        f1(found, "characters by group") - f1(found, "pseudo-characters by group")
    )
    assert verdict.text.startswith("Distinguishable beyond chance resampling: yes. On scenes ")
    assert verdict.n_replicates == 12
    for i, who in enumerate(found.characters):  # the favourite word is the highest trait
        assert int(np.argmax(who.ocean)) == i
        assert who.n_utterances == 200
        assert 35 <= who.n_groups <= 40
        assert all(1 <= value <= 7 for value in who.ocean)
    tests = {(row.a, row.b): row.test for row in found.tests}
    assert tests["characters", "pseudo-characters"].p < 0.05


def test_the_same_character_three_times(known: SimpleNamespace) -> None:
    found = run(known, [0, 0, 0])
    # samples of one finite pool can be told apart although nobody differs: what the paper's protocol misses
    assert f1(found, "characters") > 1 / 3 + 0.1
    assert abs(f1(found, "characters") - f1(found, "pseudo-characters")) < 0.15
    assert abs(f1(found, "characters by group") - f1(found, "pseudo-characters by group")) < 0.2
    assert found.verdict.answer == "no"


def test_the_same_seed_gives_the_same_bytes(known: SimpleNamespace) -> None:
    pools = known.pools([0, 1, None], strength=0.03)
    small = replace(SMALL, replicates=10)
    once, again = run_protocol(pools, small), run_protocol(pools, replace(small, engine="local"))
    assert once.to_json() == again.to_json()
    other = run_protocol(pools, replace(small, seed=1))
    assert other.condition("characters") != once.condition("characters")
    assert other.run.signature != once.run.signature


def test_json_holds_everything_and_nothing_undefined(known: SimpleNamespace) -> None:
    found = run_protocol(known.pools([0, 1]), replace(SMALL, replicates=0))
    content = json.loads(found.to_json())
    assert content["verdict"]["low"] is None
    assert "needs 10 resampled pools" in content["verdict"]["reason"]
    assert content["verdict"]["answer"] == "cannot say"
    assert [c["name"] for c in content["characters"]] == ["person 0", "person 1"]
    assert content["run"]["seed"] == 0
    characters = content["conditions"][0]
    assert len(characters["repetitions"]) == 3
    assert all(sum(row) == pytest.approx(1) for row in characters["confusion"])
    assert sum(characters["chosen_c"].values()) == 15
    assert characters["f1"] == pytest.approx(np.mean([c["f1"] for c in characters["characters"]]))
    assert characters["f1"] == pytest.approx(np.mean(characters["repetitions"]))


def test_without_groups_the_verdict_waits(known: SimpleNamespace) -> None:
    found = run_protocol(known.pools([0, 1], n_groups=2), SMALL)
    assert found.verdict.answer == "cannot say"
    assert "speaks in 2 scenes" in found.verdict.reason
    assert found.condition("characters by group") is None
    assert f1(found, "characters") > 0.9


def test_a_recogniser_of_whole_texts(known: SimpleNamespace) -> None:
    rng = np.random.default_rng(0)
    texts = [text for likes in (0, 1) for text in known.speak(rng, likes, 80)]

    def score(whole: list[str]) -> list[list[float]]:
        return [[1 + 0.05 * text.count(marker) for marker in known.markers] for text in whole]

    pools = Pools(
        characters=("a", "b"),
        label=np.repeat([0, 1], 80).astype(np.int32),
        group=(np.arange(160) % 40).astype(np.int32),
        group_noun="dialogue",
        traits=TextVectors(texts, score),
    )
    found = run_protocol(pools, replace(SMALL, size=12, repetitions=2, replicates=0))
    assert f1(found, "characters by group") > 0.8


def test_nobody_to_tell_apart(known: SimpleNamespace) -> None:
    with pytest.raises(UserError, match=r"expected 2 or more characters, found 1 \(person 0\)"):
        run_protocol(known.pools([0]), SMALL)


def test_too_few_utterances_says_how_many_are_needed(known: SimpleNamespace) -> None:
    pools = known.pools([0, 1, None]).only(["person 2", "person 0"])
    with pytest.raises(DataError, match="more than 200 of each character") as caught:
        run_protocol(pools, replace(SMALL, size=200))
    assert caught.value.problems == ("person 2: 200 utterances", "person 0: 200 utterances")


def test_some_of_the_characters(known: SimpleNamespace) -> None:
    pools = known.pools([0, 1, 2], n=50)
    some = pools.only(["person 2", "person 0"])
    assert some.characters == ("person 2", "person 0")
    assert [rows.size for rows in some.members] == [50, 50]
    seeds = [3, 4]
    assert (
        some.traits.of(some.members, 2, 10, seeds)
        == pools.traits.of([pools.members[2], pools.members[0]], 2, 10, seeds)
    ).all()
