"""The judge of single responses: its features without models, its weights, and what it has seen."""

from __future__ import annotations

import json
import math
from itertools import product
from typing import Any

import numpy as np
import pytest

from palaver.judges.labels import SEEN
from palaver.judges.response import (
    LINEAR,
    PENALTIES,
    SHARES,
    WEIGHTS,
    WIDTHS,
    KernelRidge,
    ResponseJudge,
    fit_kernel_ridge,
    text_digest,
)
from palaver.judges.response_features import (
    ABOUT_KNOWLEDGE,
    FEATURES,
    WITHOUT_KNOWLEDGE,
    FeatureRows,
    ResponseFeatures,
    normalise_text,
    prompt_of,
)
from palaver.judges.response_likelihood import ReplyLikelihood, ReplyPrompt
from palaver.judges.response_states import LAYERS, ReplyStates
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


class States:
    def read(self, prompts: Any) -> np.ndarray:
        return np.array([[float(len(prompt.reply) + k) for k in range(1152)] for prompt in prompts])


@pytest.fixture
def features() -> ResponseFeatures:
    return ResponseFeatures(Likelihood(), Letters(), States())


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
    rows = features.measure(
        [response("I like cats because they sleep a lot.", "Cats sleep a lot. Dogs bark."), response("Yes.")]
    )
    table = rows.table
    assert rows.states.shape == (2, 1152)
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
    table = features.measure([response("why do you like cats?"), response("no no no no"), response("")]).table
    columns = {name: k for k, name in enumerate(FEATURES)}
    assert table[0, columns["copies_turn"]] == 1.0
    assert table[0, columns["question"]] == 1.0
    assert table[1, columns["repeats"]] == pytest.approx(2 / 3)


def rows_of(n: int) -> FeatureRows:
    rng = np.random.default_rng(0)
    return FeatureRows(rng.normal(size=(n, len(FEATURES))), rng.normal(size=(n, 12)))


def test_the_regression_is_the_mean_of_scikit_learns() -> None:
    from sklearn.kernel_ridge import KernelRidge as Reference
    from sklearn.metrics.pairwise import rbf_kernel

    rows = rows_of(80)
    target = rows.table[:, 0] - 0.5 * rows.table[:, 3] + rows.states[:, 2]
    ours = fit_kernel_ridge(rows, target, FEATURES[:6])
    used, states = (
        np.clip((x - x.mean(axis=0)) / x.std(axis=0), -4, 4) for x in (rows.table[:, :6], rows.states)
    )
    alike = np.mean([rbf_kernel(used, gamma=width) for width in WIDTHS], axis=0) + LINEAR * used @ used.T / 6
    predicted = []
    for penalty, share in product(PENALTIES, SHARES):
        kernel = alike + share * states @ states.T / 12
        reference = Reference(alpha=penalty, kernel="precomputed").fit(kernel, target - target.mean())
        predicted.append(reference.predict(kernel) + target.mean())
    assert ours.predict(rows) == pytest.approx(np.mean(predicted, axis=0))
    again = KernelRidge.of(json.loads(json.dumps(ours.as_dict())))
    assert again.predict(rows) == pytest.approx(ours.predict(rows), abs=0.01)


def test_what_is_missing_counts_as_the_mean() -> None:
    rows = rows_of(30)
    fit = fit_kernel_ridge(rows, rows.table[:, 0], FEATURES)
    at_the_mean = fit.predict(FeatureRows(fit.mean[None], fit.state_mean[None]))
    missing = FeatureRows(np.full((1, len(FEATURES)), math.nan), fit.state_mean[None])
    assert fit.predict(missing) == pytest.approx(at_the_mean)


def test_states_are_those_of_the_whole_model() -> None:
    """Half of the layers, the history read once for all replies: the same as reading each with all layers."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=60, hidden_size=36, intermediate_size=32, num_hidden_layers=LAYERS + 1,
        num_attention_heads=9, num_key_value_heads=3,
    )  # fmt: skip
    likelihood = ReplyLikelihood.__new__(ReplyLikelihood)
    likelihood.model = transformers.LlamaForCausalLM(config).eval()
    likelihood._begin = [0]
    likelihood._ids = lambda text: [ord(letter) % 60 for letter in text]  # type: ignore[method-assign]
    prompts = [ReplyPrompt(("hello",), "", reply) for reply in ("yes", "no, not at all")]
    states = ReplyStates(likelihood).read(prompts)
    for prompt, row in zip(prompts, states, strict=True):
        reply = likelihood._reply_ids(prompt.reply)
        ids = [*likelihood._prefixes(prompt.turns, "")["context"], *reply]
        with torch.inference_mode():
            hidden = likelihood.model(torch.tensor([ids]), output_hidden_states=True).hidden_states[LAYERS][0]
        expected = torch.cat([hidden[-len(reply) :].mean(dim=0), hidden[-1]])
        assert row == pytest.approx(expected.numpy(), abs=1e-5)


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
        assert fit.state_weights.shape == (1152,)
    assert not set(held["without_knowledge"]["features"]) & set(ABOUT_KNOWLEDGE)


def test_a_prompt_has_its_texts_in_one_form() -> None:
    prompt = prompt_of(response("Yes !", "A fact ."))
    assert (prompt.reply, prompt.knowledge, prompt.turns[0]) == ("yes!", "a fact.", "do you like cats?")
