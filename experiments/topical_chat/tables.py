"""docs/results/topical-chat.md and its results file, from the results files of trained models.

    python experiments/topical_chat/tables.py docs/results/responders.json [smollm.json …] [--data DATA]

Keeps what `palaver reproduce topical-chat --runs … --json` gives as docs/results/topical-chat.json, and
writes anew what stands between the marks of the page (`<!-- table 3: begin -->`). Without results files the
page alone is written, from docs/results/topical-chat.json, knowledge.json and knowledge-reranker.json.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

from palaver.reproduce.topical_chat import NOT_REACHED, reproduce
from palaver.reproduce.topical_chat_runs import read_runs

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs/results"
PAGE = FOLDER / "topical-chat.md"
RESULTS = FOLDER / "topical-chat.json"
KNOWLEDGE = FOLDER / "knowledge.json"
RERANKER = FOLDER / "knowledge-reranker.json"
SMOLLM = FOLDER / "topical-chat-smollm.json"
SPLITS = {"test_freq": "frequent", "test_rare": "rare"}
COLUMNS = ("ppl", "f1", "div_1", "div_2")
PARTS = {"valid_freq": "validation, frequent", "valid_rare": "validation, rare"} | {
    split: f"test, {name}" for split, name in SPLITS.items()
}
NAMES = {
    "tfidf": "TF-IDF",
    "bm25": "BM25",
    "encoder": "MiniLM",
    "trained": "**trained**",
    "trained-encoder": "**trained-encoder**",
}

Result = dict[str, Any]


def decimals(value: float, digits: int) -> str:
    """As the pages write it: .47, −.47 or 85.1, a half rounded up."""
    text = f"{Decimal(str(abs(value))).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP):f}"
    sign = "−" if value < 0 else ""
    return sign + (text.replace("0.", ".", 1) if text.startswith("0.") else text)


def with_interval(figure: Result | None, digits: int) -> str:
    if figure is None:
        return ""
    value = decimals(figure["value"], digits)
    if figure["low"] is None:
        return value
    return f"{value} [{decimals(figure['low'], digits)}, {decimals(figure['high'], digits)}]"


def table_rows(result: Result, table: str) -> Iterator[str]:
    """A line for each test set: the paper's figure, and ours."""
    for row in (row for row in result["rows"] if row["table"] == table):
        splits = SPLITS if table == "table_3" else {"test_freq": "frequent"}
        for place, (split, name) in enumerate(splits.items()):
            ours = row["ours"].get(split, {})
            cells = []
            for column in COLUMNS:
                published = row["paper"].get(column, ())
                digits = 1 if column == "ppl" else 2
                cells.append(decimals(published[place], digits) if place < len(published) else "")
                cells.append(with_interval(ours.get(column), 1 if column == "ppl" else 3))
            turns = f"{row['n'][split]:,}" if split in row["n"] else "not reached"
            label = row["label"] if place == 0 else ""
            yield f"| {' | '.join([label, name, turns, *cells])} |"


def run_table(result: Result, table: str) -> str:
    first = "model" if table == "table_3" else "W_H"
    heads = [f"{name}, paper | ours" for name in ("PPL", "F1", "Div. 1", "Div. 2")]
    head = f"| {first} | test set | turns | {' | '.join(heads)} |"
    return "\n".join([head, "|---" * 11 + "|", *table_rows(result, table)])


def training_list(result: Result) -> str:
    """How long each model was trained, and what was not reached."""
    labels: dict[str, str] = {}
    notes: dict[str, str] = {}
    for row in result["rows"]:
        label = row["label"] if row["table"] == "table_3" else f"W_H = {row['label']}"
        if "/" not in row["run"]:  # the same checkpoint with another selector
            labels.setdefault(row["run"], f"{label} (`{row['run']}`)")
            notes[row["run"]] = row["note"]
    lines = [f"- {labels[run]}: {note}" for run, note in notes.items() if note not in ("", NOT_REACHED)]
    missing = [labels[run] for run, note in notes.items() if note == NOT_REACHED]
    if missing:
        lines.append(f"- **Not reached**: {', '.join(missing)}")
    return "\n".join(lines)


def selector_table(knowledge: Result) -> str:
    heads = ("part", "selector", "first choice", "among five", "mean reciprocal rank", "cosine kept")
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for split, rows in knowledge["splits"].items():
        for n, row in enumerate(rows):
            name = NAMES.get(row["selector"], row["selector"])
            others = [decimals(row[key]["value"], 3) for key in ("top5", "reciprocal_rank", "cosine_share")]
            cells = [PARTS[split] if n == 0 else "", name, with_interval(row["top1"], 3), *others]
            lines.append(f"| {' | '.join(cells)} |")
        lines.append(f"| | guessing | {decimals(rows[0]['chance_top1'], 3)} | | | |")
    return "\n".join([*lines, "", *limit_lines(knowledge["limits"])])


