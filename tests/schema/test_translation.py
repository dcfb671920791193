"""Translations: they fit what they translate, and nothing that is stored depends on them."""

from __future__ import annotations

from pathlib import Path

import pytest

from palaver.collection.settings import parse_collection
from palaver.errors import ConfigError
from palaver.schema import Study
from palaver.server.words import language_notes, offered_languages, words_of
from palaver.studies.amendment import compare_studies
from palaver.studies.design import load_study, parse_study, study_toml

HEAD = 'name = "tea"\n'
STUDY = """
title = "Tea"
[[questions]]
criterion = "tone"
text = "What tone?"
help = "As you hear it."
scale = { kind = "choice", options = ["friendly", "rude"] }
[[questions]]
criterion = "better"
text = "Which?"
scale = { kind = "pairwise" }
[[survey]]
name = "age"
text = "How old?"
options = ["young", "old"]
[[items]]
id = "one"
outputs = [{ system = "a", text = "x" }, { system = "b", text = "y" }]
"""
GERMAN = """
[translations.de]
title = "Tee"
questions.tone = { text = "Welcher Ton?", help = "Wie er klingt.", labels = ["freundlich", "grob"] }
questions.better = { text = "Welche?", tie_label = "Gleich" }
survey.age = { text = "Wie alt?", options = ["jung", "alt"] }
"""


def study_of(head: str = "", tail: str = "") -> Study:
    return parse_study(HEAD + head + STUDY + tail, "study.toml")


@pytest.mark.parametrize(
    ("tail", "mistake"),
    [
        (
            "questions.ton = { text = 'x' }",
            "questions.ton: the study does not ask for 'ton' (did you mean 'tone'?)",
        ),
        ("questions.tone = { labels = ['x'] }", "labels: expected 2, one for each of the scale's, found 1"),
        ("questions.tone = { tie_label = 'x' }", "tie_label: only a pairwise question has one"),
        (
            "survey.ages = { text = 'x' }",
            "survey.ages: the survey has no question 'ages' (did you mean 'age'?)",
        ),
        ("survey.age = { options = ['x'] }", "options: expected 2, one for each of the study's, found 1"),
        ("words = { 'Item {n}' = 'Punkt' }", "expected the same names in braces ({n}), found 'Punkt'"),
        ("words = { 'Back' = 'Zurück {' }", "expected the same names in braces (none), found 'Zurück {'"),
        ("words = 'de.toml'", "words: a text alone cannot name a file of words"),
        ("titel = 'x'", "titel: there is no such field (did you mean 'title'?)"),
        ("direction = 'up'", "direction: expected 'ltr' or 'rtl'"),
    ],
)
def test_a_translation_that_does_not_fit_is_named_with_its_line(tail: str, mistake: str) -> None:
    with pytest.raises(ConfigError) as error:
        study_of(tail=f"[translations.de]\n{tail}\n")
    (problem,) = error.value.problems
    assert problem.startswith("line 21: translations.de")
    assert mistake in problem


def test_a_study_with_translations_is_written_and_read_again() -> None:
    study = study_of(tail=GERMAN)
    assert parse_study(study_toml(study), "again") == study
    assert Study.model_validate_json(study.model_dump_json()) == study
    assert "translations" not in study_toml(study_of())


def test_a_question_is_shown_in_the_language_and_its_values_stay() -> None:
    study = study_of(tail=GERMAN)
    t = words_of("de", study.translations["de"])
    tone, better = study.questions
    assert (t.question(tone).text, t.question(tone).help) == ("Welcher Ton?", "Wie er klingt.")
    assert [(c.value, c.label) for c in t.choices(tone)] == [("friendly", "freundlich"), ("rude", "grob")]
    assert [c.label for c in t.choices(better, ("A", "B"))] == ["A", "B", "Gleich"]
    assert [c.label for c in words_of("de").choices(better, ("A", "B"))][2] == "Kann ich nicht sagen"
    assert t.study(study).title == "Tee"
    assert t.study(study).survey[0].text == "Wie alt?"
    assert t.study(study).survey[0].options == ("young", "old"), "what is sent"
    assert t.survey_option("age", "old", ("young", "old")) == "alt"


def test_what_the_owner_has_left_out_is_listed() -> None:
    assert language_notes(study_of(tail=GERMAN)) == []
    lacking = (
        "title, questions.tone.text, questions.tone.help, questions.tone.labels, questions.better.text, "
    )
    notes = language_notes(study_of(tail="[translations.fr]\n"))
    assert notes == [f"fr: not translated: {lacking}survey.age.text, survey.age.options"]


def test_which_languages_are_offered() -> None:
    assert offered_languages(study_of()) == ("en",)
    assert offered_languages(study_of('language = "de"\n', "[translations.en]\n")) == ("de", "en")
    assert {"en", "de", "ar", "zh"} < set(offered_languages(study_of('language = "browser"\n')))


def test_a_language_of_ones_own_lies_beside_the_study(tmp_path: Path) -> None:
    text = HEAD + 'language = "nl"\n' + STUDY + '[translations.nl]\nwords = "nl.toml"\n'
    (tmp_path / "study.toml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"translations.nl.words: there is no file .*nl.toml"):
        load_study(tmp_path / "study.toml")
    words = 'name = "Nederlands"\ndirection = "rtl"\n[rate]\n"Back" = "Terug"\n"Bakc" = "?"\n'
    (tmp_path / "nl.toml").write_text(words, encoding="utf-8")
    study = load_study(tmp_path / "study.toml")
    t = words_of("nl", study.translations["nl"])
    assert (t("Back"), t("Item {n}", n=3), t.direction) == ("Terug", "Item 3", "rtl")
    strange, english = language_notes(study)
    assert strange == "nl: no page says 'Bakc'"
    assert english.startswith("nl: texts of the pages that are said in English: ")


def test_languages_may_be_amended() -> None:
    amendment = compare_studies(study_of(), study_of('language = "browser"\n', GERMAN))
    assert amendment.refusals == ()
    assert set(amendment.changes) == {"language is changed", "translations is changed"}


def test_a_collection_is_translated_alike() -> None:
    text = """
name = "talk"
[[about_partner]]
criterion = "good"
text = "Good?"
scale = { kind = "binary" }
[translations.de.questions.good]
text = "Gut?"
"""
    collection = parse_collection(text, "collection.toml")
    t = words_of("de", collection.translations["de"])
    assert t.question(collection.about_partner[0]).text == "Gut?"
    assert collection.frame().translations.keys() == {"de"}
    with pytest.raises(
        ConfigError, match="line 7: translations.de.questions.god: the study does not ask for"
    ):
        parse_collection(text.replace("questions.good", "questions.god"), "collection.toml")
