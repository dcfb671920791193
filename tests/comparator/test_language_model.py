"""The language model inside the comparator, on a tiny Llama with random weights."""

from __future__ import annotations

from importlib import util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
import transformers
from safetensors import safe_open
from tests.comparator.conftest import WORDS

from palaver.comparator import scorer as scorers
from palaver.comparator.language_model import (
    SYSTEM,
    USER,
    AdapterSettings,
    LanguageModel,
    cut_by_tokens,
    open_base,
    pooled_states,
    save_adapter,
    target_modules,
    tokenise,
)
from palaver.comparator.scorer import JoinedScorer, JoinWeights, PalaverScorer, Scores, load_scorer
from palaver.errors import UserError
from palaver.schema import Dialogue, Turn

SETTINGS = AdapterSettings(layers=2, rank=2, alpha=4.0, max_tokens=24, outputs=3)


def dialogue(name: str, *texts: str) -> Dialogue:
    turns = [Turn(speaker="user" if i % 2 == 0 else "system", text=t) for i, t in enumerate(texts)]
    return Dialogue(id=name, turns=tuple(turns))


TALKS = [
    dialogue("a", "hello there", "I love music too!", "why do you say that", "no no no"),
    dialogue("b", "hello there", "tell me more about your dog"),
    dialogue("c", "hello there", *["i love music too", "that is nice"] * 9, "i do not know"),
]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("llama")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "user", "bot", ":", "!", *WORDS]
    (folder / "vocab.txt").write_text("\n".join(dict.fromkeys(words)))
    transformers.BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    config = transformers.LlamaConfig(
        vocab_size=len(words), hidden_size=16, intermediate_size=32, num_hidden_layers=3,
        num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=64,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(0)
        transformers.LlamaForCausalLM(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def adapter(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    network, _ = open_base(base, SETTINGS.layers)
    arrays: dict[str, Any] = {}
    with torch.random.fork_rng():
        torch.manual_seed(1)
        for name, module in target_modules(network).items():
            n_out, n_in = module.weight.shape
            arrays[f"{name}.down"] = torch.randn(SETTINGS.rank, n_in)
            arrays[f"{name}.up"] = torch.randn(n_out, SETTINGS.rank)
        arrays["head.weight"], arrays["head.bias"] = torch.randn(3, 32), torch.randn(3)
    path: Path = tmp_path_factory.mktemp("adapter") / "language_model.safetensors"
    save_adapter(path, arrays, SETTINGS, seed=1)
    return path


def test_tokens_have_the_role_of_their_turn_and_the_end_is_kept(base: Path) -> None:
    _, tokenizer = open_base(base, 1)
    rows = tokenise([[(True, "hello there"), (False, "no no no")]], tokenizer, 100)
    assert rows.roles.tolist() == [USER] * 4 + [SYSTEM] * 5  # the role's name and its colon belong to it
    cut = tokenise([[(True, "hello there"), (False, "no no no")]], tokenizer, 5)
    assert cut.tokens.tolist() == rows.tokens[-5:].tolist()


def test_scores_are_those_of_the_adapter_beside_the_base(base: Path, adapter: Path) -> None:
    """Merged weights give what the low-rank maps give beside the base, dialogue by dialogue."""
    from safetensors.torch import load_file

    model = LanguageModel.load(adapter, base=base, half=False)
    arrays = {name: array.float() for name, array in load_file(adapter).items()}
    network, tokenizer = open_base(base, SETTINGS.layers)
    for name, module in target_modules(network).items():
        down, up = arrays[f"{name}.down"], arrays[f"{name}.up"]
        module.register_forward_hook(
            lambda m, x, out, down=down, up=up: out + 2.0 * (x[0] @ down.T @ up.T)  # alpha / rank
        )
    expected = []
    for talk in TALKS[:2]:
        turns = [(turn.speaker == "user", turn.text.lower()) for turn in talk.turns]
        rows = tokenise([turns], tokenizer, SETTINGS.max_tokens)
        tokens, roles = (torch.from_numpy(a) for a in rows.padded(np.array([0])))
        with torch.no_grad():
            states = pooled_states(network(input_ids=tokens).last_hidden_state, roles)
        expected.append(float((states @ arrays["head.weight"].T + arrays["head.bias"])[0, 0]))
    assert np.allclose(model.score(TALKS[:2]), expected, atol=1e-4)


def test_what_shares_a_batch_changes_nothing(base: Path, adapter: Path) -> None:
    model = LanguageModel.load(adapter, base=base, half=False)
    together = model.score(TALKS)
    assert np.allclose(together, [model.score([talk])[0] for talk in TALKS], atol=1e-4)
    assert np.allclose(together, model.score(TALKS, budget=1), atol=1e-4)
    assert len(model.score([])) == 0
    shouted = [dialogue("a", "hello there", "I LOVE MUSIC TOO! 😀", "why do you say that", "no no no")]
    assert np.allclose(model.score(shouted), together[:1], atol=1e-6)


def test_a_dialogue_is_padded_alike_whatever_stands_beside_it(base: Path, adapter: Path) -> None:
    """In bfloat16 the score moves in the third digit where a dialogue is padded further."""
    model = LanguageModel.load(adapter, base=base)
    widths: list[int] = []
    model.base.register_forward_pre_hook(
        lambda module, given, named: widths.append(named["input_ids"].shape[1]), with_kwargs=True
    )
    short = dialogue("d", "hello", "hello")
    together = model.score([short, *TALKS])
    of_all = set(widths)
    widths.clear()
    assert np.allclose(together[0], model.score([short]), rtol=0, atol=1e-6)
    assert set(widths) <= of_all


def test_pieces_stay_within_their_budget() -> None:
    lengths = np.array([5, 1, 9, 3, 3])
    pieces = cut_by_tokens(lengths, 9)
    assert sorted(np.concatenate(pieces).tolist()) == [0, 1, 2, 3, 4]
    assert all(len(piece) == 1 or lengths[piece].max() * len(piece) <= 9 for piece in pieces)


def test_a_damaged_adapter_and_a_small_base_are_told(base: Path, tmp_path: Path) -> None:
    (tmp_path / "no.safetensors").write_bytes(b"nothing")
    with pytest.raises(UserError, match="cannot be read as an adapter"):
        LanguageModel.load(tmp_path / "no.safetensors", base=base)
    with pytest.raises(UserError, match="has 3 layers, not 4"):
        open_base(base, 4)


class Fixed(PalaverScorer):
    """Scores by the number of turns."""

    def __init__(self) -> None:
        self.name, self.folder = "fixed", None

    def _score(self, dialogues: Any, progress: Any) -> Scores:
        n = np.array([float(len(one.turns)) for one in dialogues])
        return Scores(n, n - 1, n + 1)


class Constant:
    def score(self, dialogues: Any, **options: Any) -> Any:
        return np.full(len(dialogues), 3.0)


def test_joined_scores_add_up() -> None:
    scorer = JoinedScorer(Fixed(), lambda: Constant(), JoinWeights(0.5, 2.0, 1.0))  # type: ignore[arg-type, return-value]
    scores = scorer.score(TALKS[:2])
    assert scores.score.tolist() == [0.5 * 4 + 7, 0.5 * 2 + 7]
    assert scores.low.tolist() == [0.5 * 3 + 7, 0.5 * 1 + 7]
    silent = dialogue("s", "hello?", "")
    assert scorer.score([silent]).score.tolist() == [scorers.SILENT]
    parts = scorer.scores_of_parts([TALKS[0], silent])
    assert parts["its language model"].tolist() == [3.0, scorers.SILENT]


def test_without_the_base_the_rater_model_scores_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    if not (scorers.SHIPPED / "language_model.safetensors").is_file():
        pytest.skip("no language model is shipped")
    assert isinstance(load_scorer(), JoinedScorer) or load_scorer().notes
    monkeypatch.setattr(scorers, "why_not_available", lambda: "get it with: palaver get smollm2")
    scorer = load_scorer()
    assert isinstance(scorer, PalaverScorer)
    assert scorer.notes == ("scored without the language model: get it with: palaver get smollm2",)
    assert load_scorer("fast").name == "fast"
    assert not load_scorer("fast").notes


@pytest.fixture(scope="module")
def plain_llama() -> Any:
    folder = Path(__file__).parents[2] / "experiments" / "comparator"
    spec = util.spec_from_file_location("plain_llama", folder / "plain_llama.py")
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_network_of_training_is_that_of_scoring(base: Path, adapter: Path, plain_llama: Any) -> None:
    merged = LanguageModel.load(adapter, base=base, half=False).base
    network = plain_llama.PlainLlama(open_base(base, SETTINGS.layers)[0], torch.device("cpu"), torch.float32)
    with safe_open(adapter, "pt") as file:
        arrays = {name: file.get_tensor(name).float() for name in file.keys()}  # noqa: SIM118
    changes = {
        f"{kind}.{side}": torch.stack(
            [arrays[f"layers.{i}.{part}.{kind}.{side}"] for i in range(SETTINGS.layers)]
        )
        for kind, part in plain_llama.KINDS.items()
        for side in ("down", "up")
    }
    tokens = torch.randint(0, 9, (3, 11), generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        states = network.states(tokens, network.merge(changes, SETTINGS.alpha / SETTINGS.rank))
        expected = merged(input_ids=tokens, use_cache=False).last_hidden_state
    assert torch.allclose(states, expected, atol=1e-4)


def test_layers_that_are_not_trained_can_be_computed_once(base: Path, plain_llama: Any) -> None:
    whole = open_base(base, SETTINGS.layers)[0]
    network = plain_llama.PlainLlama(whole, torch.device("cpu"), torch.float32)
    n_frozen = SETTINGS.layers - 1
    adapter = network.fresh_adapter(SETTINGS.rank, n_frozen)  # which changes nothing yet
    tokens = torch.randint(0, 9, (3, 11), generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        weights = network.merge(adapter, 1.0)
        states = network.upper_states(network.lower_states(tokens, n_frozen), weights)
        expected = whole(input_ids=tokens, use_cache=False).last_hidden_state
    assert {len(weight) for weight in weights.values()} == {1}
    assert torch.allclose(states, expected, atol=1e-4)


def test_likelihoods_of_replies(base: Path, plain_llama: Any) -> None:
    whole = transformers.LlamaForCausalLM.from_pretrained(base, tie_word_embeddings=True).eval()
    tokens = torch.tensor([[5, 7, 9, 6, 7, 8, 5, 9, 6, 8], [5, 7, 9, 6, 7, 0, 0, 0, 0, 0]])
    roles = torch.tensor([[1, 1, 1, 2, 2, 2, 1, 1, 2, 2], [1, 1, 1, 2, 2, 0, 0, 0, 0, 0]])
    with torch.inference_mode():
        hidden = whole.model(input_ids=tokens, use_cache=False).last_hidden_state
        embedding = whole.model.embed_tokens.weight
        of_system = (roles[:, 1:] == SYSTEM).flatten().nonzero()[:, 0]
        values = plain_llama.reply_likelihoods(hidden, embedding, tokens, roles, of_system)
        logs = torch.log_softmax(hidden @ embedding.T, -1)[:, :-1].gather(2, tokens[:, 1:, None])[..., 0]
    turns = [logs[0, 2:5], logs[0, 7:9]]  # a token is told by the state before it
    means = [float(turn.mean()) for turn in turns]
    expected = [float(torch.cat(turns).mean()), min(means), means[1]]
    assert np.allclose(values[0], [(value + 3.0) / 0.25 for value in expected], atol=1e-4)
    assert np.allclose(values[1], (float(logs[1, 2:4].mean()) + 3.0) / 0.25, atol=1e-4)
