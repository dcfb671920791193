"""What came back from the GPU, measured: perplexity per word, F1 and diversity on the complete test sets."""

from __future__ import annotations

import gzip
import io
import json
import math
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from smollm_data import MADE, TESTS, read_turns, unpack  # type: ignore[import-not-found]
from smollm_testing import take_best  # type: ignore[import-not-found]

from palaver.metrics.evaluate import evaluate
from palaver.statistics.perplexity import corpus_perplexity
from palaver.text.words import count_words

METRICS = ["unigram_f1", "diversity_1", "diversity_2", "distinct_1", "distinct_2", "words"]
PEOPLE = ["diversity_1", "diversity_2", "words"]
WITH_SENTENCE = ["knowledge_f1", "copy_rate"]


def report(
    folders: Sequence[Path], source: Path, out: Path, earlier: Path | None, responses: Path | None
) -> None:
    """All figures of a row are those of one checkpoint."""
    unpack(source)
    decodings = _decodings(folders)
    turns = {turn["id"]: turn for split in TESTS for turn in read_turns(split)}
    counts = {split: sum(turn["split"] == split for turn in turns.values()) for split in TESTS}
    rows = _rows(folders)
    table = []
    for (run, seed, split), own in sorted(rows.items()):
        trained_seed = 0 if run == "untrained" else seed
        replies = [row for row in own if row.get("response") is not None]
        figures = {"run": f"smollm-{run}", "seed": trained_seed, "split": split, "n": len(own)}
        figures |= {"n_replies": len(replies), "is_complete": len(replies) == counts[split]}
        figures |= _perplexity(own, turns)
        if replies:
            figures |= {"decoding": decodings.get("decoding", "greedy"), **_scores(replies, turns)}
        table.append(figures)
        shown = {name: value[0] if isinstance(value, list) else value for name, value in figures.items()}
        print("  ".join(f"{k} {v:.3f}" if isinstance(v, float) else str(v) for k, v in shown.items()))
    content = {
        "command": f"experiments/topical_chat/smollm.py report {' '.join(f.name for f in folders)}",
        "data": "Topical-Chat, complete test sets; the oracle's sentences of reading sets partly recovered",
        "counts": counts,
        "intervals": "95 %, bootstrap; perplexity over conversations, the others over responses",
        "decodings": decodings,
        "table": table,
        "training": [_training(folder) for folder in folders],
    }
    if earlier is not None:
        _take_over(content, earlier)
    out.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if responses is not None:
        _write_responses(responses, rows, turns)


def _take_over(content: dict[str, Any], earlier: Path) -> None:
    """Add the runs and seeds of an earlier results file that these folders do not have.

    A seed whose replies are not all there is left out where these folders have the run as a whole.
    """
    before: dict[str, Any] = json.loads(earlier.read_text(encoding="utf-8"))
    measured = {(row["run"], row["seed"]) for row in content["table"]}
    whole = {row["run"] for row in content["table"] if row["is_complete"]}
    partial = {(row["run"], row["seed"]) for row in before["table"] if not row["is_complete"]}
    dropped = measured | {key for key in partial if key[0] in whole}
    rows = [row for row in before["table"] if (row["run"], row["seed"]) not in dropped]
    for row in rows:
        if row["n_replies"]:
            row.setdefault("decoding", "greedy")  # as all replies were, until a table said how
    runs = {f"{row['run']}-{row['seed']}" for row in rows}
    for training in before["training"]:
        training["runs"] = {key: run for key, run in training["runs"].items() if key in runs}
        if training["runs"]:
            content["training"].append(training)
    content["table"] = sorted(
        [*content["table"], *rows], key=lambda row: (row["run"], row["seed"], row["split"])
    )


def _files(folders: Sequence[Path]) -> Iterator[tuple[str, bytes]]:
    for folder in folders:
        for path in sorted(folder.glob("*.tar")):
            with tarfile.open(path) as tar:
                for member in tar:
                    file = tar.extractfile(member)
                    if file is not None:
                        yield member.name, file.read()


