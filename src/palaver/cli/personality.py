"""`palaver personality`: OCEAN scores of texts and speakers, and recognisers of one's own."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from palaver.cli.study import Force, SeedOption, _refuse_overwrite

if TYPE_CHECKING:
    import numpy as np

app = typer.Typer(
    help="What personality do the words show, and can characters be told apart by it?",
    no_args_is_help=True,
    rich_markup_mode=None,
)

RecogniserOption = Annotated[
    str,
    typer.Option(
        help="default, a file written by `palaver personality fit`, or module:function of your own."
    ),
]
LexiconOption = Annotated[
    Path | None,
    typer.Option(
        help="A LIWC dictionary (.dic) you own: the recogniser of Mairesse et al. (2007). Or a .toml."
    ),
]
NormsOption = Annotated[
    list[Path] | None,
    typer.Option(help="Norms of words: mrc2.dct, concreteness, age of acquisition, valence; repeat it."),
]
_FEW_WORDS = 100
_WIDTH = 37
_STEPS = "▁▂▃▄▅▆▇█"


class Per(StrEnum):
    text = "text"
    line = "line"
    speaker = "speaker"


@app.callback()
def _noun() -> None:
    """What personality do the words show, and can characters be told apart by it?"""


@app.command()
def score(
    source: Annotated[
        str,
        typer.Argument(
            help="A text file, or - for standard input; with --per speaker dialogues or a corpus."
        ),
    ],
    per: Annotated[
        Per, typer.Option(help="One score for the text, for each line, or for each speaker.")
    ] = Per.text,
    recogniser: RecogniserOption = "default",
    lexicon: LexiconOption = None,
    norms: NormsOption = None,
    data: Annotated[
        Path | None, typer.Option(help="Where a named corpus lies. [default: the usual folders]")
    ] = None,
    min_words: Annotated[
        int, typer.Option(min=1, help="Speakers who say fewer words are counted, not shown.")
    ] = _FEW_WORDS,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a picture.")] = False,
) -> None:
    """OCEAN of a text: openness, conscientiousness, extraversion, agreeableness, neuroticism, each from 1 to
    7.

    This is a statistic of words, not a psychological test: docs/reference/recogniser.md says what it can do.

    Example: palaver personality score letter.txt
    """
    from palaver.cli.progress import progress
    from palaver.personality.recogniser import load_recogniser, score_texts

    judge = load_recogniser(recogniser, lexicon=lexicon, norms=norms or ())
    with progress() as tell:
        tell("reading", 0, 1)
        names, texts, notes = _gathered(source, per, data, min_words)
        tell("scoring", 0, 1)
        scores = (
            score_texts(judge, [" \n".join(parts) for parts in texts])
            if judge.count is None
            else _sums(judge, texts)
        )
    notes += getattr(getattr(getattr(judge, "counter", None), "lexicon", None), "notes", ())
    n_words = [_words(parts) for parts in texts]
    if json:
        _print_json(judge.name, per, names, n_words, scores, notes)
    elif per is Per.text:
        _print_picture(scores[0], getattr(judge, "intercepts", None))
        if n_words[0] < _FEW_WORDS:
            notes = (*notes, f"only {_count(n_words[0], 'word')}: short texts are drawn to the average")
    else:
        _print_table(per.value, names, n_words, scores)
    if not json:
        for note in notes:
            typer.secho(note, fg="yellow")
        typer.echo(f"recogniser {judge.name}; a statistic of words, not a psychological test")


def _sums(judge: Any, texts: Sequence[Sequence[str]]) -> np.ndarray:
    """Scores of texts that come as utterances: counted apart, so that the end of one is the end of a
    sentence."""
    import numpy as np

    counts = judge.count([part for parts in texts for part in parts])
    ends = np.cumsum([len(parts) for parts in texts])
    totals = [counts[b:e].sum(axis=0) for b, e in zip([0, *ends[:-1]], ends, strict=True)]
    found: np.ndarray = judge.score(np.asarray(np.concatenate(totals)))
    return found


def _gathered(
    source: str, per: Per, data: Path | None, min_words: int
) -> tuple[list[str], list[list[str]], tuple[str, ...]]:
    """Names, utterances, and what was left out."""
    from palaver.errors import DataError

    if per is Per.speaker:
        return _speakers(source, data, min_words)
    text = _read(source)
    if per is Per.text:
        if not _words([text]):
            raise DataError(f"{_name(source)} has no words", "there is nothing to score")
        return [_name(source)], [[text]], ()
    lines = text.splitlines()
    used = [
        (f"{number}: {line.strip()}", [line]) for number, line in enumerate(lines, start=1) if _words([line])
    ]
    if not used:
        raise DataError(f"{_name(source)} has no line with words", "there is nothing to score")
    left_out = len(lines) - len(used)
    notes = (f"left out {_count(left_out, 'line')} without words",) if left_out else ()
    return [name for name, _ in used], [parts for _, parts in used], notes


def _speakers(
    source: str, data: Path | None, min_words: int
) -> tuple[list[str], list[list[str]], tuple[str, ...]]:
    from palaver.corpora.catalogue import read_corpus
    from palaver.errors import DataError, UserError

    if source == "-":
        raise UserError(
            "--per speaker needs a file of dialogues or the name of a corpus", "save the text in a file"
        )
    said: dict[str, list[str]] = {}
    for dialogue in read_corpus(source, root=data):
        for turn in dialogue.turns:
            said.setdefault(turn.speaker, []).append(turn.text)
    sizes = {name: _words(texts) for name, texts in said.items()}
    shown = sorted((name for name in said if sizes[name] >= min_words), key=lambda n: -sizes[n])
    if not shown:
        most = max(sizes, key=lambda n: sizes[n], default="")
        found = f"{most} says most, {_count(sizes[most], 'word')}" if most else "there are no turns"
        raise DataError(
            f"nobody in {source} says {min_words:,} words ({found})", "ask for fewer with --min-words"
        )
    left_out = len(said) - len(shown)
    who = _count(left_out, "speaker")
    notes = (f"left out {who} with fewer than {min_words:,} words (--min-words)",) if left_out else ()
    return shown, [said[name] for name in shown], notes


def _read(source: str) -> str:
    if source == "-":
        return sys.stdin.buffer.read().decode("utf-8", errors="replace")
    from palaver.files import TextStream

    with TextStream(Path(source)) as stream:
        return stream.read().decode()


def _name(source: str) -> str:
    return "standard input" if source == "-" else source


def _words(parts: Sequence[str]) -> int:
    """Words as the recogniser counts them, near enough: what stands between spaces and has a letter or
    digit."""
    return sum(any(c.isalnum() for c in word) for part in parts for word in part.split())


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _print_picture(scores: np.ndarray, average: np.ndarray | None) -> None:
    """A line for each trait from 1 to 7 with a dot at the score and a bar at the average text."""
    from palaver.corpora.personalities import TRAITS

    for i, trait in enumerate(TRAITS):
        line = ["─"] * _WIDTH
        if average is not None:
            line[_place(average[i])] = "┼"
        line[_place(scores[i])] = "●"
        typer.echo(f"{trait:<18} {scores[i]:.2f}  1 {''.join(line)} 7")
    if average is not None:
        typer.echo("● this text   ┼ the average text of training")


def _place(score: float) -> int:
    return round((float(score) - 1) / 6 * (_WIDTH - 1))


def _print_table(what: str, names: Sequence[str], n_words: Sequence[int], scores: np.ndarray) -> None:
    """A row each; the little bars compare the rows with each other, from the least to the greatest."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from palaver.corpora.personalities import TRAITS

    table = Table()
    table.add_column(what, overflow="ellipsis", no_wrap=True, max_width=40)
    table.add_column("words", justify="right")
    for trait in TRAITS:
        table.add_column(trait[:5], justify="right")
    low, high = scores.min(axis=0), scores.max(axis=0)
    for name, words, row in zip(names, n_words, scores, strict=True):
        cells = []
        for i, value in enumerate(row):
            spread = high[i] - low[i]
            step = int((value - low[i]) / spread * (len(_STEPS) - 1) + 0.5) if spread > 0 else 3
            cells.append(f"{value:.2f} {_STEPS[step]}")
        table.add_row(escape(name), f"{words:,}", *cells)
    Console().print(table)


