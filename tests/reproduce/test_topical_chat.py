"""Topical-Chat's tables from results files, and Table 4 from ratings with known agreement."""

from __future__ import annotations

import json
import re
from io import StringIO
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from rich.console import Console

from palaver.errors import DataError, UserError
from palaver.reproduce.snippets import THRESHOLD, SnippetTable, read_snippets
from palaver.reproduce.topical_chat import FIGURES, TopicalChatTables, print_tables, reproduce
from palaver.reproduce.topical_chat_runs import Figure, read_runs
from palaver.studies.draft import draft_study
from palaver.studies.simulate import Habits, simulate

ROOT = Path(__file__).parents[2]
NUMBERS = {
    "unigram_f1": [0.2, 0.19, 0.21],
    "diversity_1": [0.8, 0.7, 0.9],
    "diversity_2": [0.9, 0.8, 1.0],
    "n": 9,
}


def smollm(value: float, seed: int, split: str) -> dict[str, Any]:
    about = {"run": "smollm-tf", "seed": seed, "split": split}
    return {**about, "ppl_word": [value, value - 1, value + 1], **NUMBERS}


@pytest.fixture
def results(tmp_path: Path) -> list[Path]:
    """A file of each layout."""
    epochs = [{"epoch": i, "seconds": 60.0 * i, "valid_ppl": ppl} for i, ppl in enumerate([9, 5, 7], start=1)]
    one = {
        "test_freq": {"ppl_word": 30.0, **NUMBERS},
        "test_rare": {"ppl_word": [41.0, 40.0, 42.0], **NUMBERS},
    }
    folders = {
        "tf": {"epochs": epochs, "end": "finished: 3 epochs without a better one", "test": one},
        "tf-knowledge/tfidf": one,
        "tf-knowledge/no-sentence": one,
        "xing-speaker": {"epochs": epochs},
    }
    trained = {"epochs": [{"epoch": 1, "seconds": 120.0, "valid_ppl_word": 20.0}]}
    table = {
        "table": [smollm(18, 1, "test_freq"), smollm(20, 2, "test_freq"), smollm(25, 1, "test_rare")],
        "training": [{"runs": {"smollm-tf-1": trained, "smollm-tf-2": trained}}],
    }
    for name, content in (("folders", folders), ("table", table)):
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    return [tmp_path / "folders.json", tmp_path / "table.json"]


def shown(tables: TopicalChatTables) -> str:
    file = StringIO()
    print_tables(tables, Console(file=file, width=300))
    return file.getvalue()


def test_rows_of_both_layouts(results: list[Path]) -> None:
    tables = reproduce(read_runs(results))
    rows = {row.run: row for row in tables.rows if row.table == "table_3"}
    assert rows["tf"].ours["test_freq"]["ppl"] == Figure(30.0)
    assert rows["tf"].ours["test_rare"]["ppl"] == Figure(41.0, 40.0, 42.0)
    assert rows["tf"].note == "3 epochs, best 2, 3 minutes; finished: 3 epochs without a better one"
    assert rows["tf-knowledge/tfidf"].label == "TF (w/ k.), knowledge by tfidf"
    assert rows["tf-knowledge/no-sentence"].label == "TF (w/ k.), no sentence"
    seeds = rows["smollm-tf"]
    assert seeds.ours["test_freq"]["ppl"] == Figure(19.0, 17.0, 21.0)  # the mean; the outermost limits
    assert (seeds.seeds, seeds.note) == ((1, 2), "2 seeds: 1 epoch, 2 minutes")
    assert not rows["tf-knowledge"].ours
    text = shown(tables)
    assert "not reached, no run in the results files: TF (w/ p.t.), TF (w/ k.)" in text
    assert "30.0 / 41.0 [40.0, 42.0]" in text
    assert json.loads(tables.to_json())["rows"][0]["paper"]["ppl"] == [29.8, 40.4]
    assert set(tables.to_polars()["row"]) == {
        "TF",
        "TF (w/ k.), knowledge by tfidf",
        "TF (w/ k.), no sentence",
        "SmolLM2",
    }


