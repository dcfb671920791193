"""The page on speed says what the record of the benchmark says."""

from __future__ import annotations

import json
from pathlib import Path

RESULTS = Path(__file__).parent.parent / "docs/results"


def test_the_page_quotes_the_record_of_metrics() -> None:
    page = (RESULTS / "speed.md").read_text(encoding="utf-8")
    record = json.loads((RESULTS / "metrics-speed.json").read_text(encoding="utf-8"))
    cases = {
        "seven metrics of 100,000 responses": record["results"]["one_pass"],
        "1,000 paired replicates of five": record["results"]["paired_replicates"],
    }
    for name, case in cases.items():
        peer, ours, ratio = case["peer_seconds"], case["our_seconds"], case["ratio"]
        assert f"| {name} | {peer:.1f} s | {ours:.2f} s | {ratio:.0f} × | {case['target']} × |" in page
        assert ratio == peer / ours
    assert record["n_responses"] == 100_000
    assert record["seed"] == 0
    bleu, theirs = record["results"]["one_pass"]["figures"]["bleu"]
    assert abs(bleu - theirs) < 1e-9


def test_the_page_quotes_the_record_of_metrics_with_a_model() -> None:
    page = (RESULTS / "speed.md").read_text(encoding="utf-8")
    record = json.loads((RESULTS / "metrics-models-speed.json").read_text(encoding="utf-8"))
    case = record["results"]["bertscore"]
    peer, ours, ratio = case["peer_seconds"], case["our_seconds"], case["ratio"]
    name = f"BERTScore of four systems on {case['n_items']:,} items"
    assert case["n_systems"] == 4
    assert f"| {name} | {peer:.1f} s | {ours:.2f} s | {ratio:.1f} × | {case['target']} × |" in page


def test_the_page_quotes_the_memory_of_metrics() -> None:
    page = (RESULTS / "speed.md").read_text(encoding="utf-8")
    record = json.loads((RESULTS / "metrics-memory.json").read_text(encoding="utf-8"))
    for case in record["results"]["memory"]:
        assert f"| {case['n_lines']:,} | {case['processor_seconds']:.0f} | {case['peak_mb']:,} MB |" in page


def test_the_page_quotes_the_record() -> None:
    page = (RESULTS / "speed.md").read_text(encoding="utf-8")
    record = json.loads((RESULTS / "analyse.json").read_text(encoding="utf-8"))
    rows = [
        f"| {case['n_ratings']:,} | {case['shape']} | {case['seconds']:.1f} "
        f"| {case['processor_seconds']:.1f} | {case['peak_mb']:,} MB |"
        for case in record["cases"]
    ]
    table = page.split("| ratings | shape |")[1].split("\n\n")[0].splitlines()[2:]
    assert table == rows
    assert record["seed"] == 0
    assert {"palaver", "numpy", "numba", "polars"} <= set(record["versions"])
