"""docs/results/probes.md and its results file from what `palaver reproduce probes --out FOLDER` wrote.

    palaver reproduce probes --data DATA --out FOLDER
    palaver probe p-means p-means=1,3 p-means=-inf,1,inf p-means=-inf,1,3,inf --data DATA --out POWERS
    python experiments/probes/tables.py FOLDER/results.json POWERS/results.json

Keeps both results in docs/results/probes without the sentences, which may not be copied, and writes anew what
stands between the marks of the page (`<!-- tables: begin -->`). Without arguments the page alone is written,
from the results that are kept.
"""

from __future__ import annotations

import json
import os
import platform
import re
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

from palaver.probes.recipe import SETS, VARIANTS
from palaver.reproduce.probes import CASES, ENCODERS, PAPER

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/results/probes.md"
RESULTS = ROOT / "docs/results/probes/results.json"
POWERS = ROOT / "docs/results/probes/p-means.json"
SPEED = ROOT / "docs/results/probes/speed.json"

CORPORA = {
    "sick": "SICK",
    "sick-captions": "captions SICK was made from",
    "msrp": "MSR Paraphrase",
    "msrp-clauses": "what is reported in MSR Paraphrase",
    "treebank": "Treebank sample",
    "treebank-clauses": "what is reported in the Treebank sample",
    "sts": "captions of the STS benchmark",
}
FAR = 15.0
"""Points of accuracy from which on a difference to the paper is named."""
N_PAIRS = 10
"""Pairs of verbs that have a line of their own."""

Result = dict[str, Any]


class Scores:
    """A results file, asked for what the tables show."""

    def __init__(self, result: Result) -> None:
        self.result = result
        self.names: list[str] = [row["name"] for row in result["encoders"]]
        self._by_place = {(s["encoder"], s["set"]): s for s in result["scores"]}

    def of(self, encoder: str, name: str) -> Result:
        return self._by_place[encoder, name]

    def accuracy(self, encoder: str, name: str) -> float:
        return percent(self.of(encoder, name)["share"])

    def variant(self, encoder: str, name: str, variant: str) -> Result | None:
        return next((v for v in self.of(encoder, name)["variants"] if v["name"] == variant), None)

    def parts(self, encoder: str, name: str, by: str) -> dict[str, Result]:
        return {p["name"]: p for p in self.of(encoder, name)["parts"] if p["by"] == by}


def percent(share: Result) -> float:
    return 100 * float(share["right"]) / float(share["n"])


def interval(low: float, high: float) -> str:
    return f"[{100 * low:.1f}, {100 * high:.1f}]"


def table(head: list[str], rows: list[list[str]], n_left: int = 1) -> list[str]:
    """A table whose first columns stand at the left."""
    ruler = ["---"] * n_left + ["--:"] * (len(head) - n_left)
    return [f"| {' | '.join(row)} |" for row in (head, ruler, *rows)]


# What stands between the marks ----------------------------------------------------------------------------


def sources(scores: Scores, powers: Scores) -> list[str]:
    """How many triplets of each set come from where."""
    by_set = scores.result["corpora"]
    used = [c for c in CORPORA if any(c in counts for counts in by_set.values())]
    unnamed = {c for counts in by_set.values() for c in counts} - set(used)
    if unnamed:
        raise SystemExit(f"say in CORPORA what these are: {', '.join(sorted(unnamed))}")
    rows = [
        [SETS[name].title, *(str(counts.get(c, "")) for c in used), str(scores.result["n_triplets"][name])]
        for name, counts in by_set.items()
    ]
    return table(["set", *(CORPORA[c] for c in used), "triplets"], rows)


def leaderboard(scores: Scores, powers: Scores) -> list[str]:
    """Accuracy of every encoder on every set, and what a letter's case can make."""
    rows = []
    for row in scores.result["encoders"]:
        name = row["name"]
        cells = [f"{scores.accuracy(name, s):.1f}" for s in SETS]
        controls = [scores.variant(name, s, "case") for s in SETS]
        worst = max(percent(control["share"]) for control in controls if control is not None)
        rows.append([name, *cells, f"**{100 * row['mean_accuracy']:.1f}**", f"{worst:.1f}"])
    head = ["encoder", *(SETS[s].title for s in SETS), "mean", "other case, at most"]
    return table(head, rows)


