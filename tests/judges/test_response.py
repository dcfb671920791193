"""The judge of single responses: its features without models, its weights, and what it has seen."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from palaver.judges.labels import SEEN
from palaver.judges.response import LINEAR, WEIGHTS, KernelRidge, ResponseJudge, fit_kernel_ridge, text_digest
from palaver.judges.response_features import (
    ABOUT_KNOWLEDGE,
    FEATURES,
    WITHOUT_KNOWLEDGE,
    ResponseFeatures,
    normalise_text,
    prompt_of,
)
from palaver.schema import Response


class Likelihood:
    def score(self, prompts: Any) -> list[dict[str, np.ndarray]]:
        scores = []
        for prompt in prompts:
            names = ["alone", "last", "context", *(["knowledge"] if prompt.knowledge else [])]
            scores.append({name: np.array([-3.0, -1.0, -2.0]) + k for k, name in enumerate(names)})
        return scores


class Letters:
    def encode(self, texts: list[str]) -> np.ndarray:
        return np.array([[text.count(letter) + 0.1 for letter in "aeiou"] for text in texts])


class Overlap:
    def score(self, pairs: Any) -> np.ndarray:
        return np.array([float(len(set(a.split()) & set(b.split()))) for a, b in pairs])


@pytest.fixture
def features() -> ResponseFeatures:
    return ResponseFeatures(Likelihood(), Letters(), Overlap())


def response(text: str, knowledge: str | None = None) -> Response:
    turns = [{"speaker": "user", "text": "Do you like cats?"}, {"speaker": "system", "text": "I do."},
             {"speaker": "user", "text": "Why do you like cats?"}]  # fmt: skip
    return Response(id="1", system="s", context=turns, response=text, knowledge=knowledge)


def test_split_and_plain_text_come_to_one_form() -> None:
    plain = "It’s fine, isn't it? (I think so) 50%!"
    split = "it 's fine , is n't it ? ( i think so ) 50 % !"
    assert normalise_text(plain) == normalise_text(split) == "it's fine, isn't it? (i think so) 50%!"
    assert normalise_text("  Café \n olé ") == "cafe ole"


def test_every_feature_is_a_number_and_knowledge_has_its_own(features: ResponseFeatures) -> None:
    table = features.table(
        [response("I like cats because they sleep a lot.", "Cats sleep a lot. Dogs bark."), response("Yes.")]
    )
    assert table.shape == (2, len(FEATURES))
    assert np.isfinite(table[0]).all()
    columns = {name: k for k, name in enumerate(FEATURES)}
    assert np.isfinite(table[1, [columns[name] for name in WITHOUT_KNOWLEDGE]]).all()
    assert np.isnan(table[1, [columns[name] for name in ABOUT_KNOWLEDGE]]).all()
    first = dict(zip(FEATURES, table[0], strict=True))
    assert first["words"] == pytest.approx(math.log1p(8))
    assert first["copies_knowledge"] == pytest.approx(math.log1p(3))  # sleep a lot
    assert first["gain_last"] == pytest.approx(1.0)
    assert first["gain_context"] == pytest.approx(2.0)
    assert first["likelihood"] == pytest.approx(0.0)
    assert first["gain_knowledge"] == pytest.approx(2.0)
    assert first["question"] == 0.0


def test_repetition_and_questions_are_seen(features: ResponseFeatures) -> None:
    table = features.table([response("why do you like cats?"), response("no no no no"), response("")])
    columns = {name: k for k, name in enumerate(FEATURES)}
    assert table[0, columns["copies_turn"]] == 1.0
    assert table[0, columns["question"]] == 1.0
    assert table[1, columns["repeats"]] == pytest.approx(2 / 3)


def test_the_regression_is_scikit_learns() -> None:
    from sklearn.kernel_ridge import KernelRidge as Reference
    from sklearn.metrics.pairwise import rbf_kernel

    rng = np.random.default_rng(0)
    table = rng.normal(size=(80, len(FEATURES)))
    target = table[:, 0] - 0.5 * table[:, 3] + rng.normal(size=80)
    ours = fit_kernel_ridge(table, target, FEATURES[:6], width=0.05, penalty=2.0)
    used = table[:, :6]
    standard = np.clip((used - used.mean(axis=0)) / used.std(axis=0), -4, 4)
    kernel = rbf_kernel(standard, gamma=0.05) + LINEAR * standard @ standard.T / 6
    reference = Reference(alpha=2.0, kernel="precomputed").fit(kernel, target - target.mean())
    assert ours.predict(table) == pytest.approx(reference.predict(kernel) + target.mean())
    again = KernelRidge.of(json.loads(json.dumps(ours.as_dict())))
    assert again.predict(table) == pytest.approx(ours.predict(table), abs=0.01)


def test_what_is_missing_counts_as_the_mean() -> None:
    table = np.random.default_rng(0).normal(size=(30, len(FEATURES)))
    fit = fit_kernel_ridge(table, table[:, 0], FEATURES, width=0.02, penalty=1.0)
    at_the_mean = fit.predict(fit.mean[None])
    assert fit.predict(np.full((1, len(FEATURES)), math.nan)) == pytest.approx(at_the_mean)


@pytest.fixture
def judge(features: ResponseFeatures, monkeypatch: pytest.MonkeyPatch) -> ResponseJudge:
    monkeypatch.setattr(ResponseFeatures, "load", lambda device: features)
    return ResponseJudge()


def test_it_rates_and_says_what_it_has_seen(judge: ResponseJudge) -> None:
    known = response("I like cats a lot.")
    judge._seen = frozenset({text_digest(known)})
    rows = list(judge.judge([known, response("Dogs bark, too."), response(" ")]))
    assert [row.signature.endswith(SEEN) for row in rows if row.signature] == [True, False]
    assert all(math.isfinite(row.value) for row in rows)
    assert judge.left_out == {"empty responses": 1}
    assert sum(judge.notes.values()) == 1


def test_the_weights_are_plain_and_name_their_data() -> None:
    held = json.loads(WEIGHTS.read_bytes())
    assert WEIGHTS.stat().st_size < 300_000
    assert held["licence"]
    assert 300 < len(held["trained_on"]) <= 360  # some systems said the same
    for name in ("with_knowledge", "without_knowledge"):
        fit = KernelRidge.of(held[name])
        assert set(fit.features) <= set(FEATURES)
        assert np.isfinite(fit.weights).all()
    assert not set(held["without_knowledge"]["features"]) & set(ABOUT_KNOWLEDGE)


def test_a_prompt_has_its_texts_in_one_form() -> None:
    prompt = prompt_of(response("Yes !", "A fact ."))
    assert (prompt.reply, prompt.knowledge, prompt.turns[0]) == ("yes!", "a fact.", "do you like cats?")
