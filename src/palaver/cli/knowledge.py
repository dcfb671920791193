"""`palaver knowledge`: which sentence a reply should be grounded in."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from palaver.cli.study import SeedOption

if TYPE_CHECKING:
    from palaver.knowledge import Agreement, Estimate, Selector

app = typer.Typer(
    help="Choose the knowledge that a reply should use.", no_args_is_help=True, rich_markup_mode=None
)


class HistorySelector(StrEnum):
    """The selectors of `palaver.knowledge.SELECTORS` that need no response (a test keeps the two equal)."""

    tfidf = "tfidf"
    bm25 = "bm25"
    encoder = "encoder"


@app.callback()
def _noun() -> None:
    """Choose the knowledge that a reply should use."""


@app.command()
def agreement(
    corpus: Annotated[
        str, typer.Option(help="A corpus with reading sets, by name, or a file of dialogues.")
    ] = "topical-chat",
    data: Annotated[
        Path | None, typer.Option(help="Where the corpus lies. [default: the usual folders]")
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="Which part to compare on, such as valid_freq; all, if not given.")
    ] = None,
    selector: Annotated[
        list[str] | None,
        typer.Option(help="tfidf, bm25, encoder; several with commas, or repeat it. [default: tfidf,bm25]"),
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(help="Any encoder of palaver probe, by name. [default: minilm]"),
    ] = None,
    device: Annotated[str, typer.Option(help="Of the encoder: auto, cpu, cuda or cuda:1.")] = "auto",
    last_turns: Annotated[
        int, typer.Option(min=1, help="How many turns of the history are compared with the candidates.")
    ] = 2,
    replicates: Annotated[int, typer.Option(min=1, max=1_000_000, help="Bootstrap replicates.")] = 1000,
    seed: SeedOption = 0,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """How often does a selector that sees only the history pick the oracle's sentence?

    The oracle is the candidate most like the true response (TF-IDF cosine). Term weights are fitted on the
    reading sets of all parts of the corpus, whichever part is compared.

    Example: palaver knowledge agreement --corpus topical-chat --split valid_freq --selector tfidf,bm25
    """
    from palaver.cli.progress import progress
    from palaver.corpora.catalogue import read_corpus
    from palaver.errors import UserError, require
    from palaver.knowledge import agreement as compare
    from palaver.knowledge import reading_sentences
    from palaver.knowledge.selector import OracleSelector

    names = _names(selector)
    require("sklearn", "models")
    with progress() as tell:
        tell("reading", 0, 1)
        reader = read_corpus(corpus, root=data, split=split)
        dialogues = list(reader)
        everything = dialogues if split is None else read_corpus(corpus, root=data)
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

        found = compare(
            dialogues, selectors, OracleSelector(sentences), seed=seed, n_replicates=replicates, tell=told
        )
    if json:
        _print_json(
            found,
            corpus=corpus,
            split=split,
            last_turns=last_turns,
            n_sentences=len(sentences),
            notes=reader.notes,
        )
    else:
        _print_table(found, len(sentences), reader.notes)


def _names(words: list[str] | None) -> list[str]:
    from palaver.errors import UserError, nearest

    known = [kind.value for kind in HistorySelector]
    named = [name.strip() for word in words or ["tfidf,bm25"] for name in word.split(",") if name.strip()]
    wrong = [f"{name!r}{nearest(name, known)}" for name in named if name not in known]
    if wrong or not named:
        raise UserError(
            f"--selector: there is no {', '.join(wrong)}" if wrong else "--selector names nothing",
            f"those that need the history alone: {', '.join(known)}",
        )
    return list(dict.fromkeys(named))


def _make(name: str, sentences: list[str], last_turns: int, encoder: str | None, device: str) -> Selector:
    from palaver.knowledge import make_selector

    if name != HistorySelector.encoder:
        return make_selector(name, sentences, last_turns=last_turns)
    return make_selector(name, sentences, last_turns=last_turns, encode=encoder, device=device)


def _print_json(found: list[Agreement], **about: object) -> None:
    import json

    typer.echo(json.dumps({**about, "selectors": [one.as_dict() for one in found]}, indent=2))


def _print_table(found: list[Agreement], n_sentences: int, notes: Sequence[str]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    first = found[0]
    table = Table(box=box.SIMPLE_HEAD, title="Agreement with the oracle", title_justify="left")
    table.add_column("selector")
    for column in ("first choice", "among first 5", "mean 1/rank", "similarity kept"):
        table.add_column(column, justify="right")
    for one in found:
        measures = (one.top1, one.top5, one.reciprocal_rank, one.cosine_share)
        table.add_row(one.selector, *(_shown(measure) for measure in measures))
    table.add_row("guessing", f"{first.chance_top1:.3f}", "", "", "", style="dim")
    console = Console()
    console.print(table)
    lines = [
        f"{first.n_turns:,} turns of {first.n_dialogues:,} dialogues, on average {first.mean_candidates:.0f} "
        f"sentences to choose from; weights from {n_sentences:,} sentences",
        f"in brackets: {first.confidence:.0%} intervals, {first.n_replicates:,} samples of dialogues",
        "similarity kept: TF-IDF cosine of the choice with the response, as a share of the oracle's",
    ]
    lines += [f"left out: {n:,} turns, {reason}" for reason, n in first.skipped.items() if n]
    lines += [f"note: {note}" for note in notes]
    for line in lines:
        typer.echo(line)


def _shown(estimate: Estimate) -> str:
    return f"{estimate.value:.3f}\n[{estimate.low:.3f}, {estimate.high:.3f}]"