def test_the_papers_figures_are_those_of_the_paper() -> None:
    text = (ROOT / "../shared/papers/topical_chat_gopalakrishnan_2019.txt").resolve()
    if not text.is_file():
        pytest.skip(f"there is no {text}")
    lines = text.read_text(encoding="utf-8").splitlines()
    for entry in (*FIGURES["table_3"], *FIGURES["table_5"]):
        if "paper" not in entry:
            continue
        digits = {"ppl": 1, "f1": 2, "div_1": 2, "div_2": 2}
        cells = [
            " / ".join(f"{value:.{digits[column]}f}" for value in values)
            for column, values in entry["paper"].items()
        ]
        row = " | ".join(cells)
        assert any(line.startswith(f"| {entry['label']} |") and row in line for line in lines), entry


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not a results file"),
        ("[1]", "does not have the layout"),
        ("{}", "holds no figures"),
        ('{"paper": "Topical-Chat", "rows": []}', "does not have the layout"),  # what the command prints
        ('{"table": [{"run": "a"}], "training": []}', "does not have the layout"),
        ('{"tf": {"test": {"test_freq": {}}}}', "does not have the layout"),
    ],
)
def test_files_that_are_something_else(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(content)
    with pytest.raises(DataError, match=message) as caught:
        read_runs([tmp_path / "r.json"])
    assert "Error" not in " ".join(caught.value.problems)


def test_a_run_counts_once(results: list[Path], tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"tf is in .*folders.json and in"):
        read_runs([results[0], results[0]])
    with pytest.raises(UserError, match="there is no file"):
        read_runs([tmp_path / "nowhere.json"])


@pytest.fixture
def responses(tmp_path: Path) -> Path:
    path = tmp_path / "responses.jsonl"
    rows = [
        {
            "id": f"talk-{c}#{t}", "system": system, "context": [{"speaker": "a", "text": f"Hello {c}."}],
            "response": f"{system} {c} {t}", "reference": f"person {c} {t}", "knowledge": f"Fact {c} {t}.",
        }
        for c in range(60) for t in (1, 3) for system in ("tf", "tf-knowledge")
    ]  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def rate(responses: Path, habits: Habits, n_raters: int) -> SnippetTable:
    """Snippets drawn from `responses`, rated by simulated raters, read as a file."""
    draft = draft_study(responses, preset="snippet", sample=40, distinct_by="conversation")
    assert draft.study.systems == ("tf", "tf-knowledge", "human")
    assert len(draft.study.items) == 40
    truth = {"human": 1.0, "tf-knowledge": 0.0, "tf": -1.0}
    simulation = simulate(draft.study, n_raters=n_raters, truth=truth, habits=habits)
    path = responses.with_name("ratings.csv")
    simulation.frame.write_csv(path)
    return read_snippets(path, n_replicates=50)


AGREED = Habits(noise=0.0, bias=0.0, careless=0.0, spread=0.0, j_shaped=0.0)


@pytest.mark.parametrize(("n_raters", "measure"), [(2, "Cohen kappa"), (12, "Fleiss kappa")])
def test_raters_who_agree_are_shown(responses: Path, n_raters: int, measure: str) -> None:
    table = rate(responses, AGREED, n_raters)
    assert [a.measure for a in table.agreements] == [measure, measure, "Fleiss kappa", measure, measure]
    assert all(a.value == pytest.approx(1.0) and a.is_enough for a in table.agreements)
    means = {(m.system, m.criterion): m for m in table.means}
    ratings = pl.read_csv(responses.with_name("ratings.csv"))
    own = ratings.filter((pl.col("system") == "human") & (pl.col("criterion") == "on-topic"))["value"]
    human = means["human", "on-topic"]
    assert human.value == pytest.approx(own.cast(pl.Float64).mean())
    assert human.low <= human.value <= human.high
    assert human.paper == 0.93
    assert human.value > means["tf", "on-topic"].value
    text = shown(reproduce([], table))
    assert "Table 4: 40 snippets" in text
    assert "withheld" not in text
    assert "Table 3" not in text  # there are no runs


def test_raters_who_guess_are_withheld(responses: Path) -> None:
    table = rate(responses, Habits(noise=20.0, bias=0.0, careless=0.0, j_shaped=0.0), 2)
    assert all(a.value < THRESHOLD and not a.is_enough for a in table.agreements)
    tables = reproduce([], table)
    text = shown(tables)
    assert "on-topic: means withheld, Cohen kappa is not at least 0.40" in text
    assert re.search(r"\[−0\.\d\d, ", text)  # a real minus sign, as in every other table
    assert not re.search(r"-0\.\d\d", text)
    assert all(mean["value"] is None for mean in json.loads(tables.to_json())["table_4"]["means"])


def test_other_ratings(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("item,system,rater,criterion,value\na,tf,r,quality,3\n")
    with pytest.raises(DataError, match="unknown criterion"):
        read_snippets(tmp_path / "r.csv")
