"""How far to trust an answer, as the report and the terminal say it."""

from __future__ import annotations

import io
import re

import numpy as np
import polars as pl
from rich.console import Console

from palaver import analyse, ratings_from_frame
from palaver.reports.render import render_report
from palaver.reports.terminal import print_analysis
from palaver.reports.trust import print_trust
from palaver.reports.trust_words import first_ahead, trust_sentences, unsure_orders, widening
from palaver.studies.trust import trust_interval


def ratings() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    return pl.DataFrame(
        [
            {
                "item": f"i{i}",
                "system": system,
                "rater": f"r{r}",
                "criterion": "quality",
                "value": round(float(3 + gap + 0.3 * r + rng.standard_normal()), 1),
            }
            for i in range(20)
            for system, gap in (("plain", 0.0), ("<b>good</b>", 1.0))
            for r in range(4)
        ]
    )


def shown(print_it: object, *values: object) -> str:
    console = Console(file=io.StringIO(), width=120)
    print_it(*values, console)  # type: ignore[operator]
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_the_report_has_a_section_with_words_a_picture_and_a_table() -> None:
    html = render_report(analyse(ratings(), n_replicates=20))
    section = html.split('<section id="trust"')[1].split("</section>")[0]
    assert "1 of 1 pair of systems told apart" in section
    assert "<svg" in section
    assert "Differences of systems: quality" in section
    assert "&lt;b&gt;good" in section
    assert "<b>good" not in section
    assert "Intervals clustered by dialogue and rater" in html  # among the methods


def test_an_order_that_other_raters_may_not_find_is_cautioned_of() -> None:
    """Each item says the same because the same four people judged it; they do not say the same."""
    rng = np.random.default_rng(0)
    rows = [
        {"item": f"i{i}", "system": system, "rater": f"r{r}", "criterion": "quality",
         "value": float(liking * (system == "a") + 0.5 * rng.standard_normal())}
        for i in range(30)
        for system in "ab"
        for r, liking in enumerate((3.0, 1.5, -1.5, 0.2))
    ]  # fmt: skip
    analysis = analyse(pl.DataFrame(rows), n_replicates=200)
    assert analysis.ranking[0].groups == (("a",), ("b",))
    said = "With other raters, and all pairs counted, a and b may not be told apart."
    assert unsure_orders(analysis, "quality") == (
        f"The ranking takes raters as they are and every pair alone. {said}"
    )
    assert said in render_report(analysis)
    assert said in " ".join(shown(print_analysis, analysis).split())
    sure = analyse(ratings(), n_replicates=200)
    assert not unsure_orders(sure, "quality")
    assert "raters as they are and every pair" not in render_report(sure)


def test_the_figure_of_pairs_is_said_to_be_a_share() -> None:
    rng = np.random.default_rng(0)
    rows = [
        {"item": f"i{i}", "system": "a", "against": "b", "rater": f"r{r}", "criterion": "better",
         "value": "win" if rng.random() < 0.6 else "loss"}
        for i in range(12)
        for r in range(3)
    ]  # fmt: skip
    analysis = analyse(pl.DataFrame(rows), n_replicates=20)
    told = " ".join(shown(print_analysis, analysis).split())
    assert "0.50 is equality" in told
    assert "0.50 is equality" in render_report(analysis)
    assert "0.50 is equality" not in shown(print_analysis, analyse(ratings(), n_replicates=20))
    assert "a against b: share of wins 0." in trust_interval(ratings_from_frame(pl.DataFrame(rows))).words[0]


def test_without_crossed_raters_there_is_no_section() -> None:
    alone = ratings().filter(pl.col("rater") == "r0")
    assert 'id="trust"' not in render_report(analyse(alone, n_replicates=20))


def test_the_terminal_tells_who_is_ahead() -> None:
    text = shown(print_analysis, analyse(ratings(), n_replicates=20))
    assert "How far to trust this" in text
    line = next(line for line in text.splitlines() if "good" in line and " to " in line)
    assert line.index("good") < line.index("plain")
    report = shown(print_trust, trust_interval(ratings_from_frame(ratings())))
    assert "they differ" in report


def test_words_about_one_comparison() -> None:
    analysis = analyse(ratings(), n_replicates=20)
    [row] = [row for row in analysis.intervals if row.against]
    ahead = first_ahead(row)
    assert ahead.value > 0
    assert (ahead.low <= ahead.value <= ahead.high) is True
    assert widening(row).startswith("× ")
    assert len(trust_sentences(analysis)) == 1


def test_every_criterion_has_a_plot_of_its_own_and_every_table_a_name_of_its_own() -> None:
    """Scales may differ, and a reader who hears the page must tell its tables apart."""
    both = pl.concat([ratings(), ratings().with_columns(criterion=pl.lit("fluency"))])
    analysis = analyse(ratings_from_frame(both), n_replicates=50, seed=0)
    page = render_report(analysis)
    criteria = {row.criterion for row in analysis.intervals if row.against and not row.reason}
    assert page.count("how far each pair of systems lies apart") == len(criteria) == 2
    captions = re.findall(r'<figcaption id="t\d+">(.*?)<span class="run">', page)
    assert len(captions) == len(set(captions))
