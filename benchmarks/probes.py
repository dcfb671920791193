"""Probing is bounded by the encoder: what is not spent inside it must be below 5 per cent.

    python -m benchmarks.probes --triplets triplets.jsonl --out docs/results/probes/speed.json  # 3 minutes
    python -m benchmarks.probes                                            # the sample that comes along

Counts everything around the encoder: hashing, looking up and keeping vectors, cosines, intervals, tests. The
model is loaded before the clock starts. A second run over kept vectors shows what is left when
nothing has to be encoded. Ends with 1 if the limit was missed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.harness import machine
from palaver.models.encoders import Places, open_encoder
from palaver.probes.evaluate import evaluate
from palaver.probes.probe import SAMPLE
from palaver.probes.triplet_files import read_triplets

LIMIT = 0.05


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--triplets", type=Path, default=SAMPLE)
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, help="keep the figures as JSON")
    given = parser.parse_args()
    encoder = open_encoder(given.encoder, Places(given.data))
    encoder.encode(["The model is loaded now."])
    triplets = read_triplets(given.triplets)
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        result = evaluate([encoder], triplets, cache=Path(folder))
        total = time.perf_counter() - began
        inside = result.encoders[0].encoder_seconds
        began = time.perf_counter()
        evaluate([encoder], triplets, cache=Path(folder))
        again = time.perf_counter() - began
    share = 1 - inside / total
    n_variants = sum(bool(t.variant) for t in triplets)
    print(
        f"{len(triplets) - n_variants} triplets, {n_variants} variants, "
        f"{result.n_sentences} different sentences, {encoder.name}"
    )
    print(
        f"in the encoder {inside:8.2f} s   outside {total - inside:6.2f} s = {share:.1%} (limit {LIMIT:.0%})"
    )
    print(f"again, with all vectors kept: {again:.2f} s")
    if given.out is not None:
        figures = {
            "made_by": "python -m benchmarks.probes",
            "machine": machine(),
            "encoder": encoder.name,
            "n_triplets": len(triplets) - n_variants,
            "n_variants": n_variants,
            "n_sentences": result.n_sentences,
            "encoder_seconds": round(inside, 2),
            "outside_seconds": round(total - inside, 3),
            "again_seconds": round(again, 3),
            "limit": LIMIT,
        }
        given.out.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    if share >= LIMIT:
        sys.exit(f"MISSED: {share:.1%} outside the encoder")


if __name__ == "__main__":
    main()
