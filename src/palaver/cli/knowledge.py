"""`palaver knowledge`: which sentence a reply should be grounded in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console

from palaver.cli import options
from palaver.cli.messages import print_json
from palaver.cli.progress import progress
from palaver.corpora.catalogue import read_corpus
from palaver.errors import UsageError, UserError, nearest, require
from palaver.knowledge.agreement import Agreement, Estimate
from palaver.knowledge.agreement import agreement as compare
from palaver.knowledge.candidates import reading_sentences
from palaver.knowledge.selector import (
    HISTORY_SELECTORS,
    SELECTORS,
    OracleSelector,
    Selector,
    make_selector,
)
from palaver.reports import lines


def agreement(
    corpus: Annotated[
        str, typer.Option(help=f"A corpus with reading sets, by name, or dialogues: {options.ANY_SHAPE}.")
    ] = "topical-chat",
    columns: options.Columns = None,
    data: options.Data = None,
    split: options.Split = None,
    selector: Annotated[
        list[str] | None,
        typer.Option(
            metavar="|".join((*HISTORY_SELECTORS, "MODULE:FUNCTION")),
            help="Several with commas, or repeat it. [default: tfidf,bm25]",
        ),
    ] = None,
    encoder: options.Encoder = "minilm",
    device: options.Device = "auto",
    last_turns: Annotated[
        int, typer.Option(min=1, help="How many turns of the history are compared with the candidates.")
    ] = 2,
    replicates: options.Replicates = None,
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """How often does the history alone pick the oracle's sentence?

    The oracle is the candidate most like the true response (TF-IDF cosine). Term weights are fitted on the
    reading sets of all parts of the corpus, whichever part is compared.

    Example: palaver knowledge agreement --corpus topical-chat --split valid_freq --selector tfidf,bm25
    """
    names = _names(selector)
    require("sklearn", "models")
    with progress() as tell:
        tell("reading", 0, 1)
        names_of = options.parse_columns(columns)
        reader = read_corpus(corpus, root=data, split=split, columns=names_of)
        dialogues = list(reader)
        everything = dialogues if split is None else read_corpus(corpus, root=data, columns=names_of)
        sentences = reading_sentences(everything)
        if not sentences:
            raise UserError(f"the dialogues of {corpus} have no reading sets", "such as topical-chat has")
        tell("weighing terms", 0, 1)
        selectors = [_make(name, sentences, last_turns, encoder, device) for name in names]
        done = 0

        def told(more: int) -> None:
            nonlocal done
            done += more
            tell("comparing", done, len(dialogues))

        agreements = compare(
            dialogues,
            selectors,
            OracleSelector(sentences),
            seed=seed,
            n_replicates=replicates or 1000,
            tell=told,
        )
    if as_json:
        print_json(
            {
                "corpus": corpus,
                "split": split,
                "last_turns": last_turns,
                "n_sentences": len(sentences),
                "notes": reader.notes,
                "selectors": [one.as_dict() for one in agreements],
            }
        )
    else:
        _print_table(agreements, len(sentences), reader.notes)


def _names(words: list[str] | None) -> list[str]:
    known = [name for name in SELECTORS if name not in ("none", "oracle")]
    named = [name.strip() for word in words or ["tfidf,bm25"] for name in word.split(",") if name.strip()]
    wrong = [f"{name!r}{nearest(name, known)}" for name in named if name not in known and ":" not in name]
    if wrong or not named:
        raise UsageError(
            f"--selector: there is no {', '.join(wrong)}" if wrong else "--selector names nothing",
            f"those that need the history alone: {', '.join(known)}; or MODULE:FUNCTION",
        )
    return list(dict.fromkeys(named))


def _make(name: str, sentences: list[str], last_turns: int, encoder: str, device: str) -> Selector:
    if name == "trained-encoder":
        return make_selector(name, sentences, device=device)
    if name not in ("tfidf", "bm25", "encoder"):  # the others look at as much of the history as they want
        return make_selector(name, sentences)
    if name != "encoder":
        return make_selector(name, sentences, last_turns=last_turns)
    return make_selector(name, sentences, last_turns=last_turns, encode=encoder, device=device)


def _print_table(agreements: list[Agreement], n_sentences: int, notes: Sequence[str]) -> None:
    first = agreements[0]
    measured = ("first choice", "among first 5", "mean 1/rank", "similarity kept")
    table = lines.table(("selector",), measured, title="Agreement with the oracle")
    for one in agreements:
        measures = (one.top1, one.top5, one.reciprocal_rank, one.cosine_share)
        table.add_row(one.selector, *(_shown(measure) for measure in measures))
    table.add_row("guessing", f"{first.chance_top1:.3f}", "", "", "", style="dim")
    console = Console()
    lines.print_table(console, table)
    facts = [
        f"{first.n_turns:,} turns of {first.n_dialogues:,} dialogues, on average {first.mean_candidates:.0f} "
        f"sentences to choose from; weights from {n_sentences:,} sentences",
        f"in brackets: {first.confidence:.0%} intervals, {first.n_replicates:,} samples of dialogues",
        "similarity kept: TF-IDF cosine of the choice with the response, as a share of the oracle's",
    ]
    facts += [f"left out: {n:,} turns, {reason}" for reason, n in first.skipped.items() if n]
    facts += [f"note: {note}" for note in notes]
    for text in facts:
        lines.line(console, text)


def _shown(estimate: Estimate) -> str:
    return f"{estimate.value:.3f}\n[{estimate.low:.3f}, {estimate.high:.3f}]"
