from __future__ import annotations

import gzip
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from palaver.corpora.catalogue import read_corpus
from palaver.errors import DataError, UserError
from palaver.personality.counts import Counter, sum_rows
from palaver.personality.fit import choose_ridge, fit, read_scored_texts, ridge_path
from palaver.personality.lexicon import open_lexicon, parse_dic
from palaver.personality.mairesse import FEATURES, HELD, MRC, MairesseRecogniser
from palaver.personality.recogniser import (
    TRAITS,
    FunctionRecogniser,
    LinearRecogniser,
    load_recogniser,
    score_texts,
)

GLAD = "What a wonderful day! I love my friends, and we laughed so much at the party. I am so happy. " * 8
GRIM = (
    "I am afraid. I worry about everything and I can't sleep. I feel sad, alone and nervous, and I hate it. "
    * 8
)


def default() -> LinearRecogniser:
    found = load_recogniser("default")
    assert isinstance(found, LinearRecogniser)
    return found


def test_it_says_what_it_should_of_plain_cases() -> None:
    glad, grim = score_texts(default(), [GLAD, GRIM])
    neuroticism = TRAITS.index("neuroticism")
    assert grim[neuroticism] > glad[neuroticism] + 0.5
    assert glad[TRAITS.index("extraversion")] > grim[TRAITS.index("extraversion")]


def test_scores_stay_within_the_scale() -> None:
    odd = ["I " * 2000, "happy! " * 500, "?" * 1000 + "a", "damn " * 999, "the", "word" * 5000, "3 1 4 1 5"]
    scores = score_texts(default(), odd).values
    assert ((scores >= 1) & (scores <= 7)).all()
    assert np.isnan(score_texts(default(), ["", " ?! "])).all()


def test_a_sample_is_the_sum_of_its_rows() -> None:
    judge = default()
    utterances = ["I love you.", "No way!", "Where are you going?", "Well, I think so."] * 50
    counts = judge.count(utterances)
    whole = judge.score(sum_rows(counts, np.arange(200)[None]))
    np.testing.assert_allclose(whole, judge.score(counts.toarray().sum(axis=0)))
    np.testing.assert_allclose(whole, score_texts(judge, [" ".join(utterances)]))
    assert whole.shape == (1, 5)


def test_it_is_saved_and_read_back(tmp_path: Path) -> None:
    judge = default()
    judge.save(tmp_path / "a.json")
    again = load_recogniser(tmp_path / "a.json")
    assert isinstance(again, LinearRecogniser)
    again.save(tmp_path / "b.json")
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    np.testing.assert_array_equal(score_texts(judge, [GLAD]), score_texts(again, [GLAD]))
    np.testing.assert_array_equal(
        score_texts(pickle.loads(pickle.dumps(judge)), [GLAD]), score_texts(judge, [GLAD])
    )
    assert judge.provenance["texts"] == 1715


def broken(tmp_path: Path, **changes: Any) -> Path:
    default().save(tmp_path / "x.json")
    content = json.loads((tmp_path / "x.json").read_text()) | changes
    (tmp_path / "x.json").write_text(json.dumps(content))
    return tmp_path / "x.json"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"format": "other"}, "expected 'palaver-recogniser-1'"),
        ({"traits": ["openness"]}, "has no conscientiousness and no extraversion"),
        ({"features": {}}, "there is no 'words_per_sentence'"),
        ({"lexicon": {"kind": "liwc", "signature": "123"}}, "was fitted with a LIWC dictionary"),
        ({"norms": ["FAM"]}, "was fitted with norms of words: FAM"),
        ({"intercepts": [1, 2, 3, 4, None]}, "not a recogniser"),
        ({"prior": "much"}, "not a recogniser"),
    ],
)
def test_a_wrong_file_is_explained(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError) as caught:
        load_recogniser(broken(tmp_path, **changes))
    assert said in str(caught.value)


def test_traits_in_another_order_are_put_right(tmp_path: Path) -> None:
    default().save(tmp_path / "x.json")
    content = json.loads((tmp_path / "x.json").read_text())
    content["traits"].reverse()
    content["intercepts"].reverse()
    for row in content["features"].values():
        row[2:] = row[:1:-1]
    (tmp_path / "x.json").write_text(json.dumps(content))
    np.testing.assert_allclose(
        score_texts(load_recogniser(tmp_path / "x.json"), [GLAD]), score_texts(default(), [GLAD])
    )


def test_names_that_lead_nowhere() -> None:
    with pytest.raises(UserError, match="did you mean 'default'"):
        load_recogniser("defualt")
    with pytest.raises(UserError, match="no file"):
        load_recogniser("nowhere/x.json")
    with pytest.raises(UserError, match="no Python module 'nowhere_at_all'"):
        load_recogniser("nowhere_at_all:score")
    with pytest.raises(UserError, match="math: 'sqr' is not in it.*'sqrt'"):
        load_recogniser("math:sqr")
    with pytest.raises(UserError, match="no function"):
        load_recogniser("math:pi")


