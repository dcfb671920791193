"""What the experiments on judges read: USR's ratings, verdicts on MT-Bench answers, rated dialogues."""

from __future__ import annotations

import datetime
import gzip
import json
import platform
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

import polars as pl  # noqa: E402
from benchmarks.harness import machine  # noqa: E402

from palaver.files import sha256_of  # noqa: E402
from palaver.reproduce.judges import read_usr, usr_file  # noqa: E402, F401
from palaver.schema import Dialogue, Response, Turn  # noqa: E402

THUMBS = {
    "convai2017": ("convai2017_humanbot", {1: 0.0, 2: 1.0}),
    "convai2": ("convai2_rated", {0: 0.0, 1: 1.0}),
}
"""Corpus -> its file, and which marks of a reply mean a thumb down and a thumb up."""


def thumbs_file(data: Path, corpus: str) -> Path:
    return data / "rated" / f"{THUMBS[corpus][0]}.jsonl.gz"


def read_thumbs(data: Path, corpus: str) -> tuple[list[Response], list[float]]:
    """Replies of bots to a person who gave each a thumb down (0) or up (1) while they talked.

    Turns in a row of one speaker count as one; a reply is rated alone, so only the first after the person's
    turn is taken. The article that both read is the knowledge.
    """
    marks = THUMBS[corpus][1]
    responses, thumbs = [], []
    for row in _lines(thumbs_file(data, corpus)):
        turns: list[Turn] = []
        for turn in row["turns"]:
            text = turn["text"].strip()
            if not text:
                continue
            speaker = "user" if turn["spk"] == "user" else "system"
            mark = marks.get(turn["utt_eval"]) if speaker == "system" else None
            if mark is not None and turns and turns[-1].speaker == "user":
                responses.append(
                    Response(
                        id=f"{row['id']}-{len(turns)}", system=str(row.get("bot")), context=tuple(turns),
                        response=text, knowledge=row.get("context"),
                    )
                )  # fmt: skip
                thumbs.append(mark)
            if turns and turns[-1].speaker == speaker:
                turns[-1] = Turn(speaker=speaker, text=f"{turns[-1].text} {text}")
            else:
                turns.append(Turn(speaker=speaker, text=text))
    return responses, thumbs


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def read_verdicts(data: Path) -> tuple[pl.DataFrame, list[Response], dict[str, Counter[str]]]:
    """Verdicts in both orders as ratings, the answers, and what became of each judge's questions."""
    rows = []
    counts: dict[str, Counter[str]] = {}
    for verdict in _lines(data / "judges" / "mtbench_pairwise.jsonl.gz"):
        count = counts.setdefault(verdict["judge"], Counter())
        for place, order in enumerate(("a_first", "b_first")):
            count["asked"] += 1
            said = verdict[order]
            if said not in ("A", "B", "tie"):
                count["unparsed"] += 1
                continue
            count["answered"] += 1
            value = "tie" if said == "tie" else "win" if (said == "A") == (place == 0) else "loss"
            question = str(verdict["question"])
            rows.append(
                {"item": f"{question}|{verdict['a']}|{verdict['b']}", "context": question,
                 "system": verdict["a"], "against": verdict["b"], "rater": verdict["judge"],
                 "criterion": "better", "value": value, "shown_position": place, "repeat": place,
                 "kind": "llm"}
            )  # fmt: skip
    answers = [
        Response(
            id=str(row["question_id"]), system=row["model_id"], response="\n".join(row["choices"][0]["turns"])
        )
        for row in _lines(data / "judges" / "mtbench_answers.jsonl.gz")
    ]
    return pl.DataFrame(rows), answers, counts


def read_scores(data: Path) -> pl.DataFrame:
    """The same judges' 1 to 10 scores of each turn, as ratings."""
    rows = [
        {"item": f"{row['question_id']}-{turn}", "system": row["model_id"], "rater": row["judge_id"],
         "criterion": "score", "value": str(row[f"score_turn{turn}"]), "kind": "llm"}
        for row in _lines(data / "judges" / "mtbench_scores.jsonl.gz")
        for turn in (1, 2)
        if isinstance(row.get(f"score_turn{turn}"), int | float) and row[f"score_turn{turn}"] > 0
    ]  # fmt: skip
    return pl.DataFrame(rows)


def read_reliable(data: Path) -> tuple[pl.DataFrame, list[Dialogue]]:
    """The chatters' ratings (0 to 100) of held-out dialogues by reliable raters, and the dialogues."""
    rows, dialogues = [], []
    for row in _lines(data / "rated" / "reliable_eval.dev_dialogues.jsonl.gz"):
        turns = tuple(
            Turn(speaker="user" if turn["spk"] == "user" else "system", text=turn["text"])
            for turn in row["turns"]
        )
        dialogues.append(
            Dialogue(id=row["id"], turns=turns, labels={"system": row["bot"], "group": row["hit"]})
        )
        for criterion, value in {**row["scores"], "rating": row["rating100"]}.items():
            rows.append(
                {"item": row["id"], "context": row["hit"], "system": row["bot"], "rater": row["worker"],
                 "criterion": criterion, "value": str(value), "kind": "human"}
            )  # fmt: skip
    return pl.DataFrame(rows), dialogues


def write_record(path: Path, command: str, files: list[Path], content: dict[str, Any]) -> None:
    """A results file: who made it, of what, on what machine."""
    record = {
        "made_by": command,
        "date": datetime.date.today().isoformat(),
        "seed": 0,
        "python": platform.python_version(),
        "machine": machine(),
        "data": {file.name: sha256_of(file)[:16] for file in files},
        **content,
    }
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