def _print_json(
    recogniser: str,
    per: Per,
    names: Sequence[str],
    n_words: Sequence[int],
    scores: np.ndarray,
    notes: Sequence[str],
) -> None:
    import json

    from palaver.corpora.personalities import TRAITS

    rows = [
        {"name": name, "words": words, **{t: round(float(v), 4) for t, v in zip(TRAITS, row, strict=True)}}
        for name, words, row in zip(names, n_words, scores, strict=True)
    ]
    content = {"recogniser": recogniser, "per": per.value, "scores": rows, "notes": list(notes)}
    typer.echo(json.dumps(content, ensure_ascii=False, indent=2))


@app.command()
def fit(
    texts: Annotated[
        Path, typer.Argument(help="CSV with text and the five traits (or O, C, E, A, N) from 1 to 7.")
    ],
    out: Annotated[Path, typer.Option(help="The recogniser to write (JSON).")],
    name: Annotated[str, typer.Option(help="What it is called. [default: the file's name]")] = "",
    lexicon: LexiconOption = None,
    norms: NormsOption = None,
    folds: Annotated[int, typer.Option(min=2, max=50, help="Folds of the cross-validation.")] = 10,
    seed: SeedOption = 0,
    force: Force = False,
) -> None:
    """Fit a recogniser to texts with known scores, and say how well it does on texts it has not seen.

    Example: palaver personality fit essays.csv --out mine.json
    """
    from palaver.cli.progress import progress
    from palaver.corpora.personalities import TRAITS
    from palaver.files import sha256_of
    from palaver.personality.counts import Counter
    from palaver.personality.fit import fit as run_fit
    from palaver.personality.fit import read_scored_texts
    from palaver.personality.lexicon import open_lexicon, read_lexicon
    from palaver.personality.norms import read_norms

    _refuse_overwrite(out, force)
    words = read_lexicon(lexicon) if lexicon else open_lexicon()
    values = read_norms(*(norms or ()))
    with progress() as tell:
        tell("reading", 0, 1)
        read, scores = read_scored_texts(texts)
        tell("fitting", 0, 1)
        fitted = run_fit(
            read,
            scores,
            Counter(words, values),
            name=name or out.name.split(".")[0],
            n_folds=folds,
            seed=seed,
            provenance={"data": {texts.name: sha256_of(texts)}},
        )
    fitted.recogniser.save(out)
    typer.echo(f"{_count(fitted.n_texts, 'text')}, {folds} folds; held out:")
    for i, trait in enumerate(TRAITS):
        typer.echo(f"  {trait:<18} r = {fitted.correlations[i]:.3f}   mean error {fitted.mean_errors[i]:.3f}")
    for note in words.notes:
        typer.secho(note, fg="yellow")
    typer.echo(f"wrote {out}; use it with: palaver personality score FILE --recogniser {out}")