def test_functions_are_recognisers_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_recogniser.py").write_text(
        "import numpy as np\n"
        "class Pipeline:\n"
        "    def predict(self, texts):\n"
        "        return np.full((len(texts), 5), 4.0)\n"
        "pipeline = Pipeline()\n"
        "def score(texts):\n"
        "    return [dict(O=1, C=2, E=3, A=4, N=len(t) % 7 + 1) for t in texts]\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert score_texts(load_recogniser("own_recogniser:score"), ["a", "bb"]).values.tolist() == [
        [1, 2, 3, 4, 2],
        [1, 2, 3, 4, 3],
    ]
    judge = load_recogniser("own_recogniser:pipeline")
    assert judge.count is None
    assert score_texts(judge, ["a"]).values.tolist() == [[4.0] * 5]
    with pytest.raises(UserError, match="no meaning"):
        load_recogniser("own_recogniser:score", lexicon=tmp_path / "x.dic")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([{"openness": 3, "C": 3, "extraversion": 3}] * 2, "gives no agreeableness and no neuroticism"),
        (np.ones((2, 4)), "should return 2 x 5 scores, returned 2 x 4"),
        ([[1] * 5], "should return 2 x 5 scores, returned 1 x 5"),
        ([[1] * 5, [1, 2, 8, 3, 4]], "gave 8 for extraversion (text 2; 1 such"),
        ([[1] * 5, [1, 2, float("nan"), 3, 4]], "gave nan for extraversion"),
        ([["x"] * 5, ["y"] * 5], "no table of numbers"),
        ({t: [3, 3] for t in TRAITS[:4]}, "gives no neuroticism"),
    ],
)
def test_what_a_function_returns_is_checked(given: Any, said: str) -> None:
    with pytest.raises(UserError) as caught:
        FunctionRecogniser(lambda texts: given, "mine").score_texts(["a", "b"])
    assert said in str(caught.value)


def texts_and_scores(n: int = 80) -> tuple[list[str], np.ndarray]:
    """Texts in which the share of a few kinds of words decides the traits."""
    rng = np.random.default_rng(0)
    shares = rng.random((n, 5))
    kinds = ["the", "school", "happy", "friend", "afraid"]
    texts = []
    for row in shares:
        drawn = rng.choice(5, 200, p=row / row.sum())
        texts.append(" ".join(f"{kinds[i]} banana" for i in drawn) + ".")
    return texts, 1 + 6 * shares / shares.sum(axis=1, keepdims=True)


def test_fit_finds_what_is_there() -> None:
    texts, scores = texts_and_scores()
    fitted = fit(texts, scores, Counter(open_lexicon()), name="made", n_folds=5)
    assert min(fitted.correlations) > 0.9
    assert fitted.recogniser.name == "made"
    again = fit(texts, scores, Counter(open_lexicon()), name="made", n_folds=5)
    np.testing.assert_array_equal(fitted.recogniser.weights, again.recogniser.weights)
    shuffled = np.random.default_rng(1).permutation(scores)
    assert max(fit(texts, shuffled, Counter(open_lexicon()), name="none", n_folds=5).correlations) < 0.4
    with pytest.raises(DataError, match="at least 50 texts"):
        fit(texts[:10], scores[:10], Counter(open_lexicon()), name="few")
    with pytest.raises(DataError, match="same score for openness"):
        fit(texts, np.where(np.arange(5) == 0, 4.0, scores), Counter(open_lexicon()), name="flat")


def test_ridge_is_ridge() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 6)) + 3, rng.normal(size=(40, 2))
    for part in (slice(None), slice(0, 4)):  # also with fewer rows than columns
        weights, intercepts = ridge_path(x[part], y[part], (0.1, 10.0))
        _check_ridge(x[part], y[part], weights[1], intercepts[1])
    chosen, _, penalties = choose_ridge(x, y, np.random.default_rng(0))
    assert chosen.shape == (6, 2)
    assert len(penalties) == 2


def _check_ridge(x: np.ndarray, y: np.ndarray, weights: np.ndarray, intercepts: np.ndarray) -> None:
    centred = x - x.mean(axis=0)
    expected = np.linalg.solve(centred.T @ centred + 10 * np.eye(6), centred.T @ (y - y.mean(axis=0)))
    np.testing.assert_allclose(weights, expected)
    np.testing.assert_allclose(intercepts, y.mean(axis=0) - x.mean(axis=0) @ expected)


