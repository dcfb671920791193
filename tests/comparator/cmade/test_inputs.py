"""The encoder's tokens, the network around it, and the spoilt dialogues of stage 1."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from palaver.comparator.cmade.anomalies import spoil  # noqa: E402
from palaver.comparator.cmade.inputs import cut_by_tokens, make_inputs  # noqa: E402
from palaver.comparator.cmade.network import ComparatorNetwork, apply_network, build_network  # noqa: E402
from palaver.comparator.reading import read_rated  # noqa: E402
from palaver.errors import DataError, UserError  # noqa: E402
from palaver.models.encoders.transformer import find_transformer, load_transformer  # noqa: E402
from palaver.schema import Dialogue, Turn  # noqa: E402

torch.set_num_threads(1)


def talk(name: str, *texts: str) -> Dialogue:
    turns = [Turn(speaker=("user", "system")[i % 2], text=text) for i, text in enumerate(texts)]
    return Dialogue(id=name, turns=tuple(turns))


def test_the_form_of_the_input(tiny_encoder: Path) -> None:
    tokenizer = load_transformer(tiny_encoder).tokenizer
    made = make_inputs([talk("a", "hello there", "i love music")], tokenizer)
    words = tokenizer.convert_ids_to_tokens(made.tokens.tolist())
    assert words == ["[CLS]", "hello", "there", "[SEP]", "i", "love", "music", "[SEP]"]
    assert made.roles.tolist() == [0, 1, 1, 1, 2, 2, 2, 2]
    assert made.n_cut == 0


def test_of_a_long_dialogue_the_end_is_kept(tiny_encoder: Path) -> None:
    tokenizer = load_transformer(tiny_encoder).tokenizer
    long, short = talk("a", "hello there", "i love music"), talk("b", "hello")
    made = make_inputs([long, short], tokenizer, max_tokens=5)
    assert tokenizer.convert_ids_to_tokens(made.tokens[:5].tolist()) == [
        "[CLS]",
        "i",
        "love",
        "music",
        "[SEP]",
    ]
    assert made.n_cut == 1
    ids, mask, roles = made.padded(np.array([1, 0]))
    assert mask.tolist() == [[1, 1, 1, 0, 0], [1] * 5]
    assert (ids[0, 3:] == tokenizer.pad_token_id).all()
    assert roles[0].tolist() == [0, 1, 1, 0, 0]
    both = made.joined(made)
    assert both.lengths.tolist() == [5, 3, 5, 3]


def test_strange_speakers_and_limits(tiny_encoder: Path) -> None:
    tokenizer = load_transformer(tiny_encoder).tokenizer
    with pytest.raises(DataError, match="Ann"):
        make_inputs([Dialogue(id="a", turns=(Turn(speaker="Ann", text="hi"),))], tokenizer)
    with pytest.raises(UserError, match="max_tokens"):
        make_inputs([], tokenizer, max_tokens=1)


def test_pieces_hold_everything_and_fit() -> None:
    lengths = np.random.default_rng(0).integers(1, 50, 200)
    pieces = list(cut_by_tokens(lengths, 100))
    assert sorted(np.concatenate(pieces).tolist()) == list(range(200))
    assert all(lengths[p].max() * len(p) <= 100 for p in pieces)
    assert [len(p) for p in cut_by_tokens(np.array([500, 3]), 100)] == [1, 1]
    assert list(cut_by_tokens(np.array([], np.int64), 100)) == []


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


def test_encoders_that_are_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="no sentence encoder in"):
        find_transformer(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(UserError, match="no-such-encoder"):
        load_transformer("no-such-encoder")
    monkeypatch.setenv("PALAVER_ENCODER", str(tmp_path / "elsewhere"))
    with pytest.raises(UserError, match="elsewhere"):
        find_transformer("minilm")


def test_spoilt_dialogues(rated_files: dict[str, Path]) -> None:
    dialogues = read_rated(rated_files["train"]).dialogues
    found = spoil(dialogues, seed=3)
    assert len(found.dialogues) == 2 * len(dialogues)
    assert np.bincount(found.real).tolist() == [2] * len(dialogues)
    pool = {
        role: {t.text for d in dialogues for t in d.turns if t.speaker == role} for role in ("user", "system")
    }
    for spoilt, row, place in zip(found.dialogues, found.real, found.turn, strict=True):
        real = dialogues[row]
        assert [a == b for a, b in zip(spoilt.turns, real.turns, strict=True)].count(False) == 1
        changed = spoilt.turns[place]
        assert changed.speaker == real.turns[place].speaker
        assert changed.text != real.turns[place].text
        assert changed.text in pool[changed.speaker]
    roles = [d.turns[p].speaker for d, p in zip(found.dialogues, found.turn, strict=True)]
    assert roles == ["user", "system"] * len(dialogues)
    assert spoil(dialogues, seed=3).dialogues == found.dialogues
    assert spoil(dialogues, seed=4).dialogues != found.dialogues


def test_what_cannot_be_spoilt() -> None:
    same = [talk(name, "hello", "no") for name in "ab"]
    with pytest.raises(DataError, match="no dialogue can be spoilt"):
        spoil(same)
    found = spoil([*same, Dialogue(id="c", turns=(Turn(speaker="user", text="why"),))])
    assert found.dropped == {"no other turn of the system": 3}


def test_a_network_around_an_encoder_in_half_precision_comes_back_in_full(
    tiny_encoder: Path, tmp_path: Path
) -> None:
    """Trained on in half precision it gave nan at the first step."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    AutoModel.from_pretrained(tiny_encoder).half().save_pretrained(tmp_path / "half")
    AutoTokenizer.from_pretrained(tiny_encoder).save_pretrained(tmp_path / "half")
    network = build_network(tmp_path / "half")
    network.save(tmp_path / "n")
    back = ComparatorNetwork.load(tmp_path / "n")
    assert {p.dtype for p in network.parameters()} == {p.dtype for p in back.parameters()} == {torch.float32}
