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
CHECKPOINTS = ROOT / "src/palaver/generation/checkpoints"


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
    names = ("topical-chat", "knowledge", "knowledge-reranker", "topical-chat-smollm")
    results, knowledge, reranker, smollm = map(read_results, names)
    made = tables.fill(page, results, knowledge, reranker, smollm)
    assert page == made, "run: python experiments/topical_chat/tables.py"
    changed = copy.deepcopy(results)
    reached = next(row for row in changed["rows"] if row["ours"])
    reached["ours"]["test_freq"]["f1"]["value"] += 0.01
    assert tables.fill(page, changed, knowledge, reranker, smollm) != page
    changed = copy.deepcopy(knowledge)
    changed["splits"]["valid_freq"][0]["top1"]["value"] += 0.01
    assert tables.fill(page, results, changed, reranker, smollm) != page
    changed = copy.deepcopy(knowledge)
    changed["limits"]["second_within"]["0.05"] += 0.01
    assert tables.fill(page, results, changed, reranker, smollm) != page
    changed = copy.deepcopy(reranker)
    changed["splits"]["valid_freq"]["difference"]["value"] += 0.01
    assert tables.fill(page, results, knowledge, changed, smollm) != page
    changed = copy.deepcopy(smollm)
    changed["decodings"]["table"][0]["f1"] += 0.01
    assert tables.fill(page, results, knowledge, reranker, changed) != page


def test_the_rows_are_those_of_the_trainings() -> None:
    """What the results files of the trainings have of a run is what the tables have."""
    names = ("responders", "topical-chat-widths", "topical-chat-pretrained", "topical-chat-modern")
    trained = {run: row for name in names for run, row in read_results(name).items()}
    rows = {row["run"]: row for row in read_results("topical-chat")["rows"]}
    reached = [run for run in trained if run in rows and trained[run].get("test")]
    assert len(reached) >= 10
    for run in reached:
        for split, ours in rows[run]["ours"].items():
            numbers: dict[str, Any] = trained[run]["test"][split]
            assert ours["f1"]["value"] == numbers["unigram_f1"][0]
            ppl = numbers["ppl_word"]
            assert ours["ppl"]["value"] == (ppl[0] if isinstance(ppl, list) else ppl)
            assert rows[run]["n"][split] == numbers["n"]


def test_what_the_page_says_about_the_modern_rows() -> None:
    page, modern = " ".join(read_page("topical-chat").split()), read_results("topical-chat-modern")
    assert "**`modern-tf-knowledge` was cut off**" in page
    run, base = modern["modern-tf-knowledge"], modern["modern-pretrain"]["epochs"]
    assert run["end"] == "its GPU time was spent"
    after = [epoch["valid_ppl_word"] for epoch in run["epochs"]]
    assert f"{after[0]:.1f} and {after[1]:.1f} per word on validation" in page
    assert len(after) == len(base) == 2
    assert f"(validation {base[-1]['valid_ppl_word']:.1f} per word)" in page
    before = read_results("responders")
    assert len(before["modern-pretrain"]["epochs"]) == 3
    for name, words in (("modern-tf", "had"), ("modern-tf-knowledge", "came to")):
        best = min(before[name]["epochs"], key=lambda epoch: epoch["valid_ppl"])
        assert f"{words} {best['valid_ppl_word']:.1f} (epoch {best['epoch']})" in page
    assert "test" not in before["modern-tf-knowledge"]
    for split in ("test_freq", "test_rare"):
        f1 = run["test"][split]["unigram_f1"][0]
        assert f1 > before["modern-tf"]["test"][split]["unigram_f1"][0]


def test_what_the_page_says_about_pretraining() -> None:
    page, pretrained = read_page("topical-chat"), read_results("topical-chat-pretrained")
    for run in ("tf", "tf-pt", "tf-knowledge", "tf-knowledge-pt"):
        epochs = (pretrained.get(run) or read_results("responders")[run])["epochs"]
        best = min(epochs, key=lambda epoch: epoch["valid_ppl_word"])
        figures = f"{epochs[4]['valid_ppl_word']:.1f} | {best['valid_ppl_word']:.1f}"
        assert f"| `{run}` | {figures} (epoch {best['epoch']} of {len(epochs)}) |" in page
    assert f"validation {pretrained['tf-pretrain']['epochs'][-1]['valid_ppl_word']:.1f} per word" in page
    assert {pretrained[run]["end"] for run in ("tf-pt", "tf-knowledge-pt")} == {"its GPU time was spent"}