AVERAGES = ("glove", "glove-100d", "p-means", "wordllama")
TODAY = ("bge-small", "minilm", "answerai-colbert")


def finding(scores: Scores, powers: Scores) -> list[str]:
    """What the figures say, and what goes against it."""
    negation, variants, _, arguments, order = SETS
    averages = [name for name in AVERAGES if name in scores.names]
    today = [name for name in TODAY if name in scores.names]

    def highest(names: list[str], *sets: str) -> str:
        return f"{max(scores.accuracy(name, one) for name in names for one in sets):.1f} %"

    def each(names: list[str], one: str) -> str:
        return ", ".join(f"{name} {scores.accuracy(name, one):.1f}" for name in names)

    best = max(scores.names, key=lambda name: scores.accuracy(name, arguments))
    contracted = {
        "SkipThought": scores.variant("skipthought", negation, "contracted"),
        "GloVe": scores.variant("glove", negation, "contracted"),
        "InferSent": scores.variant("infersent", negation, "contracted"),
        "InferSent (Negation Variants)": scores.variant("infersent", variants, "contracted"),
    }
    agentless = scores.variant(best, arguments, "agentless")
    networks = {name: scores.accuracy(name, negation) for name in ("skipthought", "sent2vec", "infersent")}
    paper = {name: PAPER[negation][name][3] for name in networks}
    told = [
        f"{name} {percent(row['share']):.1f} in place of {percent(row['same']):.1f}"
        for name, row in contracted.items()
        if row is not None
    ]
    paragraphs = [
        f"""**Order.** Averages of word vectors are blind to order by construction: in the last two sets
        {", ".join(averages)} reach at most {highest(averages, arguments, order)}. Only SkipThought,
        which must predict what is said next, tells a sentence from the same words in a senseless order
        ({scores.accuracy("skipthought", order):.1f} %); of today's encoders {each(today, order)}.""",
        f"""**Negation.** A *not* is one word among others to an average (at most
        {highest(averages, negation)}). Today's encoders notice it ({each(today, negation)}), but that
        *is not* and *there is no* are near each other they know less surely ({each(today, variants)};
        the InferSent trained here {scores.accuracy("infersent", variants):.1f}).""",
        f"""**Roles.** Who does what to whom hardly any encoder knows. The best, {best}, puts the
        passive before the sentence with its actors exchanged in {scores.accuracy(best, arguments):.1f} %
        of the sentences (all others do so more rarely), and in
        {percent(agentless["share"]) if agentless else 0:.1f} % where the passive does not say who
        did it. An embedding that is good at topics should not be trusted with roles.""",
        f"""**What goes against it.** The paper's reading, that networks trained on context or on inference
        notice negation and averages do not, is not what the networks trained here show: SkipThought has
        {networks["skipthought"]:.0f} % in Negation Detection against the paper's
        {paper["skipthought"]:.0f}, and Sent2Vec, an average of words and of pairs of words,
        {networks["sent2vec"]:.0f} % against {paper["sent2vec"]:.0f}. So much depends on the training that
        neither figure should be quoted for the method. Nor is it an accuracy of negation
        alone: the same sentences negated by *n't* give
        {"; ".join(told)}.""",
    ]
    lines: list[str] = []
    for paragraph in paragraphs:
        lines += [*textwrap.wrap(" ".join(paragraph.split()), 118, break_on_hyphens=False), ""]
    return lines


