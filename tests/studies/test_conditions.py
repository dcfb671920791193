"""Text, conditions, turns and orders of outputs: simulated, analysed, reported, judged by a model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from rich.console import Console

from palaver.errors import UserError
from palaver.judges.llm import rate_study
from palaver.judges.llm_models import Answer
from palaver.judges.llm_prompts import Prompt
from palaver.reports import render_report
from palaver.reports.terminal import print_analysis
from palaver.schema import Study
from palaver.schema.scale import BestWorst, Ranking
from palaver.statistics.bootstrap import Resampling
from palaver.studies.analyse import analyse
from palaver.studies.design import parse_study
from palaver.studies.judgements import judgements_of
from palaver.studies.rankings import compare_within_screens, rank_systems
from palaver.studies.ratings import ratings_from_frame, read_ratings
from palaver.studies.simulate import simulate

TALK = {
    "name": "talk",
    "layout": "joint",
    "questions": [
        {"criterion": "quality", "text": "How good?", "scale": {"kind": "likert", "high": 5}},
        {
            "criterion": "why",
            "text": "Why?",
            "scale": {"kind": "text", "lines": 2},
            "shown_if": {"criterion": "quality", "at_most": 2},
        },
        {"criterion": "fits", "text": "Does it fit?", "scale": {"kind": "binary"}, "per": "turn"},
        {
            "criterion": "fault",
            "text": "Which fault?",
            "scale": {"kind": "choice", "options": ["rude", "false"]},
            "per": "turn",
            "shown_if": {"criterion": "fits", "equals": "no"},
        },
    ],
    "items": [
        {
            "id": f"d{i}",
            "outputs": [
                {
                    "system": system,
                    "dialogue": {
                        "id": f"d{i}-{system}",
                        "turns": [
                            {"speaker": speaker, "text": f"{speaker} speaks"}
                            for speaker in ("user", "system", "user", "system")
                        ],
                    },
                }
                for system in ("a", "b")
            ],
        }
        for i in range(10)
    ],
}


@pytest.fixture(scope="module")
def talk() -> Study:
    return Study.model_validate(TALK)


def order_study(kind: str) -> Study:
    outputs = [{"system": system, "text": f"{system} says"} for system in "abcd"]
    items = [{"id": f"i{i}", "outputs": outputs} for i in range(30)]
    question = {"criterion": "liking", "text": "Which?", "scale": {"kind": kind}}
    return Study.model_validate({"name": "order", "questions": [question], "items": items})


def test_simulated_raters_answer_what_they_are_asked(talk: Study) -> None:
    simulation = simulate(talk, n_raters=5)
    frame = simulation.frame
    low = frame.filter(pl.col("criterion") == "quality", pl.col("value").cast(pl.Float64, strict=False) <= 2)
    why = frame.filter(pl.col("criterion") == "why")
    keys = ["item", "system", "rater"]
    assert low.select(keys).sort(keys).equals(why.select(keys).sort(keys))
    fits = frame.filter(pl.col("criterion") == "fits")
    assert fits.height == 10 * 2 * 3 * 2
    assert set(fits["turn"]) == {1, 3}
    faults = frame.filter(pl.col("criterion") == "fault").height
    assert faults == fits.filter(pl.col("value") == "0").height

    analysis = analyse(simulation, n_replicates=20)
    rows = {row.criterion: row for row in analysis.reading.conditions}
    assert (rows["why"].n_asked, rows["why"].n_not_asked) == (low.height, 60 - low.height)
    assert (rows["fault"].n_missing, rows["fault"].n_asked) == (0, faults)
    assert len(analysis.texts) == why.height
    assert {c.criterion for c in analysis.criteria} == {"quality", "fits", "fault"}
    report = render_report(analysis)
    assert "In their words" in report
    assert "not asked is not missing" in report


def test_missing_is_not_unasked(talk: Study, tmp_path: Path) -> None:
    frame = simulate(talk, n_raters=5).frame
    first = frame.filter(pl.col("criterion") == "why").head(1)
    kept = frame.join(
        first.select("item", "system", "rater", "criterion"),
        how="anti",
        on=["item", "system", "rater", "criterion"],
    )
    table = ratings_from_frame(kept, study=talk)
    why = next(row for row in table.reading.conditions if row.criterion == "why")
    assert (why.n_missing, why.n_asked - why.n_answered) == (1, 1)
    without_host = ratings_from_frame(frame.filter(pl.col("criterion") != "quality"), study=talk)
    assert any("whether it was asked" in note for note in without_host.reading.notes)


def test_texts_cannot_break_a_report_or_a_terminal(talk: Study) -> None:
    bad = "<script>alert(1)</script> \x1b[31m [bold]{{ 7 * 7 }} \u202e end"
    frame = simulate(talk, n_raters=5).frame.with_columns(
        pl.when(pl.col("criterion") == "why").then(pl.lit(bad)).otherwise(pl.col("value")).alias("value")
    )
    analysis = analyse(ratings_from_frame(frame, study=talk), study=talk, n_replicates=5)
    assert "<script>alert" not in render_report(analysis)
    console = Console(record=True, width=120)
    print_analysis(analysis, console)
    assert "\x1b[31m" not in console.export_text(styles=False)
    assert json.loads(analysis.to_json())["texts"][0]["text"].startswith("<script>")


def test_a_study_of_texts_alone_is_listed(tmp_path: Path) -> None:
    study = parse_study(
        'name = "t"\n[[questions]]\ncriterion = "why"\ntext = "Why?"\nscale = { kind = "text" }\n'
        '[[items]]\nid = "i"\noutputs = [{ system = "a", text = "x" }]\n',
        "study",
    )
    file = tmp_path / "r.csv"
    file.write_text("item,system,rater,criterion,value\ni,a,r1,why,Because.\ni,a,r2,why,3\n")
    analysis = analyse(read_ratings(file, study=study), study=study)
    assert [row.text for row in analysis.texts] == ["Because.", "3"]
    assert "Because." in render_report(analysis)
    with pytest.raises(UserError, match="free text only"):
        rate_study(study, Model())


def test_sentences_without_a_study_file_are_taken_for_text(tmp_path: Path) -> None:
    rows = [
        f"i{i},{s},r1,{c}"
        for i in range(4)
        for s in "ab"
        for c in (f"quality,{1 + i}", f"why,I think {s}{i} is rather poor")
    ]
    file = tmp_path / "r.csv"
    file.write_text("item,system,rater,criterion,value\n" + "\n".join(rows) + "\n")
    table = read_ratings(file)
    assert table.criteria == ("quality",)
    assert table.texts.height == 8


# --- orders of outputs --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["best-worst", "ranking"])
def test_orders_find_the_truth(kind: str) -> None:
    simulation = simulate(order_study(kind), n_raters=8, gap=1.0)
    wide = simulation.frame.with_columns(pl.col("value").cast(pl.Float64))
    scale: Any = BestWorst() if kind == "best-worst" else Ranking()
    for _, screen in wide.group_by("item", "rater"):
        assert scale.check_outputs(screen["value"].to_list()) == ""
    analysis = analyse(simulation, n_replicates=50)
    for row in analysis.ranking:
        assert [score.system for score in row.scores] == list("abcd"), row.method
    assert analysis.ranking[0].unit == scale.unit


def test_best_minus_worst_and_the_pairs_that_it_implies() -> None:
    rows = [("i", system, "r", value) for system, value in zip("abcd", ("1", "0", "0", "-1"), strict=True)]
    frame = pl.DataFrame(rows, schema=["item", "system", "rater", "value"], orient="row")
    table = ratings_from_frame(
        frame.with_columns(pl.lit("liking").alias("criterion")), study=order_study("best-worst")
    )
    judged = judgements_of(table, "liking")
    compared, _ = compare_within_screens(judged)
    assert len(compared) == 5, "six pairs, and of the two in the middle nothing is said"
    assert (compared.outcome != 0).all()
    means = next(iter(rank_systems(judged, Resampling(0.95, 5, np.random.default_rng(0)))))
    assert {score.system: score.score for score in means.scores} == {"a": 1, "b": 0, "c": 0, "d": -1}


# --- language models ----------------------------------------------------------------------------------------


class Model:
    """Takes the first answer that is offered, or a list of all letters."""

    name = "fake"
    settings: dict[str, object] = {"model": "fake"}  # noqa: RUF012
    chunk = 10

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer]:
        return [Answer(outcome="answered", text=self._text(prompt), model="fake") for prompt in prompts]

    def _text(self, prompt: Prompt) -> str:
        return json.dumps({slot.name: json.loads(slot.answers[0]) for slot in prompt.slots})


def test_a_language_model_answers_turns_and_what_it_is_asked(talk: Study) -> None:
    result = rate_study(talk, Model(), use_cache=False)  # type: ignore[arg-type]
    counts = dict(result.frame.group_by("criterion").len().rows())
    assert counts == {"quality": 20, "fits": 40}, "the first answer is yes, which hides the fault"
    assert set(result.frame.filter(pl.col("criterion") == "fits")["turn"]) == {1, 3}
    assert any("free text is not asked" in note for note in result.notes)


@pytest.mark.parametrize(("kind", "values"), [("best-worst", [1, -1, 0, 0]), ("ranking", [3, 2, 1, 0])])
def test_a_language_model_puts_outputs_in_order(kind: str, values: list[int]) -> None:
    study = order_study(kind).model_copy(update={"order": "fixed"})
    result = rate_study(study, Model(), use_cache=False, both_orders=False)  # type: ignore[arg-type]
    first = result.frame.filter(pl.col("item") == "i0").sort("system")
    assert first["value"].cast(pl.Float64).to_list() == values
    assert result.tally.unparsed == 0
