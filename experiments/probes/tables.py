"""The tables of docs/results/probes.md from what `palaver reproduce probes --out FOLDER` wrote.

    python experiments/probes/tables.py FOLDER/results.json docs/results/probes.md

Replaces what stands between the two marks in the page, and nothing else.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from palaver.probes.recipe import SETS
from palaver.reproduce.probes import CASES, ENCODERS, PAPER

BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"


def tables(result: dict[str, Any]) -> str:
    """Tables 2 to 6, the cases of Clause Relatedness, and where the rows come from."""
    names = [row["name"] for row in result["encoders"]]
    scores = {(s["encoder"], s["set"]): s for s in result["scores"]}
    kinds = {key: next((n for n in names if n.partition("=")[0] == key), None) for key in ENCODERS}
    others = [n for n in names if n not in kinds.values()]
    lines = []
    for name, n in result["n_triplets"].items():
        kind = SETS[name]
        lines += ["", f"### Table {kind.table}: {kind.title} ({n} triplets, the paper {kind.paper_size})", ""]
        lines += [
            "| encoder | | S∧S+ | S∧S\\* | S+∧S\\* | accuracy | 95 % interval |",
            "|---|---|--:|--:|--:|--:|--:|",
        ]
        for key, own in kinds.items():
            cells = " | ".join(f"{value:.2f}" for value in PAPER[name][key])
            lines.append(f"| {ENCODERS[key]} | paper | {cells} | |")
            if own is not None:
                lines += ours("", scores[own, name])
        for own in others:
            lines += ours(own, scores[own, name])
        if name == "clause-relatedness":
            lines += cases(names, scores)
        if name == "argument-sensitivity":
            said = ", ".join(f"{n} {_percent(scores[n, name]['other_rule'])}" for n in names)
            lines += ["", f"By the wording of section 2.2 (S∧S+ above S+∧S\\*): {said}."]
        parts = [(n, [p for p in scores[n, name]["parts"] if p["by"] == "corpus"]) for n in names]
        if any(p for _, p in parts):
            told = [
                f"{n}: " + ", ".join(f"{p['name']} {_percent(p['share'])}" for p in ps)
                for n, ps in parts
                if ps
            ]
            lines += ["", "Accuracy by corpus. " + "; ".join(told) + "."]
    lines += ["", "### Where the rows come from", ""]
    lines += [
        f"- **{row['name']}**: {row['provenance']}; {row['size']} numbers." for row in result["encoders"]
    ]
    run = result["run"]
    data = ", ".join(f"{name} {digest[:8]}" for name, digest in run["data"].items())
    lines += [
        "",
        f"Seed {run['seed']}, {result['n_sentences']:,} different sentences, {data}, run {run['signature']}.",
    ]
    return "\n".join(lines).strip()


def _percent(share: dict[str, Any]) -> str:
    return f"{100 * share['right'] / share['n']:.2f}"


def ours(label: str, score: dict[str, Any]) -> list[str]:
    means = " | ".join(f"{100 * score[k]['mean']:.2f}" for k in ("plus", "star", "between"))
    share = score["share"]
    spread = f"[{100 * share['low']:.1f}, {100 * share['high']:.1f}]"
    return [f"| {label} | ours | {means} | **{_percent(share)}** | {spread} |"]


def cases(names: list[str], scores: dict[tuple[str, str], Any]) -> list[str]:
    lines = ["", "| encoder | case a | paper | case b | paper |", "|---|--:|--:|--:|--:|"]
    for name in names:
        parts = {p["name"]: p for p in scores[name, "clause-relatedness"]["parts"] if p["by"] == "case"}
        paper = [f"{value:.2f}" for value in CASES.get(name.partition("=")[0], {}).values()] or ["", ""]
        cells = [_percent(parts[c]["share"]) if c in parts else "" for c in "ab"]
        lines.append(f"| {name} | {cells[0]} | {paper[0]} | {cells[1]} | {paper[1]} |")
    return lines


def main() -> None:
    source, page = Path(sys.argv[1]), Path(sys.argv[2])
    text = page.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    made = tables(json.loads(source.read_text(encoding="utf-8")))
    page.write_text(f"{head}{BEGIN}\n{made}\n{END}{tail}", encoding="utf-8")


if __name__ == "__main__":
    main()
