"""The table of metrics."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest

from palaver.errors import UserError
from palaver.metrics.diversity import distinct_n
from palaver.metrics.evaluate import choose_metrics, evaluate, measure
from palaver.metrics.examples import Example, Examples
from palaver.metrics.metric import METRICS, text_metric
from palaver.metrics.overlap import unigram_f1
from palaver.metrics.systems import SystemResponses
from palaver.statistics.bootstrap import Resampling

PREDICTIONS = ["I like cats a lot", "no idea", "", "cats cats cats"]
REFERENCES = ["I like dogs a lot", ["no clue", "no idea at all"], "hello", "..."]
KNOWLEDGE = ["Dogs like cats.", "", "A cat sleeps.", "Cats purr."]


def test_figures_and_intervals() -> None:
    found = evaluate(PREDICTIONS, REFERENCES, knowledge=KNOWLEDGE, n_replicates=500, seed=1)
    assert [row.name for row in found] == [name for name in METRICS if not METRICS.get(name).model]
    f1 = found["unigram_f1"]
    scores = [unigram_f1(p, r) for p, r in zip(PREDICTIONS, REFERENCES, strict=True)][:3]
    assert f1.value == pytest.approx(np.mean(scores))
    assert (f1.n, f1.n_undefined) == (3, 1)
    assert min(scores) <= f1.low < f1.value < f1.high <= max(scores)
    assert found["knowledge_overlap_1"].n == 2  # one has no words, one no knowledge
    assert found["diversity_2"].n_undefined == 1
    assert found["words"].value == pytest.approx((5 + 2 + 0 + 3) / 4)
    again = evaluate(PREDICTIONS, REFERENCES, knowledge=KNOWLEDGE, n_replicates=500, seed=1)
    assert repr(found) == repr(again)
    assert found.as_dict()["rows"][0]["name"] == "unigram_f1"


def test_a_bootstrap_interval_by_hand() -> None:
    predictions = ["a b"] * 30 + ["c"] * 10
    row = evaluate(predictions, metrics=["words"], n_replicates=4000)["words"]
    assert row.value == 1.75
    error = math.sqrt(0.75 * 0.25 / 40)
    assert row.low == pytest.approx(1.75 - 1.96 * error, abs=0.03)
    assert row.high == pytest.approx(1.75 + 1.96 * error, abs=0.03)


def test_a_pooled_figure_has_no_interval_and_says_why() -> None:
    row = evaluate(PREDICTIONS, metrics=["distinct_1"])["distinct_1"]
    assert row.value == distinct_n(PREDICTIONS)
    assert math.isnan(row.low)
    assert "replacement" in row.reason


def test_an_undefined_figure_says_why() -> None:
    row = evaluate(["", ""], metrics=["diversity_1"])["diversity_1"]
    assert math.isnan(row.value)
    assert math.isnan(row.low)
    assert (row.n, row.n_undefined, row.reason) == (0, 2, "no response has a score")


def test_without_references_what_needs_none() -> None:
    names = {row.name for row in evaluate(PREDICTIONS)}
    assert names == {m.name for m in map(METRICS.get, METRICS) if not m.needs and not m.model}
    assert "diversity_1" in names


def test_every_mistake_at_once() -> None:
    with pytest.raises(UserError) as caught:
        evaluate(PREDICTIONS, metrics=["unigram_f1", "knowledge_overlap_2"])
    assert caught.value.problems == ("unigram_f1 needs references", "knowledge_overlap_2 needs knowledge")
    with pytest.raises(UserError) as caught:
        evaluate(PREDICTIONS, REFERENCES[:2], knowledge=[])
    assert caught.value.problems == ("2 references for 4 predictions", "0 knowledge for 4 predictions")
    with pytest.raises(UserError, match="no predictions"):
        evaluate([])
    with pytest.raises(UserError, match="did you mean 'unigram_f1'"):
        evaluate(PREDICTIONS, REFERENCES, metrics=["unigram-f1"])
    with pytest.raises(ValueError, match="confidence"):
        evaluate(PREDICTIONS, confidence=1)


def test_an_own_metric() -> None:
    shouting = text_metric(
        lambda example: float(example.prediction.isupper()),
        name="shouting",
        title="Share that shouts",
        better="lower",
        settings="v1",
    )
    row = evaluate(["HEY", "you"], metrics=[shouting])["shouting"]
    assert (row.value, row.better) == (0.5, "lower")
    assert row.signature.startswith("shouting|v1|palaver:")


def test_declarations_are_whole_and_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
    rows = {m[0]: m for m in re.findall(r"^\| `(\w+)` \| ([^|]+) \| (\w+) \|([^|]*)\|", page, flags=re.M)}
    for name in METRICS:
        metric = METRICS.get(name)
        assert metric.name == name
        assert [metric.scores, metric.whole, metric.runs].count(None) == 2
        assert (metric.statistics is None) == (metric.figure is None)
        assert (metric.scores is None) == bool(metric.no_interval)
        assert bool(metric.model) == (metric.with_model is not None)
        assert metric.settings in metric.signature
        *told, needs = rows[name][1:]
        assert told == [metric.title, metric.better]
        models = {"": [], "minilm": ["an encoder"], "smollm2": ["a language model"]}[metric.model]
        assert needs.strip() == ", ".join([*metric.needs, *models])
    assert set(rows) == set(METRICS)


def test_functions_are_metrics_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "metrics_of_mine.py").write_text(
        "def marks(response):\n    '''Exclamation marks.'''\n    return response.count('!')\n"
        "def copies(response, references):\n    return response in references\n"
        "def bad(response):\n    return 'x'\n"
        "marks.better = 'lower'\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    table = evaluate(["a!", "b"], ["b", "b"], metrics=["metrics_of_mine:marks", "metrics_of_mine:copies"])
    marks, copies = table.rows
    assert (marks.value, marks.title, marks.better) == (0.5, "Exclamation marks", "lower")
    assert copies.value == 0.5
    assert METRICS.get("metrics_of_mine:copies").needs == ("references",)
    assert "source:" in marks.signature
    with pytest.raises(UserError, match="should return a number, returned 'x'"):
        evaluate(["a"], metrics=["metrics_of_mine:bad"])
    with pytest.raises(UserError, match="needs references"):
        evaluate(["a"], metrics=["metrics_of_mine:copies"])
    with pytest.raises(UserError, match="did you mean 'marks'"):
        evaluate(["a"], metrics=["metrics_of_mine:mark"])


def test_measured_twice_is_measured_the_same() -> None:
    """What was counted the first time is not counted again."""
    rows = [Example("a b", ("a c",)), Example("d", ("d",)), Example("e f g", ("g",))]
    system = SystemResponses("one", range(3), [Examples.of(rows)])
    metrics = choose_metrics(["unigram_f1", "bleu"], {"references"})
    first, second = (measure([system], metrics, Resampling.of(0.95, 50, 0)) for _ in range(2))
    assert first == second
    assert [row.n for row in second[0]] == [3, 3]
