"""The page on response models says what its results file says."""

from __future__ import annotations

from typing import Any

from tests.results_pages import decimals, interval, read_page, read_results, table_rows

PAGE, RESULTS = read_page("responders"), read_results("responders")


def best(run: str) -> dict[str, Any]:
    epochs: list[dict[str, Any]] = RESULTS[run]["epochs"]
    return min(epochs, key=lambda epoch: epoch["valid_ppl"])


def test_bases_and_speaker_models() -> None:
    rows = table_rows(PAGE, "| run | model | parameters |")
    assert [row[0] for row in rows] == ["xing-pretrain", "modern-pretrain", "xing-speaker", "modern-speaker"]
    for run, _, _, epochs, minutes, per_token, per_word in rows:
        assert epochs.startswith(f"{len(RESULTS[run]['epochs'])} of")
        assert minutes == f"{RESULTS[run]['epochs'][-1]['seconds'] / 60:.0f}"
        assert per_token == f"{best(run)['valid_ppl']:.1f}"
        assert per_word == f"{best(run)['valid_ppl_word']:.1f}"
        assert "best" not in epochs or epochs.endswith(f"best {best(run)['epoch']}")


def test_topical_chat() -> None:
    rows = table_rows(PAGE, "| run | test set |")
    shown = [(row[0].split(" ")[0], row[1]) for row in rows]
    assert shown == [
        (run, kind) for run in ("tf", "tf-knowledge", "modern-tf") for kind in ("frequent", "rare")
    ]
    for (run, kind), row in zip(shown, rows, strict=True):
        test = RESULTS[run]["test"][{"frequent": "test_freq", "rare": "test_rare"}[kind]]
        assert row[2:] == [
            f"{test['n']:,}",
            f"{test['ppl_word']:.1f}",
            f"{test['ppl_token']:.1f}",
            interval(*test["unigram_f1"], digits=3),
            decimals(test["diversity_1"][0]),
            decimals(test["diversity_2"][0]),
        ]
    for run in ("modern-tf-knowledge", "modern-tf"):
        assert f"{best(run)['valid_ppl_word']:.1f}" in PAGE


def test_shipped_checkpoints() -> None:
    rows = table_rows(PAGE, "| name | model | size |")
    assert [row[0] for row in rows] == ["default", "default-speaker", "default-personality"]
    for run, _, _, epochs, minutes, perplexity in rows:
        assert epochs == f"{len(RESULTS[run]['epochs'])}"
        assert minutes == f"{RESULTS[run]['epochs'][-1]['seconds'] / 60:.0f}"
        assert perplexity == f"{best(run)['valid_ppl']:.1f} / {best(run)['valid_ppl_word']:.1f}"


def test_knowledge_selection() -> None:
    results = read_results("knowledge")["selectors"]
    names = {"tfidf": "TF-IDF", "bm25": "BM25"}
    rows = [
        [
            names[row["selector"]],
            interval(row["top1"]["value"], row["top1"]["low"], row["top1"]["high"], digits=3),
            *(decimals(row[key]["value"], 3) for key in ("top5", "reciprocal_rank", "cosine_share")),
        ]
        for row in results
    ]
    guessing = ["guessing", decimals(results[0]["chance_top1"], 3), "", "", ""]
    assert table_rows(PAGE, "| selector | first choice |") == [*rows, guessing]
