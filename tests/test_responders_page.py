"""The page on response models says what its results file says."""

from __future__ import annotations

from typing import Any

from tests.results_pages import read_page, read_results, table_rows

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


def test_shipped_checkpoints() -> None:
    rows = table_rows(PAGE, "| name | model | size |")
    assert [row[0] for row in rows] == ["default", "default-speaker", "default-personality"]
    for run, _, _, epochs, minutes, perplexity in rows:
        assert epochs == f"{len(RESULTS[run]['epochs'])}"
        assert minutes == f"{RESULTS[run]['epochs'][-1]['seconds'] / 60:.0f}"
        assert perplexity == f"{best(run)['valid_ppl']:.1f} / {best(run)['valid_ppl_word']:.1f}"
