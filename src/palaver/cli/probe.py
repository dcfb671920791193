"""`palaver probe`: what a sentence encoder really notices."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from palaver.cli import options
from palaver.cli.progress import progress
from palaver.errors import UsageError, UserError, require
from palaver.files import check_writable, format_by_name, write_atomically
from palaver.probes.recipe import SETS, Recipe
from palaver.probes.refusals import REASONS
from palaver.probes.triplet_files import write_items, write_triplets
from palaver.readers.texts import read_texts


def transform(
    rule: Annotated[
        str,
        typer.Argument(
            help="not-negation, quantifier-negation, synonym, clause, passive, reorder, inversion, or all."
        ),
    ],
    file: Annotated[
        Path | None,
        typer.Argument(
            help="A .txt with one sentence a line, or dialogues or responses, whose texts are taken: "
            f"{options.ANY_SHAPE}. [default: standard input]"
        ),
    ] = None,
    columns: options.Columns = None,
    out: options.OptionalOut = None,
    force: options.Force = False,
    check: Annotated[
        bool, typer.Option(help="Read every output again and refuse those that do not parse as intended.")
    ] = True,
    max_words: Annotated[int, typer.Option(min=1, help="Longer sentences are refused.")] = 60,
) -> None:
    """Change sentences by rule: a negation, a synonym, the passive.

    Writes {source, rule, output} for each sentence, or {source, rule, reason} where the rule does not apply,
    to standard output or --out; how often each reason was given is told on standard error.

    Example: palaver probe transform passive sentences.txt
    """
    require("spacy", "probes")
    from palaver.probes.transform import rules_named
    from palaver.probes.transform import transform as run

    options.refuse_existing(out, force)
    rules = rules_named(rule)
    reasons: dict[str, Counter[str]] = {name: Counter() for name in rules}
    made: Counter[str] = Counter()
    n_lines = 0
    with nullcontext(sys.stdout) if out is None else write_atomically(out) as target:
        for n, result in enumerate(run(_lines(file, columns), rules, check=check, max_words=max_words)):
            if n % len(rules) == 0:
                n_lines += 1
            if result.output is None:
                reasons[result.rule][str(result.reason)] += 1
            else:
                made[result.rule] += 1
            target.write(json.dumps(result.to_dict(), ensure_ascii=False) + "\n")
    _report(n_lines, made, reasons)


def _lines(file: Path | None, columns: list[str] | None) -> Iterator[str]:
    """Lines without their ends, or the texts of a file of dialogues or responses."""
    if file is not None and str(file) != "-":
        for one in read_texts(file, columns=options.parse_columns(columns)):
            yield one.text
        return
    for line in sys.stdin:
        yield line.rstrip("\r\n")


def _report(n_lines: int, made: Counter[str], reasons: dict[str, Counter[str]]) -> None:
    if not n_lines:
        typer.echo("there were no lines to read", err=True)
    for rule, counts in reasons.items():
        typer.echo(f"{rule}: {made[rule]} of {n_lines} transformed", err=True)
        for reason, count in counts.most_common():
            typer.echo(f"  {count:>6}  {reason}: {REASONS[reason]}", err=True)


def triplets(
    out: options.Out,
    data: options.Data = None,
    text: Annotated[
        list[Path] | None,
        typer.Option(help="Sentences of your own, as `palaver probe transform` takes them; repeat it."),
    ] = None,
    paraphrases: Annotated[
        list[Path] | None,
        typer.Option(
            help="Two sentences a row that mean the same, columns sentence1 and sentence2; repeat it. "
            "Only these and SICK make Fixed Point Reorder."
        ),
    ] = None,
    columns: options.Columns = None,
    seed: options.Seed = 0,
    set_size: Annotated[
        int | None, typer.Option(min=0, help="Triplets in each set, 0 for all. [default: as in the paper]")
    ] = None,
    study_items: Annotated[
        Path | None,
        typer.Option(help="Also as items (.jsonl) of a study that checks them, preset triplet-check."),
    ] = None,
    engine: options.Engine = None,
    force: options.Force = False,
) -> None:
    """Make the five sets of triplets of Zhu et al. (2018).

    They are made from SICK, MSR Paraphrase and the Treebank sample in --data, or from your own sentences, and
    written as .jsonl, .csv or .parquet.

    Example: palaver probe triplets --data data/sentences --out triplets.jsonl
    """
    require("spacy", "probes")
    from palaver.probes.triplets import generate

    if data is None and not text and not paraphrases:
        data = options.corpora_folder(None, "sentences")
        if not data.is_dir():
            raise UsageError(
                "there are no sentences to work on", "give --data FOLDER, --text FILE or --paraphrases FILE"
            )
    if data is not None and not data.is_dir():
        raise UserError(
            f"there is no folder {data}", "expected the folder that holds SICK_full.txt and the others"
        )
    format_by_name(out)
    options.refuse_existing(out, force)
    options.refuse_existing(study_items, force)
    check_writable(out.parent)
    if study_items is not None:
        check_writable(study_items.parent)
    recipe = Recipe(seed=seed)
    if set_size is not None:
        recipe = Recipe(seed=seed, sizes=tuple((name, set_size) for name in SETS))
    with progress() as tell:
        made = generate(
            data,
            recipe,
            texts=text or (),
            paraphrases=paraphrases or (),
            columns=options.parse_columns(columns),
            engine=engine or "processes",
            progress=tell,
        )
    for name, kind in SETS.items():
        wanted = recipe.size(name)
        short = f"  (asked for {wanted})" if made.made[name] < wanted else ""
        if name == "fixed-point-reorder" and data is None and not paraphrases:
            short = "  (it is made of paraphrases: --paraphrases FILE)"
        typer.echo(
            f"{made.made[name]:>6}  {kind.title} of {made.candidates[name]} candidates{short}", err=True
        )
    for what, count in made.left_out.items():
        noun = "pairs" if what.startswith("paraphrases") else "sentences"
        typer.echo(f"  left out {count} {noun}: {what}", err=True)
    if not made.triplets or any(made.made[s] < recipe.size(s) for s in SETS):
        total = sum(made.n_sentences.values())
        for rule, counts in made.reasons.items():
            if not counts:
                continue
            told = ", ".join(f"{reason} {n}" for reason, n in counts.most_common(4))
            typer.echo(
                f"  {rule} did not apply to {sum(counts.values())} of {total} sentences: {told}", err=True
            )
    write_triplets(made.triplets, out)
    if study_items is not None:
        write_items(made.triplets, study_items)
    n_counted = sum(made.made.values())
    written = f"{n_counted} triplets and {len(made.triplets) - n_counted} variants of them in {out}"
    typer.echo(f"{written} (recipe {recipe.signature}, seed {seed})", err=True)
