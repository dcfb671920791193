"""Training: batches, gradients against the plain way, two passes against one, the same seed twice."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("accelerate")

from palaver.comparator.cmade.network import ComparatorNetwork, apply_network, build_network  # noqa: E402
from palaver.comparator.cmade.presets import PRESETS, Settings, Training, find_preset  # noqa: E402
from palaver.comparator.cmade.training import (  # noqa: E402
    EVERYONE,
    Examples,
    _Run,
    class_centres,
    plan_batches,
    train,
)
from palaver.comparator.evaluation import evaluate_pairs  # noqa: E402
from palaver.comparator.reading import read_rated  # noqa: E402
from palaver.comparator.training_data import Pairs, RatedDialogues  # noqa: E402
from palaver.errors import ConfigError, DataError, UserError  # noqa: E402

torch.set_num_threads(1)
QUICK = Training(epochs=3, batch_size=16, learning_rate=1e-3)


@pytest.fixture
def rated(rated_files: dict[str, Path]) -> RatedDialogues:
    return read_rated(rated_files["train"])


def weights(network: ComparatorNetwork) -> list[float]:
    return [float(p.detach().double().abs().sum()) for p in network.parameters()]


@given(st.integers(2, 60), st.integers(0, 20).filter(lambda s: s != 1), st.integers(0, 9))
@settings(max_examples=50, deadline=None)
def test_every_example_comes_once_and_groups_stay_whole(n: int, size: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, 6, n)
    for who in (None, groups, np.full(n, EVERYONE)):
        batches = plan_batches(n, size, who, np.random.default_rng(seed))
        assert sorted(np.concatenate(batches).tolist()) == list(range(n))
        assert max(map(len, batches)) <= (size or n) + 1
    for batch in plan_batches(n, size, groups, rng)[:-1]:
        for group in set(groups[batch].tolist()):
            assert (groups[batch] == group).sum() == min((groups == group).sum(), size or n) or (
                (groups == group).sum() > size
            )


def test_the_gradient_is_that_of_all_pairs(
    tiny_encoder: Path, rated: RatedDialogues, monkeypatch: pytest.MonkeyPatch
) -> None:
    """λ through one backward pass a dialogue against the explicit loss of every pair, in full precision."""
    monkeypatch.setattr("palaver.comparator.cmade.network.has_bfloat16", lambda: False)
    network = build_network(tiny_encoder, seed=1).eval()
    inputs = network.inputs(rated.dialogues[:10])
    examples = Examples.rated(rated.values[:10])
    run = _Run(network, inputs, examples, QUICK, "pairwise", 0)
    kept: dict[str, torch.Tensor] = {}

    def keep() -> None:
        kept.update({n: p.grad.clone() for n, p in network.named_parameters() if p.grad is not None})
        network.zero_grad()

    run._update = keep  # type: ignore[method-assign]
    loss = run.step(np.arange(10))
    o, _ = network(*network.to_device(inputs, np.arange(10)))
    y = torch.from_numpy(rated.values[:10])
    better = y[:, None] > y[None, :]
    explicit = torch.nn.functional.softplus(o[None, :] - o[:, None])[better].mean()
    assert float(loss) == pytest.approx(float(explicit.detach()), abs=1e-6)
    explicit.backward()
    for name, p in network.named_parameters():
        if p.grad is not None:
            torch.testing.assert_close(kept[name], p.grad, atol=1e-6, rtol=1e-4)


def test_two_passes_give_what_one_gives(tiny_encoder: Path, rated: RatedDialogues) -> None:
    """With little memory a batch is run twice with the same dropout: the same weights come out."""
    states = []
    for room in (10**6, 1):
        network = build_network(tiny_encoder, seed=1)
        inputs = network.inputs(rated.dialogues)
        one = dataclasses.replace(QUICK, graph_tokens=room, epochs=1, batch_size=0)
        train(network, inputs, Examples.rated(rated.values), one, seed=7)
        states.append(network.state_dict())
    for name, tensor in states[0].items():
        torch.testing.assert_close(tensor, states[1][name], msg=name)


@pytest.mark.parametrize("objective", ["pairwise", "classification", "regression"])
def test_it_learns_and_does_so_twice(tiny_encoder: Path, rated: RatedDialogues, objective: str) -> None:
    results = []
    before = torch.get_rng_state()
    for _ in range(2):
        centres = class_centres(rated.values, rated.scale) if objective == "classification" else ()
        network = build_network(tiny_encoder, pooling="mean", centres=tuple(centres), seed=1)
        inputs = network.inputs(rated.dialogues)
        examples = Examples.rated(rated.values)
        history = train(network, inputs, examples, dataclasses.replace(QUICK, epochs=8), objective=objective)  # type: ignore[arg-type]
        results.append((weights(network), [e.loss for e in history.epochs]))
        scores, _ = apply_network(network, inputs)
    assert results[0] == results[1]
    assert torch.equal(before, torch.get_rng_state())
    losses = results[0][1]
    assert losses[-1] < losses[0]
    order = np.argsort(rated.values)
    assert scores[order[-20:]].mean() > scores[order[:20]].mean()


def test_only_those_of_a_group_are_compared(tiny_encoder: Path, rated: RatedDialogues) -> None:
    network = build_network(tiny_encoder, seed=1)
    inputs = network.inputs(rated.dialogues)
    groups = rated.codes("group")
    groups[:6] = -1
    history = train(network, inputs, Examples.rated(rated.values, groups=groups), QUICK)
    assert history.n_left_out >= 6
    alone = Examples.rated(rated.values, groups=np.arange(len(rated)))
    with pytest.raises(DataError, match="nothing can be compared"):
        train(network, inputs, alone, QUICK)


def test_compared_pairs_are_learnt(tiny_encoder: Path, rated: RatedDialogues) -> None:
    """Pairs that say the opposite of the ratings win where they are trained on alone."""
    network = build_network(tiny_encoder, pooling="mean", seed=1)
    inputs = network.inputs(rated.dialogues)
    order = np.argsort(rated.values, kind="stable")
    turned = Pairs(order[:10], order[-10:], np.ones(10, np.int8))
    examples = Examples.rated(rated.values[:2], rows=np.arange(2)).with_pairs(turned, 0)
    assert len(examples) == 22
    assert (examples.groups[:2] == EVERYONE).all()  # type: ignore[index]
    train(network, inputs, examples, dataclasses.replace(QUICK, epochs=40))
    scores, _ = apply_network(network, inputs)
    assert evaluate_pairs(scores, turned).accuracy > 0.8


def test_stage_one_examples_compare_each_with_its_own_copies() -> None:
    examples = Examples.anomalies(2, np.array([0, 0, 1]))
    assert examples.targets.tolist() == [1, 1, 0, 0, 0]
    assert examples.groups is not None
    assert examples.groups.tolist() == [0, 1, 0, 0, 1]


def test_classes_of_scales() -> None:
    assert class_centres(np.array([1.0, 4.0]), (1, 5)).tolist() == [1, 2, 3, 4, 5]
    assert class_centres(np.array([1.5, 4.0]), (1, 5)).tolist() == pytest.approx([1.4, 2.2, 3.0, 3.8, 4.6])
    assert class_centres(np.array([3.0]), (0, 100)).tolist() == [10, 30, 50, 70, 90]


@pytest.mark.parametrize("values", [[3.0] * 60, [1.0] * 59 + [np.nan]])
def test_ratings_that_teach_nothing(tiny_encoder: Path, rated: RatedDialogues, values: list[float]) -> None:
    network = build_network(tiny_encoder)
    with pytest.raises(DataError):
        train(network, network.inputs(rated.dialogues), Examples.rated(np.array(values)), QUICK)


def test_eleven_rows_and_settings() -> None:
    assert [p.row for p in PRESETS.values()] == list(range(1, 12))
    chains = [chain for p in PRESETS.values() for chain in p.chain]
    assert len(set(chains)) == 11  # one training each, the rest is shared
    assert find_preset("11").name == "cmade"
    assert PRESETS["cmade"].accuracy == 0.892
    with pytest.raises(UserError, match="did you mean 'cmade'"):
        find_preset("cmad")
    with pytest.raises(ConfigError) as caught:
        Settings(k=0, training=Training(batch_size=1, learning_rate=7.0)).check()
    assert len(caught.value.problems) == 3
