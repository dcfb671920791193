"""Counting words by category beside `empath` and `liwc`: a million short utterances, one process, one thread.

    python -m benchmarks.personality_counts [DATA/scripts]

Peers: pip install empath==0.89 liwc==0.5.0. Utterances come from the scripts where they are (a mean of eight
words), and are put together at random from their words up to a million; without the scripts, from words of
the open lexicon.

- `empath` builds its index of words anew in every `analyze`, which takes most of the time when the text is
  short. So it is measured three times: as it is; with the index built once and the rest of `analyze` as it
  stands (the case that the target is for); and on 10,000 utterances joined, which gives one count for all of
  them and none an utterance.
- `liwc` reads a `.dic` of the very categories that ours counts, and counts as its manual says: tokenise with
  a regular expression, parse each token, count the categories.

Peers are measured on 100,000 of the utterances and their times taken ten times. The line in brackets says how
long ours takes for those, where looking up each word for the first time weighs more.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import sys
import tempfile
from collections import Counter as Tally
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Table, best_of, machine
from palaver.personality.counts import Counter, sum_rows
from palaver.personality.lexicon import Lexicon, open_lexicon

N = 1_000_000
PEER_N = 100_000


def utterances(folder: Path | None) -> list[str]:
    """A million: the scripts themselves, then new ones of the same lengths from the same words."""
    rng = np.random.default_rng(0)
    real: list[str] = []
    for path in sorted(folder.glob("*_turns.csv.gz")) if folder else ():
        with gzip.open(path) as file:
            real += [row["text"] for row in csv.DictReader(io.TextIOWrapper(file, encoding="utf-8"))]
    words = " ".join(real).split() or sorted(open_lexicon().exact)
    real = [text for text in real if len(text.split()) <= 20]
    sizes = rng.poisson(8, N - len(real)).clip(1, 40)
    drawn = np.array(words, dtype=object)[rng.integers(0, len(words), sizes.sum())].tolist()
    ends = np.cumsum(sizes).tolist()
    made = [" ".join(drawn[b:e]) for b, e in zip([0, *ends[:-1]], ends, strict=True)]
    return real + made


def write_dic(lexicon: Lexicon, path: Path) -> None:
    """The open lexicon as a `.dic` file; patterns that LIWC does not know (endings, exceptions) are left
    out."""
    lines = ["%", *(f"{i + 1}\t{name}" for i, name in enumerate(lexicon.categories)), "%"]
    for patterns, star in ((lexicon.exact, ""), (lexicon.begins, "*")):
        for word, categories in sorted(patterns.items()):
            held = sorted(set().union(*(lexicon.includes[c] for c in categories)))
            lines.append("\t".join([word + star, *(str(c + 1) for c in held)]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def count_with_empath(peer: Any, texts: list[str]) -> list[dict[str, float]]:
    """The loop of `Empath.analyze` with its default tokeniser, the index of words taken out of it."""
    index: defaultdict[str, list[str]] = defaultdict(list)
    for category, terms in peer.cats.items():
        for term in terms:
            index[term].append(category)
    counts = []
    for text in texts:
        count = dict.fromkeys(peer.cats, 0.0)
        for token in text.split():
            for category in index.get(token, ()):
                count[category] += 1.0
        counts.append(count)
    return counts


def main() -> None:
    report = Table()
    texts = utterances(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
    mean = sum(len(t.split()) for t in texts[:50_000]) / 50_000
    print(f"{machine()}\n{len(texts):,} utterances, {mean:.1f} words each\n")
    lexicon = open_lexicon()
    Counter(lexicon).count(texts[:1000])  # compiles
    ours, counts = best_of(lambda: Counter(lexicon).count(texts), 5, warm_up=False)
    print(
        f"ours: {len(texts) / ours:,.0f} utterances/s, {counts.nnz / len(texts):.1f} numbers an utterance\n"
    )

    some = [texts[i] for i in np.random.default_rng(1).choice(len(texts), PEER_N, replace=False)]
    ours_some, _ = best_of(lambda: Counter(lexicon).count(some), 5)
    try:
        from empath import Empath
    except ImportError:
        print("empath: not installed")
    else:
        peer = Empath()
        theirs, _ = best_of(lambda: count_with_empath(peer, some), 5, warm_up=False)
        scaled = theirs * len(texts) / PEER_N
        report(
            "a million utterances, one count each",
            peer=scaled,
            ours=ours,
            target=8,
            note="empath, index built once",
        )
        single, _ = best_of(lambda: [peer.analyze(text) for text in some[:200]], 1, warm_up=False)
        scaled = single * len(texts) / 200
        report("  the same", peer=scaled, ours=ours, note="empath as it is (200 measured)")
        parts = [some[i : i + 10_000] for i in range(0, len(some), 10_000)]
        theirs, _ = best_of(lambda: [peer.analyze(part) for part in parts], 5, warm_up=False)
        scaled = theirs * len(texts) / PEER_N
        report("  the same", peer=scaled, ours=ours, note="empath, one count for each 10,000 utterances")
    try:
        import liwc
    except ImportError:
        print("liwc: not installed")
    else:
        with tempfile.TemporaryDirectory() as folder:
            write_dic(lexicon, Path(folder) / "open.dic")
            parse, _ = liwc.load_token_parser(str(Path(folder) / "open.dic"))
        pattern = re.compile(r"[\w']+")

        def count_with_liwc() -> list[Tally[str]]:
            return [Tally(c for t in pattern.findall(text.lower()) for c in parse(t)) for text in some]

        theirs, _ = best_of(count_with_liwc, 5, warm_up=False)
        report(
            "a million utterances, one count each",
            peer=theirs * len(texts) / PEER_N,
            ours=ours,
            target=20,
            note="liwc",
        )
    print(f"(ours on the {PEER_N:,} that the peers were measured on: {ours_some * 1e3:.0f} ms)")
    rng = np.random.default_rng(2)
    samples = rng.integers(0, len(texts), (2000, 500))
    ours, _ = best_of(lambda: sum_rows(counts, samples), 5)
    report("2,000 random samples of 500, summed", ours=ours, limit=0.2)
    if report.missed:
        sys.exit(f"missed: {', '.join(report.missed)}")


if __name__ == "__main__":
    main()