def test_what_the_page_says_about_widths() -> None:
    page, widths = read_page("topical-chat"), read_results("topical-chat-widths")
    assert {len(run["epochs"]) for run in widths.values()} == {21}
    assert all(run["end"] == "its GPU time was spent" for run in widths.values())
    paper = read_results("responders")["tf-knowledge"]["epochs"]
    assert f"it was trained for {len(paper)} epochs, they for 21" in page
    after = {name: run["epochs"][20]["valid_ppl_word"] for name, run in widths.items()}
    w16, w64, w128, w512 = (f"{after[f'tf-knowledge-w{w}']:.1f}" for w in (16, 64, 128, 512))
    w32 = f"{paper[20]['valid_ppl_word']:.1f}"
    said = f"was {w32}, that of 16 was {w16}, of 64 {w64}, of 128 {w128} and of 512 {w512}:"
    assert said in " ".join(page.split())


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
    page, rows = " ".join(read_page("topical-chat").split()), read_results("topical-chat-smollm")["table"]
    frequent = {(row["run"], row["seed"]): row for row in rows if row["split"] == "test_freq"}

    def said(name: str, seed: int, column: str) -> str:
        digits = 1 if column == "ppl_word" else 3
        return f"{frequent[name, seed][column][0]:.{digits}f}".replace("0.", ".")

    run = "smollm-tf-knowledge"
    f1 = {name: said(f"{run}/{name}", 1, "unigram_f1") for name in ("tfidf", "bm25")}
    assert f1["tfidf"] == f1["bm25"]
    assert f"F1 falls from {said(run, 1, 'unigram_f1')} to {f1['tfidf']} (frequent)" in page
    tfidf, bm25, none = (said(f"{run}/{name}", 1, "ppl_word") for name in ("tfidf", "bm25", "no-sentence"))
    assert f"({tfidf} and {bm25} against {none})" in page
    trained = ("trained", "trained-encoder")
    likely, overlap = ([said(f"{run}/{n}", 3, c) for n in trained] for c in ("ppl_word", "unigram_f1"))
    assert f"bring {' and '.join(likely)}, and F1 {' and '.join(overlap)}." in page
    plain = next(row for row in read_results("topical-chat")["rows"] if row["run"] == "smollm-tf")
    ours = plain["ours"]["test_freq"]
    f1_plain = f"{ours['f1']['value']:.3f}".replace("0.", ".")
    assert f"(`smollm-tf`) has {ours['ppl']['value']:.1f} and F1 {f1_plain}:" in page


def test_what_the_page_says_about_the_adapter() -> None:
    page, smollm = " ".join(read_page("topical-chat").split()), read_results("topical-chat-smollm")
    rows = {row["run"]: row["ours"] for row in read_results("topical-chat")["rows"]}

    def said(run: str, column: str) -> str:
        figures = (rows[run][split][column]["value"] for split in ("test_freq", "test_rare"))
        return " / ".join(f"{x:.1f}" if column == "ppl" else f"{x:.3f}"[1:] for x in figures)

    adapter, whole, published = (
        f"smollm-{name}" for name in ("tf-knowledge-lora", "tf-knowledge", "untrained")
    )
    ppl = [said(run, "ppl") for run in (adapter, whole, published)]
    assert f"{ppl[0]} against {ppl[1]} of all weights and {ppl[2]} of SmolLM2 as published" in page
    assert f"F1 {said(adapter, 'f1')} against {said(whole, 'f1')}." in page
    (run,) = (runs["runs"][f"{adapter}-1"] for runs in smollm["training"] if f"{adapter}-1" in runs["runs"])
    assert len(run["epochs"]) == 1
    assert {"optimiser.batch_tokens=16384", "model.lora_rank=8"} <= set(run["settings"])
    card = " ".join((CHECKPOINTS / "default-knowledge/README.md").read_text(encoding="utf-8").split())
    ours, best = (
        [said(name, column).replace(" / ", " and ") for column in ("ppl", "f1")] for name in (adapter, whole)
    )
    assert f"is {ours[0].replace(' and', ' (frequent) and')} (rare), unigram F1 {ours[1]};" in card
    assert f"reach {best[0]}, {best[1]} (" in card


def test_what_the_page_says_about_the_language_model_that_chooses() -> None:
    page, reranker = read_page("topical-chat"), read_results("knowledge-reranker")
    assert "A language model tuned for the choice does not help" in page
    for split, row in reranker["splits"].items():
        if split.startswith("test"):
            assert row["difference"]["low"] < 0 < row["difference"]["high"]
    assert f"for the {reranker['n_best']} sentences" in page
    assert f"lower {reranker['settings']['layers']} layers" in page


def test_what_the_page_says_is_reached() -> None:
    page = read_page("topical-chat")
    assert "All that was to be reached with the oracle's sentence is reached" in page
    aims = {"test_freq": (19.5, 0.23, 0.85), "test_rare": (23.5, 0.20, 0.83)}
    for row in read_results("topical-chat-smollm")["table"]:
        if row["run"] == "smollm-tf-knowledge":
            perplexity, f1, diversity = aims[row["split"]]
            assert row["is_complete"]
            assert row["ppl_word"][0] <= perplexity
            assert row["unigram_f1"][0] >= f1
            assert row["diversity_1"][0] >= diversity
        elif row["run"] == "smollm-tf-knowledge-lora":
            perplexity, f1, diversity = aims[row["split"]]
            assert row["ppl_word"][0] <= perplexity
            assert (row["unigram_f1"][0] >= f1) is (row["split"] == "test_rare")
            assert row["diversity_1"][0] >= diversity
            assert f".{1000 * row['unigram_f1'][0]:.0f}" in page


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
