"""The LaTeX tables: balanced, escaped, one cell for each column, whatever the names hold."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.evaluation.forms import FILES
from palaver.evaluation.latex import render_latex
from palaver.evaluation.report import write_report
from palaver.evaluation.results import ExperimentResult
from palaver.reports.latex import escape

from .test_report import NASTY, an_evaluation, verdict

_COMMAND = re.compile(r"\\(?:text[a-z]+|ldots)\{\}|\\[{}$&#%_]|\$-\$|-\{\}|^\{\}")


def rows_of(text: str) -> list[list[str]]:
    """The cells of all rows; an escaped & ends none."""
    lines = [line for line in text.splitlines() if line.endswith(r" \\")]
    return [re.split(r"(?<!\\)&", line.removesuffix(r" \\")) for line in lines]


def is_balanced(text: str) -> bool:
    """Whether braces and environments that are open are closed again."""
    bare = re.sub(r"\\.", "", "\n".join(line for line in text.splitlines() if not line.startswith("%")))
    depth = 0
    for letter in bare:
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if depth < 0:
            return False
    begun, ended = re.findall(r"\\begin\{(\w+)\}", text), re.findall(r"\\end\{(\w+)\}", text)
    return depth == 0 and sorted(begun) == sorted(ended) and bare.count("$") % 2 == 0


def test_the_tables_of_an_evaluation() -> None:
    text = render_latex(an_evaluation())
    assert is_balanced(text)
    assert text.count(r"\toprule") == text.count(r"\bottomrule") == 2
    assert r"people: quality & 1. & \textbf{new} & \textbf{5.00} & [4.50, 5.50] \\" in text
    assert r"unigram\_f1 & 1. & \textbf{old} & \textbf{5.00} & [4.50, 5.50] \\" in text
    assert r"2.\textendash{}3. & old" in text, "systems that are not told apart share their places"
    assert text.count(r"\addlinespace") == 2, "three rankings: people first"
    assert text.index("people: quality &") < text.index(r"unigram\_f1 &")
    assert r"quality & unigram\_f1 & 0.20 & [$-$0.10, 0.50] & 0.50 & 60\% \\" in text
    rows = rows_of(text)
    assert {len(row) for row in rows} == {5, 6}
    assert NASTY not in text
    assert text == render_latex(an_evaluation())


@given(st.text(max_size=30))
def test_any_name_is_only_text(name: str) -> None:
    rest = _COMMAND.sub("", escape(name))
    assert not re.search(r"[\\{}$&#%_^~]|--", rest)


@settings(max_examples=30, deadline=None)
@given(st.text(min_size=1, max_size=12))
def test_any_name_keeps_the_table_whole(name: str) -> None:
    evaluation: ExperimentResult = an_evaluation(agreement=())
    ranked = (verdict(f"[{name}", (name, "b"), ("c",)), verdict(f"*{name}", ("b",), (name,)))
    text = render_latex(replace(evaluation, verdicts=ranked))
    assert is_balanced(text)
    assert {len(row) for row in rows_of(text)} == {5}
    assert not re.search(r"\\\\\n[\[*]|\\addlinespace\n[\[*]", text), "the end of a row takes no name"


def test_nothing_ranked_is_a_table_without_rows() -> None:
    text = render_latex(an_evaluation(verdicts=(), agreement=(), answer="Nothing can be said yet."))
    assert is_balanced(text)
    assert len(rows_of(text)) == 1


def test_every_form_has_its_file(tmp_path: Path) -> None:
    for form, name in FILES.items():
        assert write_report(an_evaluation(), tmp_path, form).name == name  # type: ignore[arg-type]
    assert {path.name for path in tmp_path.iterdir()} == set(FILES.values()) - {"results.json"}
