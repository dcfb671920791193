"""What six language models as judges of MT-Bench answers are moved by, for docs/results/judges.md.

    python experiments/judges/verdicts.py --data ../shared/data --out docs/results/judges-verdicts.json

Each of 15 pairs of six systems on 80 questions was judged in both orders. The preference for the own family
is put beside the same figure for families the judge does not belong to: what stands out must be more than
that.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from corpora import read_scores, read_verdicts, write_record
from palaver import icc, ratings_from_frame
from palaver.judges.bias import bias_report
from palaver.schema.run import plain

FAMILIES = ("exaone", "gemma", "llama", "mistral", "phi", "eeve")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    verdicts, answers, counts = read_verdicts(options.data)
    table = ratings_from_frame(verdicts, name="verdicts")
    report = bias_report(table, responses=answers)
    judges = [row.judge for row in report.rows]
    favours = {judge: {} for judge in judges}
    for family in FAMILIES:  # as if each judge were of that family
        for judge in judges:
            row = next(row for row in bias_report(table, families={judge: family}).rows if row.judge == judge)
            favours[judge][family] = {"value": row.own, "low": row.own_low, "high": row.own_high}
    naive = {}
    for judge in judges:
        rates = [rate for rate in report.win_rates if rate.judge == judge]
        order = {
            name: [rate.system for rate in sorted(rates, key=lambda rate, name=name: -getattr(rate, name))]
            for name in ("one_order", "both_orders")
        }
        naive[judge] = {
            "largest_error": max(abs(rate.one_order - rate.both_orders) for rate in rates),
            "first_by_one_order": order["one_order"][0],
            "first_by_both_orders": order["both_orders"][0],
            "moved": sum(a != b for a, b in zip(order["one_order"], order["both_orders"], strict=True)),
        }
    scores = read_scores(options.data).with_columns(unit=None)
    wide = (
        scores.with_columns(scores["value"].cast(float).alias("number"))
        .pivot(on="rater", index=["item", "system"], values="number", aggregate_function="mean")
        .drop("item", "system")
    )
    agreement = icc(wide.drop_nulls().to_numpy(), n_replicates=0)
    form = agreement.forms[1]
    files = [
        options.data / "judges" / f"mtbench_{name}.jsonl.gz" for name in ("pairwise", "answers", "scores")
    ]
    content = {
        "counts": {judge: dict(count) for judge, count in counts.items()},
        "bias": plain(report.rows),
        "favours": plain(favours),
        "win_rates": plain(report.win_rates),
        "agreement": plain(report.pairs),
        "naive": naive,
        "scores": {
            "icc": form.form,
            "value": form.value if math.isfinite(form.value) else None,
            "n": wide.height,
        },
    }
    command = (
        "python experiments/judges/verdicts.py --data ../shared/data --out docs/results/judges-verdicts.json"
    )
    write_record(options.out, command, files, content)


if __name__ == "__main__":
    main()