def against(scores: Scores, powers: Scores) -> list[str]:
    """Where a row of ours is far from the paper's, the farthest first."""
    far = []
    for name in SETS:
        for key, label in ENCODERS.items():
            if key in scores.names:
                ours, paper = scores.accuracy(key, name), PAPER[name][key][3]
                if abs(ours - paper) >= FAR:
                    cells = [label, SETS[name].title, f"{paper:.2f}", f"{ours:.2f}", f"{ours - paper:+.1f}"]
                    far.append((abs(ours - paper), cells))
    rows = [cells for _, cells in sorted(far, key=lambda one: -one[0])]
    lines = table(["encoder", "set", "the paper", "ours", "points"], rows, n_left=2)
    name = "negation-detection"
    sick = {key: scores.parts(key, name, "corpus").get("sick") for key in ("glove", "p-means")}
    told = [
        f"{ENCODERS[key]} {percent(part['share']):.2f} (the paper {PAPER[name][key][3]:.2f}) on "
        f"{part['share']['n']} sentences of SICK"
        for key, part in sick.items()
        if part is not None
    ]
    if told:
        text = (
            "The averages differ from the paper in Negation Detection by what the set is made of. No pair of "
            "verbs has more than a twentieth of it, so SICK alone does not fill it any more, and in the long "
            "sentences of news, where *said* becomes *stated* and *did not* comes in, a *not* moves an "
            f"average further than a synonym does. {'; '.join(told)}."
        )
        lines += ["", *textwrap.wrap(text, 118, break_on_hyphens=False)]
    return lines


def smollm2(scores: Scores, powers: Scores) -> list[str]:
    """What is said of SmolLM2, whose rows may be missing."""
    text = (
        "**SmolLM2** (`smollm2`, `smollm2=15`) is a language model, not a sentence encoder. Its row is the "
        "mean of the last layer over the tokens of the text; a middle layer (15 of 30) is a second row. Both "
        "were fixed before any triplet was scored; no other layer or pooling was tried."
    )
    if "smollm2" not in scores.names:
        text += " Its rows were not reached on these triplets and are missing below."
    lines = textwrap.wrap(text, 116, break_on_hyphens=False)
    return [f"- {lines[0]}", *(f"  {line}" for line in lines[1:])]


def p_means(scores: Scores, powers: Scores) -> list[str]:
    """Accuracy by the powers chosen."""
    sets = ("negation-detection", "negation-variants", "clause-relatedness")
    rows = []
    for name in sorted(powers.names, key=lambda n: (n != "p-means", n.count(","), n)):
        label = "1, 2, 3 (used)" if name == "p-means" else name.partition("=")[2].replace(",", ", ")
        rows.append([label, *(f"{powers.accuracy(name, s):.2f}" for s in sets)])
    rows.append(["*the paper*", *(f"*{PAPER[s]['p-means'][3]:.2f}*" for s in sets)])
    return table(["powers", *(SETS[s].title for s in sets)], rows)


def tables(scores: Scores, powers: Scores) -> list[str]:
    """Tables 2 to 6, each with its control, its variants and its parts."""
    lines: list[str] = []
    for name, n in scores.result["n_triplets"].items():
        kind = SETS[name]
        lines += ["", f"### Table {kind.table}: {kind.title} ({n} triplets, the paper {kind.paper_size})", ""]
        head = ["encoder", "", "S∧S+", "S∧S\\*", "S+∧S\\*", "accuracy", "95 % interval", "other case"]
        rows = []
        for key, label in ENCODERS.items():
            rows.append([label, "paper", *(f"{value:.2f}" for value in PAPER[name][key]), "", ""])
            if key in scores.names:
                rows.append(_ours("", scores, key, name))
        rows += [_ours(own, scores, own, name) for own in scores.names if own not in ENCODERS]
        lines += table(head, rows, n_left=2)
        lines += _variants(scores, name)
        if name == "negation-detection":
            lines += _pairs(scores, name)
        if name == "clause-relatedness":
            lines += _cases(scores, name)
        if name == "argument-sensitivity":
            counts = [f"{n} {percent(scores.of(n, name)['other_rule']):.2f}" for n in scores.names]
            lines += ["", f"By the wording of section 2.2 (S∧S+ above S+∧S\\*): {', '.join(counts)}."]
        lines += _corpora(scores, name)
    return lines[1:]


