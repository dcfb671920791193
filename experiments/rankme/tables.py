"""The figures of docs/results/rankme.md: the paper's tables, influence, and designs beside each other.

    python experiments/rankme/tables.py --data DATA --out docs/results/rankme.json

Prints the page's tables; `tests/reproduce/test_rankme.py` compares page and file.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from palaver.reproduce.rankme import CRITERIA, METHODS, reproduce
from palaver.schema.run import plain
from palaver.statistics.significance import holm
from palaver.studies.agreement_comparison import AgreementComparison, compare_agreement
from palaver.studies.analyse import analyse
from palaver.studies.ratings import RatingTable, read_ratings

DESIGNS = (("Plain ME", "Likert"), ("RankME", "Likert"), ("RankME", "Plain ME"))
QUALITY = "stp2_rankME_qual"
SCORES = ("raw", "log", "z", "log-z")


def read(folder: Path, method: str, setup: int, criterion: str) -> RatingTable:
    name = f"stp{setup}_{METHODS[method]}" + (f"_{CRITERIA[criterion]}" if setup == 2 else "")
    return read_ratings(folder / f"{name}.zip", columns={"item": "mr"})


def differences(comparison: AgreementComparison, criteria: Sequence[str]) -> list[dict[str, Any]]:
    rows = [row for row in comparison.differences if row.headline and row.criterion in criteria]
    return [plain(row) for row in rows]


def compare_designs(folder: Path, n_replicates: int, seed: int) -> list[dict[str, Any]]:
    """Every two designs on each criterion, in both setups; logarithms for magnitudes; p adjusted for all."""
    found = []
    for first, second in DESIGNS:
        for setup in (1, 2):
            for criterion in CRITERIA:
                comparison = compare_agreement(
                    read(folder, first, setup, criterion),
                    read(folder, second, setup, criterion),
                    normalise="log",
                    normalise_b="raw" if second == "Likert" else "log",
                    n_replicates=n_replicates,
                    seed=seed,
                )
                for row in differences(comparison, [criterion]):
                    found.append({"designs": [first, second], "setup": setup, **row})
    adjusted = holm([row["p"] for row in found]).adjusted
    return [{**row, "p_holm": float(p)} for row, p in zip(found, adjusted, strict=True)]


def influence(folder: Path, n_replicates: int, seed: int) -> dict[str, Any]:
    """Who carries the agreement on RankME's quality, and the comparison with Likert without that rater."""
    table = read_ratings(folder / f"{QUALITY}.zip", columns={"item": "mr"})
    rows = []
    for scores in SCORES:
        analysis = analyse(table, normalise=scores, n_replicates=10, seed=seed, influence=True)
        flags = {rater.rater: rater.flags for rater in analysis.raters}
        for row in analysis.influence:
            if row.criterion == "quality" and row.left_out == "rater":
                rows.append({"scores": scores, "flags": flags[row.name], **plain(row)})
    worst = max((row for row in rows if row["scores"] == "z"), key=lambda row: row["without"])["name"]
    kept = replace(table, frame=table.frame.filter(pl.col("rater").cast(pl.String) != worst))
    likert = read(folder, "Likert", 2, "quality")
    without = compare_agreement(kept, likert, normalise="z", n_replicates=n_replicates, seed=seed)
    return {
        "file": f"{QUALITY}.zip",
        "rows": rows,
        "without": worst,
        "against_likert": [plain(row) for row in without.differences if row.headline],
    }


def page_tables(results: Mapping[str, Any]) -> list[str]:
    """The tables of the page, in its order."""
    return [
        _matches(results["comparison"]["cells"]),
        _notes(results["comparison"]["cells"]),
        _influence(results["influence"]["rows"]),
        _designs(results["designs"]),
    ]


def number(value: float | None, digits: int = 2) -> str:
    return "–" if value is None else f"{value:.{digits}f}".replace("-", "−")


