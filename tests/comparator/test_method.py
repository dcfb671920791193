from __future__ import annotations

import dataclasses
import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sklearn")
from palaver.comparator.method import Fit, MethodSettings, fit, log_odds_unit, rating_pairs
from palaver.comparator.model import load_model, save_model
from palaver.comparator.representation import LAYOUT, Representation, represent
from palaver.comparator.scorer import SHIPPED, PalaverScorer, load_scorer
from palaver.comparator.training import train_palaver
from palaver.comparator.training_data import Pairs, RatedDialogue, RatedDialogues, TrainingData
from palaver.errors import DataError, UserError
from palaver.reports.compare import method_page
from palaver.schema import record_run

_spec = importlib.util.spec_from_file_location("method_sample", Path(__file__).with_name("method_sample.py"))
assert _spec is not None
assert _spec.loader is not None
method_sample = importlib.util.module_from_spec(_spec)  # test files here are no package
_spec.loader.exec_module(method_sample)
dialogue, encode, sample = method_sample.dialogue, method_sample.encode, method_sample.sample
QUICK = MethodSettings(heads=3, trees=20, folds=3, ridge=30.0)


@pytest.fixture(scope="module")
def fitted() -> tuple[RatedDialogues, Representation, Fit]:
    ratings, _ = sample()
    x = represent(ratings.dialogues, encode)
    return ratings, x, fit(ratings, x, settings=QUICK)


def test_held_out_scores_find_the_better_dialogue(fitted: tuple[RatedDialogues, Representation, Fit]) -> None:
    result = fitted[2]
    assert result.on_ratings is not None
    assert result.on_ratings.accuracy > 0.7
    assert result.longer_on_ratings is not None
    assert result.longer_on_ratings.n == result.on_ratings.n
    page = method_page(result, record_run("palaver compare train"), ["3 dialogues left out: no rating"])
    assert "the same by a rule" in page
    assert "3 dialogues left out: no rating" in page
    assert result.effects.level_share > 0.2


def test_new_dialogues_and_calibrated_pairs(fitted: tuple[RatedDialogues, Representation, Fit]) -> None:
    ratings, x, _ = fitted
    rng = np.random.default_rng(9)
    new = RatedDialogues(
        tuple(RatedDialogue(dialogue(1000 + i, (i % 2) * 0.9, rng)) for i in range(40)), (0, 100)
    )
    pairs = Pairs(np.arange(0, 40, 2), np.arange(1, 40, 2), -np.ones(20, np.int8))
    result = fit(ratings, x, pairs=pairs, pairs_x=represent(new.dialogues, encode), settings=QUICK)
    assert result.on_pairs is not None
    assert result.on_pairs.accuracy > 0.9
    assert result.calibration is not None
    assert result.calibration.ece < 0.2


def test_raters_with_one_rating_each_cannot_be_compared(
    fitted: tuple[RatedDialogues, Representation, Fit],
) -> None:
    ratings, x, _ = fitted
    rows = tuple(
        dataclasses.replace(row, rater=f"r{i}", group=None) for i, row in enumerate(ratings.rows[:30])
    )
    with pytest.raises(DataError, match="no rater rated two dialogues"):
        fit(RatedDialogues(rows, ratings.scale), x.take(np.arange(30)), settings=QUICK)


def test_the_same_seed_gives_the_same_model(fitted: tuple[RatedDialogues, Representation, Fit]) -> None:
    ratings, x, result = fitted
    again = fit(ratings, x, settings=QUICK)
    assert np.array_equal(result.model.heads_of(x), again.model.heads_of(x))


def test_a_saved_model_scores_the_same(
    fitted: tuple[RatedDialogues, Representation, Fit], tmp_path: Path
) -> None:
    _, x, result = fitted
    model, about = load_model(save_model(result.model, tmp_path / "m", **result.describe()))
    assert np.allclose(model.heads_of(x), result.model.heads_of(x), atol=1e-3)
    assert about["n_raters"] == 20


def test_broken_models_are_named(fitted: tuple[RatedDialogues, Representation, Fit], tmp_path: Path) -> None:
    folder = save_model(fitted[2].model, tmp_path / "m")
    record = json.loads((folder / "comparator.json").read_text())
    (folder / "comparator.json").write_text(json.dumps({**record, "format": 99}))
    with pytest.raises(UserError, match="format 99"):
        load_model(folder)
    (folder / "comparator.json").write_text(json.dumps({**record, "features": ["x"]}))
    with pytest.raises(UserError, match="other features"):
        load_model(folder)
    (folder / "comparator.json").write_text(json.dumps(record))
    (folder / "arrays.npz").write_bytes(b"PK no")
    with pytest.raises(UserError, match="cannot be read"):
        load_model(folder)
    with pytest.raises(UserError, match="no comparator 'defualt'.*did you mean 'default'"):
        load_scorer("defualt")
    with pytest.raises(UserError, match="holds no comparator"):
        load_scorer(tmp_path)


def test_scores_probability_and_costliest_turn(fitted: tuple[RatedDialogues, Representation, Fit]) -> None:
    ratings, x, result = fitted
    scorer = PalaverScorer(result.model, encode=encode)
    scores = scorer.score(ratings.dialogues[:10])
    assert (scores.low < scores.score).all()
    assert (scores.score < scores.high).all()
    assert np.allclose(scores.score, result.model.heads_of(x.take(np.arange(10))).mean(0))
    a, b = ratings.dialogues[:2]
    assert np.isclose(scorer.probability(a, b) + scorer.probability(b, a), 1)
    worst = scorer.worst_turns([a])[0]
    assert worst is not None
    assert a.turns[worst.turn - 1].speaker == "system"
    # the oracle: score the dialogue without each turn from the beginning
    gains = {}
    for i, turn in enumerate(a.turns):
        if turn.speaker == "system":
            shorter = a.model_copy(update={"turns": a.turns[:i] + a.turns[i + 1 :]})
            gains[i + 1] = scorer.score([shorter]).score[0] - scores.score[0]
    assert worst.turn == max(gains, key=lambda k: gains[k])
    assert np.isclose(worst.gain, gains[worst.turn])