def _ours(label: str, scores: Scores, encoder: str, name: str) -> list[str]:
    score = scores.of(encoder, name)
    means = [f"{100 * score[k]['mean']:.2f}" for k in ("plus", "star", "between")]
    share = score["share"]
    control = scores.variant(encoder, name, "case")
    return [
        label,
        "ours",
        *means,
        f"**{percent(share):.2f}**",
        interval(share["low"], share["high"]),
        f"{percent(control['share']):.2f}" if control is not None else "",
    ]


def _variants(scores: Scores, name: str) -> list[str]:
    """Triplets made in another way, beside the triplets of the same sentences."""
    used = [v["name"] for v in scores.of(scores.names[0], name)["variants"] if v["name"] != "case"]
    if not used:
        return []
    counts = {v: scores.variant(scores.names[0], name, v) for v in used}
    told = [
        f"*{v}* ({row['share']['n']}): {VARIANTS[v].removeprefix(f'{SETS[name].title}: ')}"
        for v, row in counts.items()
        if row is not None
    ]
    lines = ["", f"Made in another way from the same sentences. {'; '.join(told)}.", ""]
    rows = []
    for encoder in scores.names:
        cells = [encoder]
        for v in used:
            row = scores.variant(encoder, name, v)
            assert row is not None
            cells += [f"{percent(row['share']):.2f}", f"{percent(row['same']):.2f}"]
        rows.append(cells)
    head = ["encoder"]
    for v in used:
        head += [v, "as above"]
    return lines + table(head, rows)


def _pairs(scores: Scores, name: str) -> list[str]:
    """Accuracy by pair of verbs, with pairs as the unit of the intervals."""
    first = scores.parts(scores.names[0], name, "pair")
    if not first:
        return []
    n_pairs = scores.of(scores.names[0], name)["pairs"]["n_pairs"]
    lines = [
        "",
        f"Triplets with one pair of verbs are not independent. With the {n_pairs} pairs as the unit:",
        "",
    ]
    relations = list(scores.parts(scores.names[0], name, "relation"))
    counts = {r: part["share"]["n"] for r, part in scores.parts(scores.names[0], name, "relation").items()}
    rows = []
    for encoder in scores.names:
        score, pairs = scores.of(encoder, name), scores.of(encoder, name)["pairs"]
        by_relation = scores.parts(encoder, name, "relation")
        rows.append(
            [
                encoder,
                f"{percent(score['share']):.2f}",
                interval(pairs["low"], pairs["high"]),
                f"{100 * pairs['mean']:.2f}",
                interval(pairs["mean_low"], pairs["mean_high"]),
                *(f"{percent(by_relation[r]['share']):.2f}" for r in relations),
            ]
        )
    head = ["encoder", "accuracy", "95 % interval, pairs drawn", "mean of the pairs", "95 % interval"]
    lines += table([*head, *(f"{r} ({counts[r]})" for r in relations)], rows)
    largest = sorted(first, key=lambda pair: (-first[pair]["share"]["n"], pair))[:N_PAIRS]
    n_largest = sum(first[pair]["share"]["n"] for pair in largest)
    n_all = sum(part["share"]["n"] for part in first.values())
    lines += ["", f"The {len(largest)} most frequent pairs, {n_largest} of the {n_all} triplets:", ""]
    rows = []
    for pair in largest:
        cells = [f"{percent(scores.parts(e, name, 'pair')[pair]['share']):.0f}" for e in scores.names]
        rows.append([pair, str(first[pair]["share"]["n"]), *cells])
    return lines + table(["pair", "triplets", *scores.names], rows)


def _cases(scores: Scores, name: str) -> list[str]:
    rows = []
    for encoder in scores.names:
        parts, paper = scores.parts(encoder, name, "case"), CASES.get(encoder, {})
        cells = [encoder]
        for case in "ab":
            cells.append(f"{percent(parts[case]['share']):.2f}" if case in parts else "")
            cells.append(f"{paper[case]:.2f}" if case in paper else "")
        rows.append(cells)
    return ["", *table(["encoder", "case a", "paper", "case b", "paper"], rows)]


