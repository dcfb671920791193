"""Batches: every example once, less padding, the same whatever the number of processes, anywhere at once."""

from __future__ import annotations

import math
import threading
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.text.vocabulary import PAD, Vocabulary
from palaver.training.batches import (
    Collator,
    Plan,
    example_lengths,
    pad,
    plan_epoch,
    prefetch,
)
from palaver.training.examples import episodes
from palaver.training.experiment import Data
from palaver.training.sample import sample_dialogues
from palaver.training.store import Limits, Store, write_store

lengths_of = st.lists(
    st.tuples(st.integers(1, 40), st.integers(1, 40), st.integers(0, 9)), min_size=1, max_size=120
)


@given(lengths_of, st.integers(1, 17), st.sampled_from([0, 1, 3, 100]), st.integers(0, 3), st.booleans())
@settings(max_examples=50, deadline=None)
def test_every_example_once_per_epoch(
    rows: list[tuple[int, int, int]], size: int, bucket: int, epoch: int, by_tokens: bool
) -> None:
    lengths = np.array(rows)
    sizes = {"batch_tokens": size * 20} if by_tokens else {"batch_size": size}
    plan = plan_epoch(lengths, **sizes, bucket=bucket, seed=3, epoch=epoch)
    ids = [plan[b] for b in range(len(plan))]
    assert sorted(np.concatenate(ids).tolist()) == list(range(len(rows)))
    assert all(len(batch) for batch in ids)
    again = plan_epoch(lengths, **sizes, bucket=bucket, seed=3, epoch=epoch)
    assert np.array_equal(again.order, plan.order)
    for batch in ids:
        if by_tokens and len(batch) > 1:
            assert len(batch) * lengths[batch].max(axis=0).sum() <= size * 20
        elif not by_tokens:
            assert len(batch) <= size
    if not by_tokens:
        assert len(plan) == math.ceil(len(rows) / size)


def test_order_depends_on_seed_and_epoch() -> None:
    lengths = np.ones((100, 3), int)
    orders = [
        plan_epoch(lengths, batch_size=7, seed=s, epoch=e).order.tolist() for s in (1, 2) for e in (0, 1)
    ]
    assert len({tuple(order) for order in orders}) == 4


def padding_share(lengths: np.ndarray, plan: Plan) -> float:
    """Which share of all places in the batches of a plan is padding."""
    batches = [lengths[plan[b]] for b in range(len(plan))]
    return 1 - lengths.sum() / sum(len(batch) * batch.max(axis=0).sum() for batch in batches)


@pytest.mark.parametrize("seed", range(5))
def test_bucketing_saves_padding(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lengths = np.stack([rng.geometric(0.1, 3000), rng.geometric(0.1, 3000), np.zeros(3000, int)], 1)
    without = padding_share(lengths, plan_epoch(lengths, batch_size=32, bucket=0, seed=seed))
    with_pools = padding_share(lengths, plan_epoch(lengths, batch_size=32, bucket=50, seed=seed))
    assert with_pools < 0.6 * without


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    texts = [turn.text for dialogue in sample_dialogues(20) for turn in dialogue.turns]
    vocabulary = Vocabulary.train(texts, kind="word", size=200)
    folder: Path = tmp_path_factory.mktemp("store") / "s"
    examples = episodes(sample_dialogues(20), Data(), ids={"Ada": 0, "Ben": 1, "Cleo": 2})
    return write_store(folder, examples, vocabulary, Limits(30, 20, 0))


CONFIG = SimpleNamespace(
    max_context=30, max_response=20, max_knowledge=4, knowledge=True, conditioning="speaker"
)


@given(st.lists(st.integers(0, 60), min_size=1, max_size=9), st.sampled_from([1, 8]))
@settings(max_examples=50, deadline=None)
def test_padded_rows_are_the_stored_ones(store: Store, ids: list[int], multiple: int) -> None:
    rows = pad(store.context, np.array(ids), multiple, longest=30)
    longest = max(len(store.context[i]) for i in ids)
    assert rows.shape[1] == min(30, -(-longest // multiple) * multiple)
    for row, i in zip(rows, ids, strict=True):
        n = len(store.context[i])
        assert row[:n].tolist() == store.context[i].tolist()
        assert (row[n:] == PAD).all()


@given(st.integers(1, 5), st.integers(1, 12))
@settings(max_examples=50, deadline=None)
def test_processes_share_a_batch_out(store: Store, n_ranks: int, size: int) -> None:
    ids = np.arange(3, 3 + size)
    alone = Collator(store, CONFIG)(ids)
    shares = [Collator(store, CONFIG, rank=r, n_ranks=n_ranks)(ids) for r in range(n_ranks)]
    rows = []
    for share in shares:
        assert (share.n_tokens, share.n_words, share.n_examples, share.n_read) == (
            alone.n_tokens, alone.n_words, alone.n_examples, alone.n_read,
        )  # fmt: skip
        if share.weight:
            rows += [tuple(row[row != PAD].tolist()) for row in share.inputs["response"]]
        else:
            assert n_ranks > size
            assert len(share.inputs["response"]) == 1  # it computes along, for nothing
    expected = [tuple(row[row != PAD].tolist()) for row in alone.inputs["response"]]
    assert sorted(rows) == sorted(expected)
    assert alone.n_tokens == sum(map(len, expected))


def test_what_the_model_is_told(store: Store) -> None:
    ids = np.array([4, 9])
    batch = Collator(store, CONFIG)(ids)
    assert set(batch.inputs) == {"context", "response", "knowledge", "speaker"}
    assert batch.inputs["knowledge"].shape == (2, 1)  # nobody knows anything here
    assert batch.inputs["speaker"].tolist() == store.speaker[ids].tolist()
    ocean = np.arange(15.0).reshape(3, 5)
    person = SimpleNamespace(**{**vars(CONFIG), "conditioning": "personality", "knowledge": False})
    batch = Collator(store, person, ocean=ocean)(ids)
    assert set(batch.inputs) == {"context", "response", "ocean"}
    assert batch.inputs["ocean"].tolist() == ocean[store.speaker[ids]].tolist()
    assert example_lengths(store, ids).tolist() == [
        [len(store.context[i]), len(store.response[i]), 0] for i in ids
    ]


def test_prefetching_changes_nothing_and_passes_errors_on(store: Store) -> None:
    collate = Collator(store, CONFIG)
    ids = [np.array([i]) for i in range(20)]
    assert [b.n_tokens for b in prefetch(collate(i) for i in ids)] == [collate(i).n_tokens for i in ids]
    with closing(prefetch(collate(i) for i in ids)) as batches:
        next(batches)  # and the rest is not wanted: the thread must end
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("batches")]
    broken = (collate(np.array([i if i < 2 else 10**9])) for i in range(4))
    with pytest.raises(IndexError):
        list(prefetch(broken))
