"""The paper's tables beside ours."""

from __future__ import annotations

import dataclasses
import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from palaver.models.encoders import Encoder, Places
from palaver.probes.probe import SAMPLE
from palaver.probes.recipe import SETS
from palaver.reproduce import probes


def test_the_published_numbers_are_whole() -> None:
    assert set(probes.PAPER) == set(SETS)
    for rows in probes.PAPER.values():
        assert set(rows) == set(probes.ENCODERS)
        for row in rows.values():
            assert all(0 <= value <= 100 for value in row)
    assert probes.PAPER["fixed-point-reorder"]["skipthought"][3] == 99.84
    assert [SETS[s].paper_size for s in SETS] == [674, 516, 567, 445, 623]


def test_ours_stand_beside_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def bag(texts: list[str]) -> Any:
        return [
            [text.lower().count(letter) + 0.1 for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts
        ]

    def opened(said: str, places: Places) -> Encoder:
        if said == "sent2vec":
            from palaver.errors import UserError

            raise UserError("no sent2vec model comes along")
        return Encoder(said, "", f"letters, in place of {said}", bag)

    monkeypatch.setattr(probes, "open_encoder", opened)
    found = probes.reproduce(Places(), triplets=SAMPLE)
    out = io.StringIO()
    probes.print_reproduction(found, Console(file=out, width=100))
    said = out.getvalue()
    assert "Table 6: Fixed Point Reorder, 19 triplets (paper 623)" in said
    assert "99.84" in said
    assert "letters, in place of glove" in said
    assert "not here: Sent2Vec" in said
    assert "case a" in said
    assert "paper 36.90" in said
    assert set(found.names) == ({*probes.ENCODERS, *probes.MODERN} - {"sent2vec"})
    assert len(probes.ENCODERS) + len(probes.MODERN) >= 10
    assert said.count("other case") == len(found.names) * len(SETS)
    for line in found.far:  # letters are order-blind: sets 4 and 5 agree with the paper
        assert "Fixed Point" not in line


def test_the_whole_set_is_compared_and_sick_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from palaver.probes.evaluate import evaluate
    from palaver.probes.triplet_files import read_triplets

    first = [t for t in read_triplets(SAMPLE) if t.set == "negation-detection"][:4]
    triplets = [dataclasses.replace(t, corpus="sick" if n < 2 else "msrp") for n, t in enumerate(first)]
    table = {}
    for n, t in enumerate(triplets):
        table |= {
            t.original: [1, 0],
            t.plus: [1, 0] if n >= 2 else [0, 1],
            t.star: [0, 1] if n >= 2 else [1, 0],
        }
    result = evaluate(
        [Encoder("glove", "", "", lambda texts: [table.get(t, [1, 0]) for t in texts])], triplets
    )
    found = probes.Reproduction(result, {"glove": "glove"}, ())
    assert found.score("p-means", "negation-detection") is None
    said = "Negation Detection, Glove Avg: 50.00 (0.00 on sentences of SICK), the paper has 13.06"
    assert found.far == (said,)
    assert found.lost == ()  # that one is known
    renamed = {"negation-variants": result.n_triplets["negation-detection"]}
    scores = tuple(dataclasses.replace(score, set="negation-variants") for score in result.scores)
    other = dataclasses.replace(result, scores=scores, n_triplets=renamed)
    assert len(probes.Reproduction(other, {"glove": "glove"}, ()).lost) == 1