def _corpora(scores: Scores, name: str) -> list[str]:
    parts = scores.parts(scores.names[0], name, "corpus")
    if not parts:
        return []
    head = ["by corpus", *(f"{corpus} ({part['share']['n']})" for corpus, part in parts.items())]
    rows = [
        [encoder, *(f"{percent(p['share']):.2f}" for p in scores.parts(encoder, name, "corpus").values())]
        for encoder in scores.names
    ]
    return ["", *table(head, rows)]


def provenance(scores: Scores, powers: Scores) -> list[str]:
    """Where the rows come from, and the run."""
    lines = [
        f"- **{row['name']}**: {row['provenance']}; {row['size']} numbers."
        for row in scores.result["encoders"]
    ]
    run = scores.result["run"]
    data = ", ".join(f"{name} {digest[:8]}" for name, digest in run["data"].items())
    count = f"{scores.result['n_sentences']:,} different sentences"
    return [
        *lines,
        "",
        f"Seed {run['seed']}, {count}, {data}, run {run['signature']}, {scores.result['machine']}.",
    ]


def speed(scores: Scores, powers: Scores) -> list[str]:
    """What is spent outside the encoder."""
    if not SPEED.is_file():
        return ["Not measured since the control and the variants came in; what stood here before is gone."]
    figures = json.loads(SPEED.read_text(encoding="utf-8"))
    outside, inside = figures["outside_seconds"], figures["encoder_seconds"]
    return [
        f"{figures['n_triplets']:,} triplets, {figures['n_variants']:,} variants of them and the control: "
        f"{inside:.0f} s in {figures['encoder']}, {outside:.2f} s outside it, which is "
        f"{100 * outside / (outside + inside):.1f} % (limit {100 * figures['limit']:.0f} %); again, with all "
        f"vectors kept, {figures['again_seconds']:.2f} s ({figures['machine']})."
    ]


BLOCKS: dict[str, Callable[[Scores, Scores], list[str]]] = {
    "sources": sources,
    "leaderboard": leaderboard,
    "finding": finding,
    "against": against,
    "p-means": p_means,
    "smollm2": smollm2,
    "tables": tables,
    "provenance": provenance,
    "speed": speed,
}


# Files ----------------------------------------------------------------------------------------------------


def keep(source: Path, target: Path) -> None:
    """The results without sentences, numbers to six digits, a score a line."""
    result = json.loads(source.read_text(encoding="utf-8"))
    for score in result["scores"]:
        score["failures"] = [{"id": f["id"], "cosines": f["cosines"]} for f in score["failures"]]
    result = _rounded(result) | {"made_by": "experiments/probes/tables.py", "machine": machine()}
    fields = []
    for name, value in result.items():
        if isinstance(value, list) and value:
            lines = ",\n".join(f"  {json.dumps(row, ensure_ascii=False)}" for row in value)
            fields.append(f' "{name}": [\n{lines}\n ]')
        else:
            fields.append(f' "{name}": {json.dumps(value, ensure_ascii=False)}')
    target.write_text("{\n" + ",\n".join(fields) + "\n}\n", encoding="utf-8")


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, list):
        return [_rounded(entry) for entry in value]
    if isinstance(value, dict):
        return {key: _rounded(entry) for key, entry in value.items()}
    return value


def machine() -> str:
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        names = re.findall(r"^model name\s*:\s*(.*)$", cpuinfo.read_text(), flags=re.M)
        model = names[0] if names else model
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}"


def read_scores(path: Path) -> Scores:
    return Scores(json.loads(path.read_text(encoding="utf-8")))


def fill(page: str, scores: Scores, powers: Scores) -> str:
    """The page with everything between its marks made anew."""
    for name, write in BLOCKS.items():
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        head, _, rest = page.partition(begin)
        _, found, tail = rest.partition(end)
        if not found:
            raise SystemExit(f"the page has no {begin} … {end}")
        content = "\n".join(write(scores, powers)).strip("\n")
        page = f"{head}{begin}\n{content}\n{end}{tail}"
    return page


def main() -> None:
    if len(sys.argv) == 3:
        keep(Path(sys.argv[1]), RESULTS)
        keep(Path(sys.argv[2]), POWERS)
    page = fill(PAGE.read_text(encoding="utf-8"), read_scores(RESULTS), read_scores(POWERS))
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