def test_another_encoder_is_refused(fitted: tuple[RatedDialogues, Representation, Fit]) -> None:
    scorer = PalaverScorer(fitted[2].model, encode=lambda texts: encode(texts, dim=7))
    with pytest.raises(UserError, match="another encoder"):
        scorer.score(fitted[0].dialogues[:1])


def test_the_signature_names_the_weights(
    fitted: tuple[RatedDialogues, Representation, Fit], tmp_path: Path
) -> None:
    model = fitted[2].model
    for name, unit in (("a", 1.0), ("b", 1.0), ("c", 2.0)):
        save_model(dataclasses.replace(model, unit=unit), tmp_path / name / "comparator")
    a, b, c = (load_scorer(tmp_path / name, encode=encode).signature.split()[-1] for name in "abc")
    assert a == b != c
    assert load_scorer().signature.startswith("comparator default ")


def test_the_shipped_comparator_knows_this_versions_features() -> None:
    model, about = load_model(SHIPPED)
    assert about["features"] == list(LAYOUT)
    assert sum(p.stat().st_size for p in SHIPPED.iterdir()) < 15e6
    scorer = load_scorer(encode=lambda texts: encode(texts, dim=384))
    assert np.isfinite(scorer.score([dialogue(0, 0.5, np.random.default_rng(0))]).score).all()
    assert len(model.heads) == about["settings"]["heads"]


def test_unit_of_log_odds() -> None:
    rng = np.random.default_rng(0)
    d = rng.normal(size=20000)
    label = np.where(rng.random(20000) < 1 / (1 + np.exp(-2.5 * d)), 1.0, -1.0)
    assert abs(log_odds_unit(d, label) - 2.5) < 0.1
    assert np.isfinite(log_odds_unit(np.ones(5), np.ones(5)))


def test_pairs_of_ratings_stay_within_a_sitting() -> None:
    pairs = rating_pairs(np.array([1.0, 5.0, 2.0, 9.0]), np.array([0, 0, 1, 1]), gap=1.0)
    assert pairs is not None
    assert len(pairs) == 2
    assert rating_pairs(np.ones(3), np.zeros(3, np.int64), gap=1.0) is None


def test_too_little_to_learn_from() -> None:
    ratings, _ = sample()
    few = ratings.take(range(6))
    with pytest.raises(DataError, match="too few"):
        fit(few, represent(few.dialogues, encode))
    same = RatedDialogues(
        tuple(RatedDialogue(r.dialogue, 50.0, r.rater, r.group) for r in ratings.rows), (0, 100)
    )
    with pytest.raises(DataError, match="all ratings are equal"):
        fit(same, represent(same.dialogues, encode))
    one = RatedDialogues(
        tuple(RatedDialogue(r.dialogue, r.rating, "w", None) for r in ratings.rows), (0, 100)
    )
    with pytest.raises(DataError, match="by one rater"):
        fit(one, represent(one.dialogues, encode))
    with pytest.raises(UserError, match="heads must be at least 1"):
        MethodSettings(heads=0)


def test_ratings_without_raters_can_be_learnt_from() -> None:
    ratings, _ = sample(n_bad=0)
    bare = RatedDialogues(tuple(RatedDialogue(r.dialogue, r.rating) for r in ratings.rows), (0, 100))
    result = fit(bare, represent(bare.dialogues, encode), settings=QUICK)
    assert any("name no rater" in note for note in result.notes)
    assert len(result.reliability.raters) == 0


def test_a_run_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ratings, _ = sample()
    dev = ratings.take(range(12))
    pairs = Pairs(np.array([0, 2]), np.array([1, 3]), np.array([1, -1], np.int8))
    calls = []

    def counted(texts: list[str]) -> object:
        calls.append(len(texts))
        return encode(texts)

    options = {"settings": QUICK, "encode": counted}
    data = TrainingData.gather(ratings, dev=dev, pairs=pairs)
    first = train_palaver(data, tmp_path, **options)
    n = len(calls)
    again = train_palaver(data, tmp_path, **options)
    assert len(calls) == n
    assert np.array_equal(first.fitted.held_out, again.fitted.held_out)
    assert len(first.x) == len(ratings) - 12
    with monkeypatch.context() as patch:  # another version of Palaver takes something else out of texts
        patch.setattr("palaver.comparator.training.normalise", str.upper)
        with pytest.raises(UserError):
            train_palaver(data, tmp_path, **options)
    fewer = TrainingData.gather(ratings.take(range(60)), dev=dev, pairs=pairs)
    with pytest.raises(UserError) as caught:
        train_palaver(fewer, tmp_path, **options)
    assert caught.value.problems == ("dialogues: its content has changed",)
    assert len(train_palaver(fewer, tmp_path, fresh=True, **options).x) == 48
    train_palaver(data, tmp_path, fresh=True, **options)
    (tmp_path / "represented.npz").write_bytes(b"half")
    with pytest.raises(DataError, match="cannot be read"):
        train_palaver(data, tmp_path, **options)
    assert load_scorer(first.folder, encode=encode).name == "comparator"
    scorer = load_scorer(tmp_path, encode=encode)
    assert isinstance(scorer, PalaverScorer)
    assert scorer.about["n_raters"] == 18
