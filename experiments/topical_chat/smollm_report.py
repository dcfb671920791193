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

from smollm_data import TESTS, read_turns, unpack  # type: ignore[import-not-found]

from palaver.metrics.evaluate import evaluate
from palaver.statistics.perplexity import corpus_perplexity
from palaver.text.words import count_words

METRICS = ["unigram_f1", "diversity_1", "diversity_2", "distinct_1", "distinct_2", "words"]
PEOPLE = ["diversity_1", "diversity_2", "words"]
WITH_SENTENCE = ["knowledge_f1", "copy_rate"]


def report(folders: Sequence[Path], source: Path, out: Path, responses: Path | None) -> None:
    """All figures of a row are those of one checkpoint."""
    unpack(source)
    turns = {turn["id"]: turn for split in TESTS for turn in read_turns(split)}
    counts = {split: sum(turn["split"] == split for turn in turns.values()) for split in TESTS}
    rows: dict[tuple[str, int, str], list[dict[str, Any]]] = {}
    for row in _rows(folders):
        rows.setdefault((row["run"], row["seed"], row["split"]), []).append(row)
    table = []
    for (run, seed, split), own in sorted(rows.items()):
        trained_seed = 0 if run == "untrained" else seed
        figures = {"run": f"smollm-{run}", "seed": trained_seed, "split": split, "n": len(own)}
        figures |= {"is_complete": len(own) == counts[split]}
        figures |= {**_perplexity(own, turns), **_scores(own, turns)}
        table.append(figures)
        shown = {name: value[0] if isinstance(value, list) else value for name, value in figures.items()}
        print("  ".join(f"{k} {v:.3f}" if isinstance(v, float) else str(v) for k, v in shown.items()))
    content = {
        "command": f"experiments/topical_chat/smollm.py report {' '.join(f.name for f in folders)}",
        "data": "Topical-Chat, complete test sets; the oracle's sentences of reading sets partly recovered",
        "counts": counts,
        "intervals": "95 %, bootstrap; perplexity over conversations, the others over responses",
        "decodings": _decodings(folders),
        "table": table,
        "training": [_training(folder) for folder in folders],
    }
    out.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if responses is not None:
        _write_responses(responses, rows, turns)


def _files(folders: Sequence[Path]) -> Iterator[tuple[str, bytes]]:
    for folder in folders:
        for path in sorted(folder.glob("*.tar")):
            with tarfile.open(path) as tar:
                for member in tar:
                    file = tar.extractfile(member)
                    if file is not None:
                        yield member.name, file.read()


def _rows(folders: Sequence[Path]) -> Iterator[dict[str, Any]]:
    for name, content in _files(folders):
        if any(name.endswith(f"-{split}.jsonl.gz") for split in TESTS):
            with gzip.open(io.BytesIO(content), "rt", encoding="utf-8") as file:
                yield from map(json.loads, file)


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
    content["runs"] = {f"smollm-{key}": run for key, run in content["runs"].items()}
    return content


def _decodings(folders: Sequence[Path]) -> dict[str, Any]:
    """What was tried on validation data, measured again by `palaver.metrics`."""
    turns = {turn["id"]: turn for turn in read_turns("valid_freq")}
    for name, content in _files(folders):
        if name == "decoding.json":
            tried = json.loads(content)
            references = [turns[row["id"]]["response"] for row in tried["replies"]]
            for row in tried["table"]:
                replies = [reply[f"{row['checkpoint']}, {row['decoding']}"] for reply in tried["replies"]]
                scores = {one.name: one.value for one in evaluate(replies, references, metrics=METRICS)}
                assert math.isclose(scores["unigram_f1"], row["f1"], abs_tol=1e-9), row
                assert math.isclose(scores["diversity_1"], row["div_1"], abs_tol=1e-9), row
                row["words"] = scores["words"]
            scores = {one.name: one.value for one in evaluate(references, metrics=PEOPLE)}
            tried["people"] = {"div_1": scores["diversity_1"], "div_2": scores["diversity_2"]}
            tried["people"]["words"] = scores["words"]
            return {key: value for key, value in tried.items() if key != "replies"}
    return {}


def _write_responses(path: Path, rows: dict[Any, list[dict[str, Any]]], turns: dict[str, Any]) -> None:
    with gzip.open(path, "wt", encoding="utf-8") as file:
        for (run, seed, _), own in rows.items():
            for row in own:
                turn = turns[row["id"]]
                line = {"id": row["id"], "system": f"smollm-{run}-{seed}", "response": row["response"]}
                line |= {"reference": turn["response"], "knowledge": turn["knowledge"]}
                line["context"] = turn["history"][-1]
                file.write(json.dumps(line, ensure_ascii=False) + "\n")


def _known(value: float) -> float | None:
    """JSON has no nan."""
    return None if math.isnan(value) else value