def test_scored_texts(tmp_path: Path) -> None:
    path = tmp_path / "essays.csv"
    path.write_text("text,O,c,Extraversion,a,n\nhello,1,2,3,4,5\n")
    texts, scores = read_scored_texts(path)
    assert texts == ["hello"]
    assert scores.tolist() == [[1, 2, 3, 4, 5]]
    path.write_text("text,O,C,E,A,N\nhello,1,2,3,4,8\n...,1,2,x,4,5\n")
    with pytest.raises(DataError) as caught:
        read_scored_texts(path)
    assert len(caught.value.problems) == 3
    path.write_text("text,O,C,E\nhello,1,2,3\n")
    with pytest.raises(DataError, match="no column agreeableness and none neuroticism"):
        read_scored_texts(path)


LIWC = (
    "%\n1\tPronoun\n2\tI\n3\tWe\n4\tNegemo\n5\tPosemo\n6\tshehe\n7\tthey\n%\n"
    "i\t1\t2\nwe\t1\t3\nhate*\t4\nsad*\t4\nlove*\t5\nhe\t1\t6\nthey\t1\t7\n"
)


def test_the_layout_of_the_paper() -> None:
    judge = MairesseRecogniser(parse_dic(LIWC, "liwc.dic"), {"FAM": {"love": 600.0, "i": 620.0}, "other": {}})
    assert len(FEATURES) == 84
    row = dict(
        zip(
            FEATURES,
            judge.features(judge.count(["I love him. (He hates us, we sad?)"]).toarray())[0],
            strict=True,
        )
    )
    assert row["I"] == 12.5
    assert row["Self"] == 25
    assert row["Other"] == 12.5
    assert row["Negemo"] == 25
    assert row["Pronoun"] == 37.5
    assert row["FAM"] == 610
    assert row["WPS"] == 4
    assert row["Qmarks"] == 50
    assert row["QMark"] == row["Parenth"] == row["Comma"] == 12.5
    assert row["AllPct"] == 100 * 5 / 8
    assert row["Dic"] == 100 * 6 / 8
    missing = [name for name, value in row.items() if np.isnan(value)]
    assert set(missing) == set(judge.missing)
    assert set(HELD) <= set(missing)
    assert set(MRC) - set(missing) == {"FAM"}


def test_the_order_of_features_is_the_published_one(shared_data: Path) -> None:
    lines = (shared_data / "personality" / "mairesse_attributes.csv").read_text().splitlines()
    assert tuple(line.split()[0] for line in lines[1:85]) == FEATURES


def test_liwc_scores() -> None:
    judge = MairesseRecogniser(parse_dic(LIWC, "liwc.dic"))
    scores = score_texts(
        judge, ["I hate it. I am sad. I hate he and they. " * 20, "We love it. We love it. " * 20, ""]
    )
    assert scores.values[0, 4] > scores.values[1, 4]
    assert ((scores.values[:2] >= 1) & (scores.values[:2] <= 7)).all()
    assert np.isnan(scores.values[2]).all()


def test_the_published_regression_is_the_published_scores(shared_data: Path) -> None:
    """With the features of an essay the recovered numbers give its published scores."""
    judge = MairesseRecogniser(parse_dic(LIWC, "liwc.dic"))
    with gzip.open(shared_data / "personality" / "essays_mairesse_features.csv.gz", "rt") as file:
        rows = [line.split(",")[1:] for line in file][:50]
    table = np.array(rows, dtype=float)
    names = [n for n in FEATURES if n not in ("BROWN-FREQ", "K-F-FREQ", "K-F-NCATS", "K-F-NSAMP", "T-L-FREQ")]
    weights = np.array([judge._regression[n][2:] if n in judge._regression else np.zeros(5) for n in names])
    found = table[:, :79] @ weights + judge._intercepts
    np.testing.assert_allclose(found, table[:, [83, 82, 79, 81, 80]], atol=1e-5)


def test_default_with_liwc_dictionary(tmp_path: Path) -> None:
    (tmp_path / "liwc.dic").write_text(LIWC)
    assert isinstance(load_recogniser("default", lexicon=tmp_path / "liwc.dic"), MairesseRecogniser)


def test_characters_stay_inside_the_scale_and_differ(shared_data: Path) -> None:
    judge = default()
    said: dict[str, list[str]] = {}
    for dialogue in read_corpus("big-bang-theory", root=shared_data):
        for turn in dialogue.turns:
            said.setdefault(turn.speaker, []).append(turn.text)
    rng = np.random.default_rng(0)
    means = []
    for name in ("Sheldon", "Penny", "Raj"):
        counts = judge.count(said[name])
        scores = judge.score(sum_rows(counts, rng.integers(0, len(said[name]), (50, 500))))
        assert ((scores > 1) & (scores < 7)).all()
        means.append((scores.mean(axis=0), scores.std(axis=0)))
    gap = np.abs(means[0][0] - means[1][0]) / means[0][1]
    assert gap.max() > 3, "Sheldon and Penny are told apart"
