"""The decoder loop against a plain loop of cells under autograd, and scoring against stepping."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from palaver.models.seq2seq import Seq2Seq, Seq2SeqConfig
from palaver.text.vocabulary import BOS, PAD

SIZES = {"vocab_size": 23, "embedding": 6, "hidden": 8, "layers": 3}


def model_of(**changes: object) -> Seq2Seq:
    torch.manual_seed(1)
    config = Seq2SeqConfig(**{**SIZES, "dropout": 0.0, **changes})  # type: ignore[arg-type]
    return Seq2Seq(config).double()


def batch() -> tuple[Tensor, Tensor]:
    context = torch.tensor([[5, 6, 7, 8], [9, 10, PAD, PAD], [11, PAD, PAD, PAD]])
    response = torch.tensor([[5, 9, 2, PAD, PAD], [6, 7, 8, 9, 2], [2, PAD, PAD, PAD, PAD]])
    return context, response


def plain_loss(model: Seq2Seq, context: Tensor, response: Tensor, v: Tensor | None) -> Tensor:
    """Equations 1 to 4 step by step, row by row without padding."""
    total = torch.zeros((), dtype=torch.float64)
    for row in range(len(context)):
        words = context[row][context[row] != PAD]
        states, (h, c) = model.encoder(model.embed(words)[None])  # (1, S, E) -> (1, S, H)
        hidden, cells = list(h.unbind(0)), list(c.unbind(0))
        fed = torch.zeros_like(hidden[0])
        last = torch.tensor([BOS])
        for target in response[row][response[row] != PAD]:
            x = torch.cat([model.embed(last), fed, *([v[row : row + 1]] if v is not None else [])], 1)
            for layer, cell in enumerate(model.decoder):
                hidden[layer], cells[layer] = cell(x, (hidden[layer], cells[layer]))
                x = hidden[layer]
            scores = states[0] @ model.attention.weight.t() @ x[0]  # (S,)
            fed = (F.softmax(scores, 0) @ states[0])[None]
            f = torch.tanh(model.combine(torch.cat((fed, x), 1)))
            total = total - F.log_softmax(model.logits(f), 1)[0, target]
            last = target[None]
    return total


def conditions(kind: str) -> dict[str, Tensor]:
    if kind == "speaker":
        return {"speaker": torch.tensor([0, 1, 1])}
    if kind == "personality":
        return {"ocean": torch.tensor([[1.0, 4, 7, 3.5, 2], [4, 4, 4, 4, 4], [7, 7, 1, 1, 2]])}
    return {}


def told(model: Seq2Seq, kind: str) -> Tensor | None:
    """Equation 3's v_s and equation 4's W_o (o - 4)/3, written out."""
    given = conditions(kind)
    if kind == "speaker":
        return model.speaker.weight[given["speaker"]]
    if kind == "personality":
        return ((given["ocean"].double() - 4) / 3) @ model.personality.weight.t()
    return None


@pytest.mark.parametrize("kind", ["none", "speaker", "personality"])
@pytest.mark.parametrize("layers", [1, 3])
def test_loss_and_gradients_are_those_of_the_equations(kind: str, layers: int) -> None:
    model = model_of(conditioning=kind, speakers=("a", "b") if kind == "speaker" else (), layers=layers)
    context, response = batch()
    expected = plain_loss(model, context, response, told(model, kind))
    expected.backward()
    wanted = {name: p.grad.clone() for name, p in model.named_parameters()}
    model.zero_grad()
    found = model(context, response, **conditions(kind))
    assert found.n_tokens == 3 + 5 + 1
    assert torch.allclose(found.nll, expected.detach(), rtol=1e-12)
    found.loss.backward()
    for name, p in model.named_parameters():
        assert torch.allclose(p.grad, wanted[name], rtol=1e-9, atol=1e-12), name


def test_dropout_changes_nothing_in_expectation_but_every_single_call() -> None:
    model = model_of(dropout=0.5).train()
    context, response = batch()
    torch.manual_seed(3)
    first = model(context, response)
    first.loss.backward()
    second = model(context, response)
    assert first.nll != second.nll
    torch.manual_seed(3)
    assert model(context, response).nll == first.nll


def test_gradients_under_dropout_are_those_of_the_loss() -> None:
    """Finite differences with the same masks."""
    model = model_of(dropout=0.4, conditioning="speaker", speakers=("a", "b"), init_range=0.8).train()
    context, response = batch()

    def loss() -> Tensor:
        torch.manual_seed(5)
        memory = model.encode(context)
        features = model.features(memory, response, **{"ocean": None, **conditions("speaker")})
        logits = model.logits(features[response != PAD])
        return F.cross_entropy(logits, response[response != PAD], reduction="sum")

    loss().backward()
    for parameter in model.parameters():
        flat, slope = parameter.data.view(-1), parameter.grad.view(-1)
        place = int(slope.abs().argmax())
        kept = float(flat[place])
        flat[place] = kept + 1e-6
        above = loss().item()
        flat[place] = kept - 1e-6
        below = loss().item()
        flat[place] = kept
        assert (above - below) / 2e-6 == pytest.approx(float(slope[place]), rel=1e-4, abs=1e-7)


@pytest.mark.parametrize("kind", ["none", "speaker", "personality"])
def test_stepping_scores_as_the_whole_response_does(kind: str) -> None:
    model = model_of(conditioning=kind, speakers=("a", "b") if kind == "speaker" else ()).eval()
    context, response = batch()
    with torch.inference_mode():
        memory = model.encode(context)
        given = {"speaker": None, "ocean": None, **conditions(kind)}
        whole = model.logits(model.features(memory, response, **given))  # (B, T, V)
        state = model.start(memory, model.condition(given["speaker"], given["ocean"]))
        tokens = torch.full((3,), BOS)
        for t in range(response.shape[1]):
            logits, state = model.step(state, tokens)
            assert torch.allclose(logits, whole[:, t], atol=1e-12)
            tokens = response[:, t]


def test_every_parameter_starts_within_the_range() -> None:
    for parameter in model_of(conditioning="speaker", speakers=("a",)).parameters():
        assert parameter.abs().max() <= 0.1
        assert parameter.abs().max() > 0.02
