"""The selector that has learnt: what it looks at, that it sees no response, and that its file is whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.knowledge.conftest import HISTORY, SENTENCES

from palaver.errors import DataError
from palaver.knowledge.candidates import candidates, reading_sentences
from palaver.knowledge.features import FEATURES, FeatureTable, Priors, hash_of
from palaver.knowledge.ranker import TrainedSelector, load_ranker, shipped_ranker
from palaver.knowledge.selector import Group, Query, make_selector
from palaver.schema import Dialogue
from palaver.text.tfidf import Tfidf

pytest.importorskip("sklearn")


def priors() -> Priors:
    hashes = sorted((hash_of(sentence), n) for n, sentence in enumerate(SENTENCES[:2]))
    return Priors(
        sentences=np.array([h for h, _ in hashes], np.uint32),
        popularity=np.array([n + 1.0 for _, n in hashes], np.float32),
        terms=("piano", "keys", "port"),
        term_odds=np.array([1.0, 0.0, 0.0], np.float32),
        mean_reply=np.array([0.0, 0.0, 2.0], np.float32),
        said=np.array([[1.0], [0.0], [0.0]], np.float32),
        replied=np.array([[0.0], [1.0], [0.0]], np.float32),
    )


def features(history: list[str], sentences: list[str] | None = None) -> dict[str, np.ndarray]:
    table = FeatureTable(SENTENCES, priors())
    (((rows),),) = table.of_groups([Group([Query(history)], sentences or SENTENCES)])
    assert rows.shape == (len(sentences or SENTENCES), len(FEATURES))
    return dict(zip(FEATURES, rows.T, strict=True))


def test_features_of_a_small_history() -> None:
    found = features(HISTORY)
    weights = Tfidf(SENTENCES)
    cosines = (weights.documents(HISTORY) @ weights.documents(SENTENCES).T).toarray()
    np.testing.assert_allclose(found["cosine_1"], cosines[2], atol=1e-6)
    np.testing.assert_allclose(found["cosine_2"], cosines[1], atol=1e-6)
    np.testing.assert_allclose(found["cosine_3"], cosines[0], atol=1e-6)
    assert not found["cosine_4"].any()
    np.testing.assert_allclose(
        found["cosine_fading"], cosines[2] + 0.7 * cosines[1] + 0.49 * cosines[0], atol=1e-6
    )
    assert found["used_own"].argmax() == 1  # I went to Genoa
    np.testing.assert_allclose(found["times_own"], np.log1p([0, 1, 0, 0]))
    best = int(cosines[2].argmax())
    assert found["next_1"].tolist() == [float(i == best + 1) for i in range(4)]
    assert found["asks_1"].tolist() == [1, 1, 1, 1]
    assert found["question_2"].tolist() == [0, 0, 0, 0]
    np.testing.assert_allclose(found["popularity"], [1, 2, 0, 0])  # the others are not known
    assert (found["term_odds"] > 0).tolist() == [True, False, False, False]
    assert (found["typical"] > 0).tolist() == [False, True, False, False]
    assert (found["association"] > 0).tolist() == [True, False, False, False]  # piano goes with keys


def test_a_first_turn_and_a_single_candidate_have_features() -> None:
    assert not features([])["cosine_1"].any()
    assert np.isfinite(np.stack(list(features([""], ["!!!"]).values()))).all()
    assert np.isfinite(np.stack(list(features(["Zzz"], [""]).values()))).all()


def test_groups_do_not_depend_on_each_other(talk: Dialogue) -> None:
    selector = make_selector("trained", reading_sentences([talk]))
    groups = [
        Group([Query(HISTORY), Query(HISTORY[:1])], candidates(talk, 0)),
        Group([], candidates(talk, 1)),
        Group([Query(HISTORY)], []),
        Group([Query(HISTORY)], candidates(talk, 1)),
    ]
    tables = selector.scores(groups)
    for group, table in zip(groups, tables, strict=True):
        assert table is not None
        assert table.shape == (len(group.queries), len(group.candidates))
        (alone,) = selector.scores([group])
        np.testing.assert_allclose(table, alone, atol=1e-5)


def test_it_does_not_see_the_response(talk: Dialogue) -> None:
    selector = make_selector("trained", reading_sentences([talk]))
    own = candidates(talk, 1)
    assert selector.select(HISTORY, own, "Genoa is a port.") == selector.select(HISTORY, own)
    found = selector.select(HISTORY, own)
    assert found is not None
    assert selector.select(HISTORY, []) is None


def test_the_shipped_weights_say_where_they_come_from() -> None:
    ranker = shipped_ranker()
    assert ranker.card["licence"] == "CDLA-Sharing 1.0"
    assert "Topical-Chat" in ranker.card["data"]
    from importlib.resources import files

    assert len((files("palaver.knowledge") / "selector.npz").read_bytes()) < 300_000


def test_weights_come_back(tmp_path: Path) -> None:
    ranker = shipped_ranker()
    ranker.save(tmp_path / "again.npz")
    again = load_ranker(tmp_path / "again.npz")
    assert again.priors.terms == ranker.priors.terms
    one, two = (TrainedSelector(SENTENCES, ranker=r).select(HISTORY, SENTENCES) for r in (ranker, again))
    assert one is not None
    assert two is not None
    assert (one.sentence, one.score) == (two.sentence, pytest.approx(two.score, abs=1e-3))
    (tmp_path / "broken.npz").write_bytes((tmp_path / "again.npz").read_bytes()[:500])
    with pytest.raises(DataError, match="does not hold a trained selector"):
        load_ranker(tmp_path / "broken.npz")