def _matches(cells: Sequence[Mapping[str, Any]]) -> str:
    def count(chosen: Sequence[Mapping[str, Any]]) -> str:
        return f"{sum(cell['matches'] for cell in chosen)} of {len(chosen)}"

    groups = [cell for cell in cells if cell["table"] == "Table 4"]
    boxes = [cell for cell in groups if cell["row"].endswith(" information")]
    skills = [cell for cell in groups if cell["row"].startswith("TrueSkill")]
    means = [cell for cell in groups if cell not in boxes and cell not in skills]
    rows = [
        ("2, correlation between criteria", [c for c in cells if c["table"] == "Table 2"],
         "Spearman over the means of the 300 outputs"),
        ("3, agreement", [c for c in cells if c["table"] == "Table 3"],
         "ICC(1,k); logarithms of magnitudes, Likert as given"),
        ("4, rankings by bootstrap", means, "means of values as given, 95% over items"),
        ("4, rankings by TrueSkill", skills, "wins, draws, losses within RankME's screens, 95% over items"),
        ("4, added and missing information", boxes,
         "share of ratings without the box; boxes of `stp2_rankME_qual.zip`"),
    ]  # fmt: skip
    head = ["| table | matches | the one convention |", "|---|---|---|"]
    return "\n".join([*head, *(f"| {name} | {count(chosen)} | {how} |" for name, chosen, how in rows)])


def _notes(cells: Sequence[Mapping[str, Any]]) -> str:
    """Cells that differ, and what other conventions give."""
    lines = ["| cell | paper | here | other conventions |", "|---|---|---|---|"]
    for cell in cells:
        if cell["matches"] or cell["table"] == "Table 4":
            continue
        others = "; ".join(map(_alternative, cell["alternatives"]))
        place = f"{cell['table']}, {cell['row']}, {cell['column']}"
        lines.append(f"| {place} | {number(cell['paper'])} | {number(cell['ours'])} | {others} |")
    return "\n".join(lines)


def _alternative(other: Mapping[str, Any]) -> str:
    n = f" (n = {other['n']})" if other["n"] else ""
    return f"{other['convention']}{n}: {number(other['value'])}"


def _influence(rows: Sequence[Mapping[str, Any]]) -> str:
    raters = list(dict.fromkeys(row["name"] for row in sorted(rows, key=lambda row: -row["n_ratings"])))
    cells = {(row["name"], row["scores"]): row for row in rows}
    lines = ["| | ratings | as given | log | z | z of log | flags |", "|---|---|---|---|---|---|---|"]
    everybody = [number(cells[raters[0], scores]["value"]) for scores in SCORES]
    n_all = sum(cells[rater, "raw"]["n_ratings"] for rater in raters)
    lines.append(f"| all raters | {n_all} | {' | '.join(everybody)} | |")
    for rater in raters:
        values = [number(cells[rater, scores]["without"]) for scores in SCORES]
        row = cells[rater, "z"]
        lines.append(
            f"| without {rater} | −{row['n_ratings']} | {' | '.join(values)} | {', '.join(row['flags'])} |"
        )
    return "\n".join(lines)


def p_value(p: float) -> str:
    return "< .001" if p < 0.001 else f"{p:.3f}".removeprefix("0")


def _designs(rows: Sequence[Mapping[str, Any]]) -> str:
    lines = [
        "| A | B | setup | criterion | ICC of A | of B | A − B | 95% interval | p | p (Holm) |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        values = (row["a"], row["b"], row["difference"])
        cells = [*row["designs"], row["setup"], row["criterion"], *map(number, values)]
        cells += [f"{number(row['low'])} to {number(row['high'])}", p_value(row["p"]), p_value(row["p_holm"])]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="the folder that holds rankme/")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--replicates", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    folder = given.data / "rankme"
    comparison = reproduce(folder, seed=given.seed, n_replicates=given.replicates)
    results = {
        "command": f"python experiments/rankme/tables.py --data DATA --out {given.out}",
        "seed": given.seed,
        "replicates": given.replicates,
        "hardware": f"{platform.machine()}, {os.cpu_count()} cores",
        "comparison": json.loads(comparison.to_json()),
        "influence": influence(folder, given.replicates, given.seed),
        "designs": compare_designs(folder, given.replicates, given.seed),
    }
    text = json.dumps(results, ensure_ascii=False, indent=1, allow_nan=False)
    given.out.write_text(text + "\n", encoding="utf-8")
    print(*page_tables(results), sep="\n\n")


if __name__ == "__main__":
    main()