def limit_lines(limits: Result) -> Iterator[str]:
    """What bounds every selector."""
    yield f"What bounds every selector, on the {limits['n_turns']:,} turns of {PARTS[limits['split']]}:"
    yield ""
    heard = limits["first_choice_by_first_words"]
    yield f"| an oracle that hears only the first … words of the reply | {' | '.join(heard)} |"
    yield "|---" * (len(heard) + 1) + "|"
    yield f"| makes the oracle's choice | {' | '.join(decimals(share, 3) for share in heard.values())} |"
    yield ""
    below, within = limits["oracle_cosine_below"], limits["second_within"]
    low, lower = decimals(below["0.2"], 2), decimals(below["0.1"], 2)
    yield f"- the oracle's best cosine is below .2 in {low} of the turns, below .1 in {lower}"
    near, nearer = decimals(within["0.1"], 2), decimals(within["0.05"], 2)
    yield f"- the second best is within 10% of the best in {near} of the turns, within 5% in {nearer}"


def reranker_table(reranker: Result) -> str:
    """First choices with and without the language model."""
    names = ("trained-encoder", "with the language model", "difference")
    lines = [f"| part | turns | {' | '.join(names)} |", "|---" * 5 + "|"]
    for split, row in reranker["splits"].items():
        cells = [PARTS[split], f"{row['n_turns']:,}", *(with_interval(row[name], 3) for name in names)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def decoding_table(smollm: Result) -> str:
    """What was tried on validation data; what was taken is bold."""
    tried = smollm["decodings"]
    heads = ("checkpoint", "decoding", "PPL", "F1", "Div. 1", "Div. 2", "words a reply")
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for row in tried["table"]:
        is_taken = (row["checkpoint"], row["decoding"]) == (tried["checkpoint"], tried["decoding"])
        cells = [row["checkpoint"], f"**{row['decoding']}**" if is_taken else row["decoding"]]
        cells.append(decimals(row["ppl_word"], 1))
        cells += [decimals(row[name], 3) for name in ("f1", "div_1", "div_2")]
        lines.append(f"| {' | '.join([*cells, decimals(row['words'], 1)])} |")
    people = tried["people"]
    figures = [decimals(people["div_1"], 3), decimals(people["div_2"], 3), decimals(people["words"], 1)]
    lines.append(f"| what people said | | | | {' | '.join(figures)} |")
    return "\n".join(lines)


def seed_table(smollm: Result) -> str:
    """Every checkpoint by itself."""
    heads = ("run", "seed", "test set", "decoding", "replies", "PPL", "F1", "Div. 1", "Div. 2")
    heads = (*heads, "words a reply", "copied")
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for row in smollm["table"]:
        n_replies = f"{row['n_replies']:,}" if row["n_replies"] else "not reached"
        cells = [f"`{row['run']}`", str(row["seed"] or ""), SPLITS[row["split"]]]
        cells += [row.get("decoding", ""), n_replies]
        cells.append(with_interval(dict(zip(("value", "low", "high"), row["ppl_word"], strict=True)), 1))
        digits = {"unigram_f1": 3, "diversity_1": 3, "diversity_2": 3, "words": 1, "copy_rate": 2}
        cells += [decimals(row[name][0], n) if name in row else "" for name, n in digits.items()]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def fill(page: str, result: Result, knowledge: Result, reranker: Result, smollm: Result) -> str:
    """The page with its tables written anew."""
    parts = {
        "table 3": run_table(result, "table_3"),
        "table 5": run_table(result, "table_5"),
        "training": training_list(result),
        "selectors": selector_table(knowledge),
        "reranker": reranker_table(reranker),
        "decodings": decoding_table(smollm),
        "seeds": seed_table(smollm),
    }
    for name, content in parts.items():
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        head, _, rest = page.partition(begin)
        _, found, tail = rest.partition(end)
        if not found:
            raise SystemExit(f"the page has no {begin} … {end}")
        page = f"{head}{begin}\n{content}\n{end}{tail}"
    return page


def read(path: Path) -> Result:
    content: Result = json.loads(path.read_text(encoding="utf-8"))
    return content


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", type=Path, nargs="*")
    parser.add_argument("--data", type=Path, help="also score the oracle's sentence itself")
    given = parser.parse_args()
    if given.results:
        runs = read_runs(given.results)
        if given.data is not None:
            from palaver.reproduce.topical_chat_sentence import score_sentences

            runs.append(score_sentences(given.data))
        content = json.loads(reproduce(runs).to_json())
        names = " ".join(f"--runs {path.name}" for path in given.results)
        data = " --data DATA" if given.data is not None else ""
        content["command"] = f"palaver reproduce topical-chat {names}{data} --json"
        RESULTS.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    files = (RESULTS, KNOWLEDGE, RERANKER, SMOLLM)
    page = fill(PAGE.read_text(encoding="utf-8"), *map(read, files))
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
