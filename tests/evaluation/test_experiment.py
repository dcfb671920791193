"""Experiment files: what they may say, and every mistake at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from palaver.errors import ConfigError
from palaver.evaluation.experiment import fields_of_tables, load_experiment

GOOD = """
title = "Two bots"
seed = 3
[test]
contexts = "questions.txt"
[systems.echo]
kind = "python"
function = "my_bots:echo"
[systems.log]
kind = "replay"
path = "log.jsonl"
[judges]
by = ["unigram_f1", "comparator=runs/mine", "my_bots:length"]
[[judges.llm]]
name = "smollm2"
token_prices = [0.1, 0.4]
cost_limit = 2
[people.simulate]
raters = 5
truth = { echo = 1.0, log = 0.5 }
[report]
reference = "log"
confidence = 0.9
"""


def write(folder: Path, text: str) -> Path:
    (folder / "questions.txt").write_text("Hello.\n")
    path = folder / "experiment.toml"
    path.write_text(text)
    return path


def test_a_whole_file(tmp_path: Path) -> None:
    experiment = load_experiment(write(tmp_path, GOOD))
    assert experiment.title == "Two bots"
    assert experiment.seed == 3
    assert list(experiment.systems) == ["echo", "log"]
    assert experiment.systems["log"].folder == tmp_path
    assert experiment.judges == ("unigram_f1", "comparator=runs/mine", "my_bots:length")
    assert experiment.llm_judges[0].budget().money == 2
    assert experiment.people is not None
    assert experiment.people.simulate is not None
    assert experiment.report.reference == "log"
    assert experiment.contexts_source == str(tmp_path / "questions.txt")
    assert experiment.settings()["judges"] == list(experiment.judges)


def test_systems_by_name(tmp_path: Path) -> None:
    (tmp_path / "systems.toml").write_text('[systems.mine]\nkind = "replay"\npath = "x.jsonl"\n')
    text = 'systems = ["mine", "some_bots:reply"]\n[test]\ncontexts = "questions.txt"\n'
    text += '[judges]\nby = ["words"]\n'
    experiment = load_experiment(write(tmp_path, text))
    assert [spec.options.kind for spec in experiment.systems.values()] == ["replay", "python"]
    assert {spec.folder for spec in experiment.systems.values()} == {tmp_path}
    assert experiment.title == "experiment"
    assert experiment.seed is None


def test_every_mistake_is_named_with_its_line(tmp_path: Path) -> None:
    text = """titel = "x"
[test]
contexts = "question.txt"
knowledge = "facts.txt"
[systems.a]
kind = "replai"
[systems.b]
kind = "replay"
path = "x"
mising = "skip"
[judges]
by = ["unigram_f", "words", "words"]
[[judges.llm]]
nam = "x"
cost_limit = 3
[people]
ratings = "people.csv"
simulate = { rater = 3 }
[report]
reference = "c"
confidence = 2
"""
    with pytest.raises(ConfigError) as caught:
        load_experiment(write(tmp_path, text))
    said = "\n".join(caught.value.problems)
    for expected in (
        "line 1: titel: there is no such field (did you mean 'title'?)",
        "line 3: test.contexts: there is no file or corpus 'question.txt' (did you mean 'questions.txt'?)",
        f"line 4: test.knowledge: there is no file {tmp_path / 'facts.txt'}",
        "line 6: systems.a.kind: expected one of",
        "line 10: systems.b.mising: there is no such field (did you mean 'missing'?)",
        "line 12: judges.by[1]: there is no judge 'unigram_f' (did you mean 'unigram_f1'?)",
        "line 12: judges.by[3]: 'words' is there twice",
        "line 13: judges.llm[1].name: is missing",
        "line 14: judges.llm[1].nam: there is no such field (did you mean 'name'?)",
        "line 18: people.simulate.rater: there is no such field (did you mean 'raters'?)",
        "line 21: report.confidence: expected less than 1, found 2",
    ):
        assert expected in said
    assert len(caught.value.problems) == 11


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("# nothing", "systems: is missing"),
        ("# nothing", "test: is missing"),
        ("# nothing", "judges: nobody judges"),
        ("systems = []", "expected at least one system"),
        ('systems = ["nobody-at-all"]', "there is no system 'nobody-at-all'"),
        ('systems = ["a_b:c", "a_b:c"]', "'a_b:c' is there twice"),
        ("systems = 3", "expected at least one table [systems.NAME]"),
        ("[judges]", "nobody is named"),
        ("judges = 3", "expected a table [judges]"),
        ("people = 3", "expected a table [people]"),
        ("[people]", "expected one of ratings, study and simulate, found none"),
        ('[people]\nratings = "p.csv"\nstudy = {}', "found ratings and study"),
        ('[people]\nratings = "p.csv"', "there is no file"),
        ('[test]\ncontexts = "questions.txt"\nknowledge = "a"\nselector = "tfidf"', "give one of them"),
        ('[test]\ncontexts = "none.txt"\nlimt = 3', "there is no file or corpus 'none.txt'"),
        ("[[judges.llm]]\nname = 'a'\ncost_limit = 1", "cost_limit needs token_prices"),
    ],
)
def test_what_is_missing_or_wrong(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_experiment(write(tmp_path, text))
    assert words in "\n".join(caught.value.problems)


def test_a_truth_of_all_systems(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_experiment(write(tmp_path, GOOD.replace("log = 0.5", "lok = 0.5")))
    said = "\n".join(caught.value.problems)
    assert "people.simulate.truth.lok: there is no system 'lok' (did you mean 'log'?)" in said
    assert "is missing the quality of 'log'" in said


def test_every_field_says_what_it_is() -> None:
    assert all(text for _, _, _, text in fields_of_tables())
