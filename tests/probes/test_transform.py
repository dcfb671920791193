from __future__ import annotations

import pytest

from palaver.errors import UserError
from palaver.probes import recipe
from palaver.probes.inflection import article, inflect
from palaver.probes.parse import parse
from palaver.probes.transform import (
    RULES,
    VARIANTS,
    apply_rule,
    apply_variants,
    rules_named,
    transform,
)
from palaver.probes.writing import capitalised_words, other_case, without_capital


def test_all_rules_on_bad_input_give_reasons() -> None:
    lines = ["", "word " * 300, "Der Hund und die Katze sind nicht hier.", "😀😀", "???", ".", "(", '"', "A"]
    found = list(transform(lines))
    assert len(found) == len(lines) * len(RULES)
    assert all(result.output is None and result.reason for result in found)


def test_results_come_in_order_and_know_their_source() -> None:
    lines = ["A man is singing", "", "Lilly loves Imogen."] * 400
    found = list(transform(iter(lines), ["not-negation"]))
    assert [r.source for r in found] == lines
    assert [r.output for r in found[:3]] == ["A man is not singing", None, "Lilly does not love Imogen."]
    assert found[0].to_dict() == {
        "source": "A man is singing",
        "rule": "not-negation",
        "output": "A man is not singing",
    }
    assert found[1].to_dict() == {"source": "", "rule": "not-negation", "reason": "empty"}


def test_capitals_and_emoji() -> None:
    (found,) = transform(["A MAN IS SLICING A POTATO 😀"], ["passive"])
    assert found.output == "A POTATO IS BEING SLICED BY A MAN 😀"


def test_the_check_refuses() -> None:
    from palaver.probes.grammatical import CHECKS

    source, good, bad = parse(
        ["A man is eating soup", "Soup is being eaten by a man", "Soup are being by eaten"]
    )
    assert CHECKS["passive"](source, good)
    assert not CHECKS["passive"](source, bad)


def test_unknown_rule() -> None:
    with pytest.raises(UserError, match="there is no rule 'pasive'.*did you mean 'passive'"):
        rules_named("pasive")
    assert rules_named("all") == tuple(RULES)


@pytest.mark.parametrize(
    ("word", "expected"),
    [("apple", "an"), ("unicorn", "a"), ("uninvited", "an"), ("hour", "an"), ("house", "a"), ("FBI", "an"),
     ("European", "a"), ("one", "a"), ("MRI", "an"), ("CD", "a"), ("x-ray", "an"), ("8", "an")],
)  # fmt: skip
def test_article(word: str, expected: str) -> None:
    assert article(word) == expected


@pytest.mark.parametrize(
    ("lemma", "tag", "form"),
    [("go", "VBD", "went"), ("lie", "VBG", "lying"), ("cut", "VBN", "cut"), ("play", "VBZ", "plays"),
     ("hang", "VBN", "hung"), ("be", "VBN", "been"), ("ride", "VBN", "ridden"), ("stop", "VBG", "stopping")],
)  # fmt: skip
def test_inflection(lemma: str, tag: str, form: str) -> None:
    assert inflect(lemma, tag) == form


def test_reading_again_knows_a_verb_by_its_forms() -> None:
    """The tagger takes rides for a form of to rid in one of the two sentences."""
    (found,) = transform(["A man rides a horse."], ["not-negation"])
    assert found.output == "A man does not ride a horse."


@pytest.mark.parametrize(
    ("rule", "sentence", "variants"),
    [
        (
            "inversion",
            "The black dog is climbing on a rock",
            {
                "fronted": "a rock the black dog is climbing on",
                "article": "black dog is climbing on a rock the",
            },
        ),
        ("passive", "Harley asked Abigail to bake.", {"agentless": "Abigail was asked to bake."}),
        ("not-negation", "A man is singing", {"contracted": "A man isn't singing"}),
        ("not-negation", "We left early.", {"full": "We did not leave early."}),
        ("not-negation", "We didn't leave early.", {}),
    ],
)
def test_variants(rule: str, sentence: str, variants: dict[str, str]) -> None:
    (doc,) = parse([sentence])
    assert apply_variants(rule, doc) == variants
    assert apply_rule(rule, doc) not in variants.values()


def test_every_variant_is_explained() -> None:
    assert {name for by_name in VARIANTS.values() for name in by_name} | {"case"} == set(recipe.VARIANTS)


def test_the_case_of_a_sentence() -> None:
    docs = parse(
        ["Paris is near the Seine.", "The man sees Mary.", "I see it.", "CNN asked it.", "It rains."]
    )
    written = [without_capital(doc.text, capitalised_words(doc)) for doc in docs]
    assert written == [
        "Paris is near the Seine.",
        "the man sees Mary.",
        "I see it.",
        "CNN asked it.",
        "it rains.",
    ]
    assert [other_case(text) for text in ("a man", '"We went', "4 men")] == ["A man", '"we went', "4 Men"]