def _rows(folders: Sequence[Path]) -> dict[tuple[str, int, str], list[dict[str, Any]]]:
    """Run, seed, split -> what is known of each turn."""
    rows: dict[tuple[str, int, str], dict[str, dict[str, Any]]] = {}
    for name, content in _files(folders):
        if any(f"-{split}-" in name for split in TESTS):
            with gzip.open(io.BytesIO(content), "rt", encoding="utf-8") as file:
                for row in map(json.loads, file):
                    own = rows.setdefault((row["run"], row["seed"], row["split"]), {})
                    own.setdefault(row["id"], {}).update(row)
    return {key: list(own.values()) for key, own in rows.items()}


def _perplexity(own: Sequence[dict[str, Any]], turns: dict[str, Any]) -> dict[str, Any]:
    talks: dict[str, list[float]] = {}
    for row in own:
        sums = talks.setdefault(row["id"].rsplit(":", 1)[0], [0.0, 0.0, 0.0])
        n_words = 1 + count_words(turns[row["id"]]["response"])
        for i, more in enumerate((row["nll"], row["n_tokens"], n_words)):
            sums[i] += more
    perplexity = corpus_perplexity(*zip(*talks.values(), strict=True))  # type: ignore[arg-type]
    interval = perplexity.per_word_interval
    assert interval is not None
    per_word = [perplexity.per_word, interval.low, interval.high]
    return {"ppl_word": per_word, "ppl_token": perplexity.per_token, "n_conversations": len(talks)}


def _scores(own: Sequence[dict[str, Any]], turns: dict[str, Any]) -> dict[str, Any]:
    """Copying is measured against the oracle's sentence, whichever the model was given."""
    true = [turns[row["id"]] for row in own]
    result = evaluate(
        [row["response"] for row in own],
        [turn["response"] for turn in true],
        knowledge=[turn["knowledge"] for turn in true],
        metrics=[*METRICS, *WITH_SENTENCE],
    )
    return {one.name: [_known(x) for x in (one.value, one.low, one.high)] for one in result}


def _training(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "training.json").read_text(encoding="utf-8"))
    content["runs"] = {f"smollm-{key}": run for key, run in content["runs"].items() if run["epochs"]}
    return content


def _decodings(folders: Sequence[Path]) -> dict[str, Any]:
    """What was tried on validation data, measured again by `palaver.metrics`."""
    contents = [content for name, content in _files(folders) if name == "decoding.json"]
    if (MADE / "decoding.json").exists():
        contents.append((MADE / "decoding.json").read_bytes())
    if not contents:
        return {}
    tried: dict[str, Any] = json.loads(contents[0])
    if "replies" not in tried:  # chosen by an earlier run, whose table is taken over
        return tried
    turns = {turn["id"]: turn for turn in read_turns("valid_freq")}
    replies = tried.pop("replies")
    references = [turns[row["id"]]["response"] for row in replies]
    for row in tried["table"]:
        said = [reply[f"{row['checkpoint']}, {row['decoding']}"] for reply in replies]
        scores = {one.name: one.value for one in evaluate(said, references, metrics=METRICS)}
        row |= {"f1": scores["unigram_f1"], "div_1": scores["diversity_1"], "div_2": scores["diversity_2"]}
        row["words"] = scores["words"]
    chosen = take_best(tried["table"])
    assert (chosen["checkpoint"], chosen["decoding"]) == (tried["checkpoint"], tried["decoding"])
    scores = {one.name: one.value for one in evaluate(references, metrics=PEOPLE)}
    people = {"div_1": scores["diversity_1"], "div_2": scores["diversity_2"], "words": scores["words"]}
    return {**tried, "people": people}


def _write_responses(path: Path, rows: dict[Any, list[dict[str, Any]]], turns: dict[str, Any]) -> None:
    with gzip.open(path, "wt", encoding="utf-8") as file:
        for (run, seed, _), own in rows.items():
            for row in (row for row in own if row.get("response") is not None):
                turn = turns[row["id"]]
                line = {"id": row["id"], "system": f"smollm-{run}-{seed}", "response": row["response"]}
                line |= {"reference": turn["response"], "knowledge": turn["knowledge"]}
                line["context"] = turn["history"][-1]
                file.write(json.dumps(line, ensure_ascii=False) + "\n")


def _known(value: float) -> float | None:
    """JSON has no nan."""
    return None if math.isnan(value) else value
