"""The page on Topical-Chat is what its results files make, and these come from those of the trainings."""

from __future__ import annotations

import copy
import importlib.util
import json
import sys
from pathlib import Path
from statistics import mean
from types import ModuleType
from typing import Any

import pytest
from tests.results_pages import read_page, read_results

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def tables() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "topical_chat_tables", ROOT / "experiments/topical_chat/tables.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["topical_chat_tables"] = module
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_results_make(tables: ModuleType) -> None:
    page = read_page("topical-chat")
    results, knowledge, smollm = map(read_results, ("topical-chat", "knowledge", "topical-chat-smollm"))
    made = tables.fill(page, results, knowledge, smollm)
    assert page == made, "run: python experiments/topical_chat/tables.py"
    changed = copy.deepcopy(results)
    reached = next(row for row in changed["rows"] if row["ours"])
    reached["ours"]["test_freq"]["f1"]["value"] += 0.01
    assert tables.fill(page, changed, knowledge, smollm) != page
    changed = copy.deepcopy(knowledge)
    changed["splits"]["valid_freq"][0]["top1"]["value"] += 0.01
    assert tables.fill(page, results, changed, smollm) != page
    changed = copy.deepcopy(knowledge)
    changed["limits"]["second_within"]["0.05"] += 0.01
    assert tables.fill(page, results, changed, smollm) != page
    changed = copy.deepcopy(smollm)
    changed["decodings"]["table"][0]["f1"] += 0.01
    assert tables.fill(page, results, knowledge, changed) != page


def test_the_rows_are_those_of_the_trainings() -> None:
    """What responders.json has of a run is what the table has."""
    responders = read_results("responders")
    rows = {row["run"]: row for row in read_results("topical-chat")["rows"] if row["table"] == "table_3"}
    reached = [run for run in responders if run in rows and "test" in responders[run]]
    assert len(reached) >= 3
    for run in reached:
        for split, numbers in responders[run]["test"].items():
            ours: dict[str, Any] = rows[run]["ours"][split]
            assert ours["f1"]["value"] == numbers["unigram_f1"][0]
            ppl = numbers["ppl_word"]
            assert ours["ppl"]["value"] == (ppl[0] if isinstance(ppl, list) else ppl)
            assert rows[run]["n"][split] == numbers["n"]
    for run in ("modern-tf-knowledge", "modern-tf"):
        best = min(responders[run]["epochs"], key=lambda epoch: epoch["valid_ppl"])
        assert f"{best['valid_ppl_word']:.1f}" in read_page("topical-chat")


def test_the_rows_of_smollm_are_means_over_its_seeds() -> None:
    smollm = read_results("topical-chat-smollm")
    rows = {row["run"]: row for row in read_results("topical-chat")["rows"] if row["table"] == "table_3"}
    for run in {row["run"] for row in smollm["table"]}:
        for split, n in smollm["counts"].items():
            own = [row for row in smollm["table"] if (row["run"], row["split"]) == (run, split)]
            ours = rows[run]["ours"][split]
            assert ours["ppl"]["value"] == pytest.approx(mean(row["ppl_word"][0] for row in own))
            assert rows[run]["n"][split] == min(row["n"] for row in own) <= n
            if all(row["n_replies"] for row in own):
                assert ours["div_1"]["value"] == pytest.approx(mean(row["diversity_1"][0] for row in own))
    perplexities = ", ".join(f"{value:.1f}" for value in smollm["decodings"]["valid_ppl_word"])
    assert f"validation after each: {perplexities})" in read_page("topical-chat")


def test_what_the_page_says_about_other_sentences() -> None:
    page, rows = read_page("topical-chat"), read_results("topical-chat-smollm")["table"]
    frequent = {row["run"]: row for row in rows if row["split"] == "test_freq" and row["seed"] in (0, 1)}
    perplexity, f1 = (
        {run: f"{row[name][0]:.{digits}f}".replace("0.", ".") for run, row in frequent.items() if name in row}
        for name, digits in (("ppl_word", 1), ("unigram_f1", 3))
    )
    run = "smollm-tf-knowledge"
    assert f1[f"{run}/tfidf"] == f1[f"{run}/bm25"]
    assert f"F1 falls from {f1[run]} to {f1[f'{run}/tfidf']} (frequent)" in page
    tfidf, bm25, none = (perplexity[f"{run}/{name}"] for name in ("tfidf", "bm25", "no-sentence"))
    assert f"({tfidf} and {bm25} against {none})" in page
    assert f"brings {perplexity[f'{run}/trained']}." in page
    assert f"(`smollm-tf`) has {perplexity['smollm-tf']}:" in page


def test_what_the_page_says_is_reached() -> None:
    assert "All that was to be reached with the oracle's sentence is reached" in read_page("topical-chat")
    aims = {"test_freq": (19.5, 0.23, 0.85), "test_rare": (23.5, 0.20, 0.83)}
    for row in read_results("topical-chat-smollm")["table"]:
        if row["run"] == "smollm-tf-knowledge" and row["n_replies"]:
            perplexity, f1, diversity = aims[row["split"]]
            assert row["is_complete"]
            assert row["ppl_word"][0] <= perplexity
            assert row["unigram_f1"][0] >= f1
            assert row["diversity_1"][0] >= diversity


def test_the_selectors_say_where_they_come_from() -> None:
    knowledge = read_results("knowledge")
    assert knowledge["command"]
    assert knowledge["settings_chosen_on"] == "valid_freq"
    for card in ("card", "encoder_card"):
        assert "CDLA" in json.dumps(knowledge[card])
    assert [row["selector"] for row in knowledge["splits"]["valid_freq"]][-3:] == [
        "trained",
        "trained-encoder",
        "most common place",
    ]


def test_what_the_page_says_about_the_aim() -> None:
    page, knowledge = read_page("topical-chat"), read_results("knowledge")
    best = next(row for row in knowledge["splits"]["valid_freq"] if row["selector"] == "trained-encoder")
    assert best["top1"]["value"] < 0.2
    assert "was not reached" in page
    missing = [note.rpartition(": ")[2] for note in knowledge["notes"] if "without their text" in note]
    assert f"({missing[0]} facts and {missing[1]} articles without their text)" in page
    heard = knowledge["limits"]["first_choice_by_first_words"]["4"]
    assert f"reply for {heard:.2f}".replace("0.", ".") in page
    assert knowledge["limits"]["oracle_cosine_below"]["0.2"] > 0.5  # in half of the turns
