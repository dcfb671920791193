"""USR: An Unsupervised and Reference Free Evaluation Metric for Dialog Generation (Mehri & Eskenazi 2020).

How far annotators agree about Topical-Chat responses, from the released ratings, and beside the paper's judge
those of ours that need no ratings to be made.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from palaver.errors import DataError
from palaver.files import sha256_of
from palaver.judges import judge
from palaver.judges.meta import PACKAGES, meta_evaluate
from palaver.judges.meta_measures import OUTPUTS
from palaver.reproduce.comparison import Comparison, NumberCell, load_figures
from palaver.schema import Response, Turn, record_run
from palaver.statistics.correlation import correlate
from palaver.studies.ratings import ratings_from_frame

FILE = "usr_topical_chat.json.gz"
CRITERIA = ("Understandable", "Natural", "Maintains Context", "Engaging", "Uses Knowledge", "Overall")
METRICS = ("diversity_2", "chrf", "knowledge_f1", "rouge_l", "bleu", "unigram_f1", "words")
FIGURES = load_figures("judges")
_COLUMNS = ("Spearman", "Pearson")
_NO_FACT = "_nofact"
_WHAT_WAS_SAID = "Original Ground Truth"


def usr_file(data: Path) -> Path:
    """The ratings in a folder, or in its folder `rated`."""
    for place in (data / FILE, data / "rated" / FILE):
        if place.is_file():
            return place
    raise DataError(
        f"{data} does not hold USR's ratings",
        "get tc_usr_data.json from shikib.com/usr, pack it with gzip and name its folder with --data",
        [f"no file {FILE}"],
    )


def read_usr(data: Path) -> tuple[pl.DataFrame, list[Response]]:
    """People's ratings in the long format, and the 360 responses with context, knowledge and reference.

    The reference is what was really said next; that response itself has none.
    """
    ratings, responses = [], []
    for number, context in enumerate(_contexts(data)):
        item = f"usr-{number:02d}"
        lines = [line.strip() for line in context["context"].strip().split("\n") if line.strip()]
        turns = tuple(
            Turn(speaker="system" if (len(lines) - place) % 2 == 0 else "user", text=line)
            for place, line in enumerate(lines)
        )
        fact = context["fact"].strip()
        said = {response["model"]: response["response"].strip() for response in context["responses"]}
        for response in context["responses"]:
            system = response["model"]
            responses.append(
                Response(
                    id=item, system=system, context=turns, response=said[system],
                    knowledge=None if fact.startswith(_NO_FACT) else fact,
                    reference=None if system == _WHAT_WAS_SAID else said[_WHAT_WAS_SAID],
                )
            )  # fmt: skip
            for criterion in CRITERIA:
                for rater, value in zip(context["annotators"], response[criterion], strict=True):
                    ratings.append(
                        {"item": item, "system": system, "rater": rater, "value": str(value),
                         "criterion": criterion.lower(), "kind": "human"}
                    )  # fmt: skip
    return pl.DataFrame(ratings), responses


def reproduce(data: Path, *, seed: int = 0) -> Comparison:
    """The agreement between annotators, and metrics as judges beside the paper's."""
    path = usr_file(data)
    run = record_run(
        "reproduce judges", seed=seed, config={}, data={FILE: sha256_of(path)}, packages=PACKAGES
    )
    return Comparison(
        paper="USR (Mehri & Eskenazi 2020), from the released ratings of Topical-Chat",
        cells=tuple(_agreement(data)),
        remarks=tuple(_remarks(data, seed)),
        signature=f"palaver {run.versions['palaver']} | seed {seed} | run {run.signature}",
    )


def _contexts(data: Path) -> list[dict[str, Any]]:
    path = usr_file(data)
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            contexts: list[dict[str, Any]] = json.load(file)
    except (OSError, EOFError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}") from None
    return contexts


def _agreement(data: Path) -> Iterator[NumberCell]:
    """The mean correlation of two annotators of the same responses, over the three pairs of places."""
    for criterion in CRITERIA:
        values = np.array(
            [response[criterion] for context in _contexts(data) for response in context["responses"]], float
        )
        for column, paper in zip(_COLUMNS, FIGURES["agreement"][criterion.lower()], strict=True):
            pairs = [
                correlate(values[:, a], values[:, b], method=column.lower())  # type: ignore[arg-type]
                for a, b in combinations(range(3), 2)
            ]
            yield NumberCell(
                table="Agreement between annotators", row=criterion.lower(), column=column,
                convention="mean over pairs of annotators", paper=paper, paper_star=True,
                ours=float(np.mean([pair.value for pair in pairs])), p=max(pair.p for pair in pairs),
            )  # fmt: skip


def _remarks(data: Path, seed: int) -> Iterator[str]:
    people, responses = read_usr(data)
    judged = judge(responses, METRICS).frame
    columns = ["item", "system", "rater", "criterion", "value", "kind"]
    frames = [people.filter(pl.col("criterion") == "overall").select(columns),
              judged.select(pl.col(columns).cast(pl.String))]  # fmt: skip
    table = ratings_from_frame(pl.concat(frames), name="usr")
    result = meta_evaluate(table, n_permutations=1, n_disagreements=0, seed=seed)
    spearman, pearson = FIGURES["judges"]["USR"]
    yield f"overall, the paper's USR: Spearman {spearman:.2f}, Pearson {pearson:.2f}"
    for row in result.ranked("overall"):
        other = result.of("overall", row.judge)[OUTPUTS, "pearson"].value
        interval = f"[{row.low:.2f}, {row.high:.2f}]"
        yield (
            f"overall, {row.judge} on {row.n} responses: Spearman {row.value:.2f} {interval}, "
            f"Pearson {other:.2f}"
        )
    yield "the judge `response` was made of these ratings: docs/results/judges.md has its figures on new ones"
