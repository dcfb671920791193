"""The report: the answer first, names escaped, examples that can be filtered, one page on any screen."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from palaver.evaluation.conclusion import _other_people
from palaver.evaluation.examples import choose_examples, read_lines, standard_scores
from palaver.evaluation.findings import answer, with_stances
from palaver.evaluation.report import methods_paragraph, render_markdown, render_page
from palaver.evaluation.results import (
    AgreementWithPeople,
    Example,
    ExperimentResult,
    JudgedValue,
    JudgeRow,
    SystemRow,
    Verdict,
)
from palaver.schema import record_run
from palaver.studies.results import IntervalRow, RankingRow, SystemScore

NASTY = "<script>alert(1)</script>|"


def ranking(*groups: tuple[str, ...], criterion: str = "quality") -> RankingRow:
    systems = [system for group in groups for system in group]
    scores = tuple(
        SystemScore(system=s, score=5.0 - n, low=4.5 - n, high=5.5 - n, n=10) for n, s in enumerate(systems)
    )
    better = tuple(tuple(0.99 if i < j else 0.01 for j in range(len(systems))) for i in range(len(systems)))
    return RankingRow(
        criterion=criterion, method="bootstrap", confidence=0.95, groups=groups, label="", unit="mean",
        scores=scores, better=better, n_items=10, n_replicates=1000,
    )  # fmt: skip


def verdict(judge: str, *groups: tuple[str, ...], criterion: str = "quality", **more: Any) -> Verdict:
    return Verdict(
        judge=judge, kind="metric", criterion=criterion, direction="higher",
        ranking=ranking(*groups, criterion=criterion) if groups else None, **more,
    )  # fmt: skip


def an_evaluation(**more: Any) -> ExperimentResult:
    verdicts = with_stances(
        [
            verdict("people", ("new",), ("old", NASTY)),
            verdict("unigram_f1", ("old",), ("new",), (NASTY,), criterion="unigram_f1"),
            verdict("comparator", ("new", "old"), (NASTY,)),
            verdict("words", reason="neither end is better", means=(("new", 3.0), ("old", 2.0))),
        ]
    )
    values = (
        JudgedValue(judge="people", criterion="quality", value=4.5, standard=1.5),
        JudgedValue(judge="unigram_f1", criterion="unigram_f1", value=0.1, standard=-1.2),
    )
    example = Example(
        id="c1", system="new", why="disputed", context=(("user", "Hello <b>there</b>"), ("bot", "Hi")),
        n_turns=7, response="Fine & well", knowledge="Rome is old.", reference="Good.", values=values,
        score=1.5, spread=2.7, worst_turn=7,
    )  # fmt: skip
    fields: dict[str, Any] = {
        "title": "Which bot?",
        "run": record_run("palaver evaluate", seed=1, data={"contexts": "0123456789abcdef"}),
        "answer": answer(verdicts, 12),
        "caveats": ("Another system is first for: unigram_f1.",),
        "confidence": 0.95,
        "reference": "old",
        "systems": tuple(
            SystemRow(system=s, kind="python", n_contexts=10, n_replies=10, n_skipped=0, mean_words=4.0)
            for s in ("new", "old", NASTY)
        ),
        "judges": (JudgeRow(judge="unigram_f1", kind="metric", signature="f1|sig:1", n_ratings=30),),
        "verdicts": tuple(verdicts),
        "agreement": (
            AgreementWithPeople(
                judge="unigram_f1", criterion="quality", spearman=0.2, low=-0.1, high=0.5, pairs_right=0.6,
                n=30, one_person=0.5,
            ),
        ),
        "examples": (example, replace(example, id="c2", system="old", why="best", worst_turn=None)),
        "n_responses": 30,
        "n_raters": 12,
    }  # fmt: skip
    return ExperimentResult(**{**fields, **more})


def test_the_answer_stands_first_and_nothing_from_the_data_is_markup() -> None:
    page = render_page(an_evaluation())
    assert (
        "new is the best of 3, 12 people say (quality); 0 of 2 judges agree, 1 puts another system first."
        in page
    )
    assert page.index("12 people say") < page.index("How far the judges agree")
    assert "<script>alert" not in page
    assert "Hello &lt;b&gt;there" in page
    assert "Rome is old." in page
    assert "costs most" in page
    assert "f1|sig:1" in page
    assert "less than one person is to the others (0.50)" in page
    assert "It is not shown to agree with people at all" in page
    assert "neither end is better" in page
    assert page.count('<article class="example"') == 2
    assert render_page(an_evaluation()) == page


def test_without_people_and_judges_it_says_so() -> None:
    page = render_page(an_evaluation(n_raters=0, agreement=(), verdicts=(), examples=(), judges=()))
    assert "No people rated these responses." in page
    assert 'id="examples"' not in page


def test_simulated_people_are_called_so_everywhere() -> None:
    evaluation = an_evaluation(is_simulated=True)
    assert "12 people, simulated" in render_page(evaluation)
    assert "12 people (simulated)" in methods_paragraph(evaluation)


def test_the_paragraph_names_everything() -> None:
    text = methods_paragraph(an_evaluation())
    assert text.startswith("3 systems (new, old, ")
    for words in (
        "10 contexts",
        "12 people rated them on quality",
        "unigram_f1 [f1|sig:1]",
        "Koehn (2004)",
        "run ",
    ):
        assert words in text


def test_markdown() -> None:
    text = render_markdown(an_evaluation())
    assert "| people | quality | 1. | new | 5.00 | [4.50, 5.50] |" in text
    assert "alert(1)</script>\\|" in text, "a bar in a name does not end a cell"
    assert "| quality | unigram_f1 | 0.20 |" in text


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ([("a",), ("b",)], "a is better than b, people say (quality)."),
        ([("a", "b")], "No difference between a and b can be shown, people say (quality)."),
        ([("a", "b"), ("c",)], "a and b are better than the rest and not told apart, people say (quality)."),
    ],
)
def test_the_sentence(groups: list[tuple[str, ...]], words: str) -> None:
    assert answer(with_stances([verdict("people", *groups)]), 0) == words


def test_the_sentence_without_people_and_without_anything() -> None:
    verdicts = with_stances([verdict("f1", ("a",), ("b",), criterion="f1"), verdict("x", ("a",), ("b",))])
    assert answer(verdicts, 0) == "a is better than b, f1 says; the other judge agrees."
    assert answer([verdict("x")], 0) == "Nothing can be said yet: no judge could rank the systems."


def test_examples_are_the_ends_and_the_disputes(tmp_path: Path) -> None:
    rows = []
    for n in range(20):
        rows += [("f1", "f1", str(n), "a", None, str(n)), ("cost", "cost", str(n), "a", None, str(-n))]
    rows.append(("f1", "f1", "x", "b", None, "19"))
    rows.append(("cost", "cost", "x", "b", None, "19"))
    columns = ["judge", "criterion", "item", "system", "against", "value"]
    frame = pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String), orient="row")
    verdicts = [
        verdict("f1", ("a",), ("b",), criterion="f1"),
        replace(verdict("cost", ("a",), ("b",), criterion="cost"), direction="lower"),
    ]
    scores = standard_scores(frame, verdicts)
    assert scores["standard"].mean() == pytest.approx(0, abs=1e-9)
    chosen = choose_examples(scores, 6, "people")
    assert [(choice.why, choice.item) for choice in chosen][:4] == [
        ("best", "19"), ("best", "18"), ("worst", "0"), ("worst", "1"),
    ]  # fmt: skip
    assert chosen[4].item == "x", "one judge says best, the other worst"
    assert choose_examples(scores, 0, "people") == []
    flat = standard_scores(frame.with_columns(value=pl.lit("3")), verdicts)
    assert set(flat["standard"]) == {0.0}
    path = tmp_path / "responses.jsonl"
    path.write_text(
        '{"id": "x, \\"system\\": y", "system": "a", "response": "1"}\n{"id": "z", "system": "a"}\n'
    )
    assert list(read_lines(path, {('x, "system": y', "a")})) == [('x, "system": y', "a")]


def test_the_page_in_a_browser(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(render_page(an_evaluation()))
    context = browser.new_context(viewport={"width": 390, "height": 800})
    page = context.new_page()
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(path.as_uri())
    assert page.locator("output").text_content() == "2 of 2 shown"
    page.select_option("[data-filter=why]", "best")
    assert page.locator("output").text_content() == "1 of 2 shown"
    assert page.locator(".example:visible").count() == 1
    page.select_option("[data-filter=why]", "")
    page.fill("[data-filter=text]", "no such words")
    assert page.locator(".example:visible").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    violations = axe.run(page).response["violations"]
    assert [v["id"] for v in violations if v["impact"] in ("serious", "critical")] == []
    assert problems == []
    context.close()


def test_what_other_people_might_decide_is_said() -> None:
    row = IntervalRow(
        criterion="quality", system="old", against="new", value=-0.5, low=-1.1, high=0.1, p=0.07,
        adjusted_p=0.21, se=0.3, df=4, n=60, n_dialogues=20, n_raters=3, se_rows=0.1, dialogue_share=0.3,
        rater_share=0.7, confidence=0.95,
    )  # fmt: skip
    sure = replace(row, adjusted_p=0.01)
    elsewhere = replace(row, criterion="fluency")
    among_the_rest = replace(row, against=NASTY)
    [caveat] = _other_people(an_evaluation(differences=(row, elsewhere, among_the_rest)))
    assert caveat.endswith("these are not told apart: new and old (p .210).")
    assert list(_other_people(an_evaluation(differences=(sure,)))) == []


def test_results_hold_no_nan() -> None:
    evaluation = an_evaluation()
    row = replace(evaluation.agreement[0], spearman=math.nan)
    text = replace(evaluation, agreement=(row,)).to_json()
    assert not re.search(r"\bNaN\b", text)
