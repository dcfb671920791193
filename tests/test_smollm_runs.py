"""The runs of SmolLM2 on a GPU: what is chosen there is what the library measures here."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.causal_base import write_base

from palaver.metrics.diversity import diversity_of
from palaver.metrics.overlap import unigram_f1

FOLDER = Path(__file__).parents[1] / "experiments/topical_chat"


@pytest.fixture(scope="module")
def models() -> Iterator[ModuleType]:
    sys.path.insert(0, str(FOLDER))
    import smollm_testing  # type: ignore[import-not-found]

    yield smollm_testing
    sys.path.remove(str(FOLDER))


def test_figures_without_numba_are_those_of_the_library(models: ModuleType) -> None:
    texts = ["The cat's, a dog!", "I don't know. I don't know...", "yes", "Tea at 10:30, tea at 11."]
    for text in texts:
        for other in texts:
            assert models.word_f1(text, other) == pytest.approx(unigram_f1(text, other), abs=1e-12)
        assert models.diversity(text, 1) == pytest.approx(diversity_of(text, 1), abs=1e-12)
    assert models.diversity(texts[0], 2) == pytest.approx(diversity_of(texts[0], 2), abs=1e-12)
    assert models.diversity("", 1) is models.word_f1("yes", "?!") is None
    assert models.word_f1("", "yes") == 0


def row(ppl: float, f1: float, div_1: float) -> dict[str, Any]:
    return {"ppl_word": ppl, "f1": f1, "div_1": div_1}


def test_the_rule_for_the_decoding(models: ModuleType) -> None:
    greedy, diverse, short = row(18, 0.25, 0.80), row(18, 0.24, 0.87), row(18, 0.22, 0.99)
    assert models.take_best([greedy, diverse, short]) is diverse
    unlikely = row(25, 0.30, 0.90)
    assert models.take_best([greedy, unlikely, diverse]) is diverse
    assert models.take_best([greedy, row(18, 0.235, 0.84), row(18, 0.21, 0.85)])["div_1"] == 0.84


def test_other_runs_of_an_earlier_file_are_taken_over(models: ModuleType, tmp_path: Path) -> None:
    import json

    import smollm_data  # type: ignore[import-not-found]
    import smollm_report  # type: ignore[import-not-found]

    def table_row(run: str, seed: int, n_replies: int) -> dict[str, Any]:
        row = {"run": run, "seed": seed, "split": "test_freq", "n_replies": n_replies}
        return row | {"is_complete": n_replies >= 5}

    trained = {"command": "then", "runs": {"smollm-tf-1": {"epochs": [1]}, "smollm-tf-knowledge-2": {}}}
    before = {"table": [table_row("smollm-tf", 1, 5), table_row("smollm-tf-knowledge", 2, 5)]}
    before["table"] += [table_row("smollm-tf", 3, 4), table_row("smollm-untrained", 0, 4)]
    (tmp_path / "before.json").write_text(json.dumps(before | {"training": [trained]}))
    now: dict[str, Any] = {"training": []}
    now["table"] = [table_row("smollm-tf-knowledge", 2, 7), table_row("smollm-tf", 2, 7)]
    smollm_report._take_over(now, tmp_path / "before.json")
    assert [(row["run"], row["seed"], row["n_replies"]) for row in now["table"]] == [
        ("smollm-tf", 1, 5),
        ("smollm-tf", 2, 7),
        ("smollm-tf-knowledge", 2, 7),
        ("smollm-untrained", 0, 4),
    ]
    assert now["table"][0]["decoding"] == "greedy"
    assert now["training"] == [{"command": "then", "runs": {"smollm-tf-1": {"epochs": [1]}}}]
    assert smollm_data.without_folders("model.base=/a/b/smollm2") == "model.base=smollm2"
    assert smollm_data.without_folders("out=runs/x") == "out=runs/x"


def test_no_step_comes_before_what_it_needs(models: ModuleType) -> None:
    import smollm  # type: ignore[import-not-found]
    import smollm_queue  # type: ignore[import-not-found]

    selectors = ["tfidf", "trained", "no-sentence"]
    steps = smollm_queue.plan(smollm.PARTS, [1, 2, 3], selectors)
    assert len(set(steps)) == len(steps) == 23
    for place, step in enumerate(steps):
        assert set(step.needs) <= set(steps[:place]), step.label
    assert {step.run for step in steps if step.bundle == "selected"} == {
        f"tf-knowledge/{name}" for name in selectors
    }


def test_shared_keys_change_no_reply(
    models: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import smollm_training  # type: ignore[import-not-found]
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    from palaver.generation.decode import Decoding, decode

    monkeypatch.setattr(smollm_training, "RUNS", tmp_path)
    smollm_training.keep_untrained(str(write_base(tmp_path / "base")))
    model = models.load(tmp_path / "untrained-1/last")[0].double()
    attention = model.language_model.base_model.layers[0].self_attn
    assert attention.num_key_value_groups > 1
    contexts, facts = [[30, 40, 50], [35], [60] * 9], [[], [31, 32], [70] * 5]
    how = Decoding(max_length=12, min_length=12)
    before = decode(model, contexts, how, knowledge=facts)
    plain = ALL_ATTENTION_FUNCTIONS["sdpa"]
    try:
        models.share_keys()
        after = decode(model, contexts, how, knowledge=facts)
    finally:
        ALL_ATTENTION_FUNCTIONS.register("sdpa", plain)
    for one, other in zip(before, after, strict=True):
        assert one.tokens == other.tokens
        assert one.logprob == pytest.approx(other.logprob, abs=1e-9)


def test_rows_that_do_not_fit_are_decoded_in_smaller_groups(
    models: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    groups = []

    def decode(model: Any, contexts: Any, how: Any, *, batch_size: int, keys: list[int]) -> list[Any]:
        if len(contexts) > 40:
            raise torch.OutOfMemoryError
        groups.append(len(contexts))
        return [(len(context), key) for context, key in zip(contexts, keys, strict=True)]

    monkeypatch.setattr(models, "decode", decode)
    contexts = [[1] * (i % 7) for i in range(100)]
    decoded = models.decode_in_memory(None, contexts, None, 128, keys=list(range(100)))
    assert decoded == [(i % 7, i) for i in range(100)]
    assert groups == [32, 32, 32, 4]
