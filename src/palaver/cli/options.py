"""The options that verbs share: each has one meaning, one default and one help text, here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from palaver.cli import completion
from palaver.cli.fields import Fields
from palaver.engine.engine import SHAPES as ENGINE_SHAPES
from palaver.engine.engine import Engine as MapEngine
from palaver.engine.engine import parse_engine
from palaver.errors import MissingExtra, UsageError, UserError, nearest, require
from palaver.files import check_writable
from palaver.readers.rating_files import rating_format
from palaver.readers.rating_options import SHAPES, RatingOptions, parse_labels

_OUT: Any = typer.Option("--out", help="File or folder to write; one that exists needs --force.")
Out = Annotated[Path, _OUT]
OptionalOut = Annotated[Path | None, _OUT]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there, or begin anew.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same result.")]
Device = Annotated[str, typer.Option("--device", help="auto (a GPU if there is one), cpu, cuda or cuda:1.")]
Data = Annotated[
    Path | None,
    typer.Option("--data", help="Folder of corpora. [default: PALAVER_DATA, then ~/.cache/palaver/corpora]"),
]


def _engine(text: str) -> MapEngine:
    try:
        return parse_engine(text)
    except MissingExtra:
        raise
    except UserError as error:
        raise UsageError(f"--engine: {error.message}", error.hint) from None


Engine = Annotated[
    MapEngine | None,
    typer.Option(
        "--engine",
        parser=_engine,
        metavar=ENGINE_SHAPES,
        help="Where rows are worked on; results are the same. [default: as suits the work]",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
ListNames = Annotated[bool, typer.Option("--list", help="List the names that --by takes.")]
ANY_SHAPE = "JSON, CSV or Parquet in any usual shape, packed or not"
"""Which files of dialogues or responses are taken: the same words in every help."""
Columns = Annotated[
    list[str] | None,
    typer.Option("--column", metavar="FIELD=NAME", help="Which column is which (rater=worker); repeat it."),
]
Points = Annotated[
    float | None,
    typer.Option(help="Instead: the difference of means to find, in points of the scale."),
]
Target = Annotated[float, typer.Option(min=0.01, max=0.999, help="Wanted power.")]
Confidence = Annotated[
    float, typer.Option("--confidence", min=0.51, max=0.9999, help="Of intervals and rank groups.")
]
Replicates = Annotated[
    int | None,
    typer.Option(
        "--replicates",
        min=1,
        max=1_000_000,
        help="Bootstrap replicates. [default: 1,000; 10,000 in probes, reproductions, compare-agreement]",
    ),
]

Split = Annotated[
    str | None, typer.Option("--split", help="Only this split: train, valid, test, or the corpus's own.")
]
MergeTurns = Annotated[
    bool, typer.Option("--merge-turns", help="Join consecutive turns of one speaker (and say how many).")
]
_CONTEXTS: Any = typer.Option(
    "--contexts",
    help=f"Dialogues: {ANY_SHAPE}; a corpus by name; a .txt with one utterance a line; or responses.",
    autocompletion=completion.corpora,
)
Contexts = Annotated[str, _CONTEXTS]
OptionalContexts = Annotated[str | None, _CONTEXTS]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="Only the first N contexts.")]
DropCommon = Annotated[
    int,
    typer.Option(
        "--drop-common", min=0, help="Drop the N most frequent responses common to all (the paper: 100)."
    ),
]
SystemsFile = Annotated[
    Path | None,
    typer.Option("--systems", help="Where systems are named. [default: systems.toml here, if there is one]"),
]
KnowledgeText = Annotated[
    Path | None, typer.Option("--knowledge", help="A text file; the sentence that fits best is used.")
]
Selector = Annotated[
    str | None,
    typer.Option(
        "--selector",
        metavar="oracle|tfidf|bm25|encoder|trained|trained-encoder|MODULE:FUNCTION",
        help="Choose each reply's sentence from the reading set of its speaker.",
        autocompletion=completion.selectors,
    ),
]

Comparator = Annotated[
    str,
    typer.Option(
        "--comparator", help="default, fast (no language model), or a folder of `palaver compare train`."
    ),
]
Encoder = Annotated[
    str,
    typer.Option(
        "--encoder",
        help="minilm, or the folder or name of another sentence encoder.",
        autocompletion=completion.encoders,
    ),
]
MinTurns = Annotated[
    int, typer.Option("--min-turns", min=2, help="Shorter dialogues are left out and counted.")
]
RatingScale = Annotated[
    tuple[float, float] | None,
    typer.Option("--scale", metavar="LOW HIGH", help="Of the ratings. [default: read off each file]"),
]
DevPairs = Annotated[
    Path | None,
    typer.Option(
        "--dev-pairs",
        help='Compared pairs, one a row: {a, b, better: "a" or "b"}; or the ratings of a pairwise study.',
    ),
]
DevDialogues = Annotated[
    list[Path] | None, typer.Option("--dev-dialogues", help="The dialogues that the pairs name; repeat it.")
]

Recogniser = Annotated[
    str,
    typer.Option(
        "--recogniser",
        help="default, self-report, a file that `palaver personality fit` wrote, or MODULE:FUNCTION.",
        autocompletion=completion.recognisers,
    ),
]
Lexicon = Annotated[
    Path | None,
    typer.Option(
        "--lexicon",
        help="A LIWC dictionary (.dic) you own: the recogniser of Mairesse et al. (2007). Or a .toml.",
    ),
]
Norms = Annotated[
    list[Path] | None,
    typer.Option(
        "--norms", help="Norms of words: mrc2.dct, concreteness, age of acquisition, valence; repeat it."
    ),
]
OneSystem = Annotated[
    str | None,
    typer.Option("--system", help="Of responses of several systems: only those of this one."),
]
Characters = Annotated[
    list[str] | None,
    typer.Option("--character", help="Only these; repeat it. [default: by --min-utterances]"),
]
MinUtterances = Annotated[
    int, typer.Option("--min-utterances", min=1, help="Of transcripts: all who have at least as many.")
]
Rename = Annotated[
    list[str] | None,
    typer.Option("--rename", metavar="OLD=NEW", help="For a name that is spelled in two ways; repeat it."),
]
SampleSize = Annotated[
    int | None, typer.Option("--size", min=1, help="Utterances in a sample. [default: 500]")
]
Quick = Annotated[
    bool, typer.Option("--quick", help="A first look: 100 samples, 3 repetitions, 20 resampled pools.")
]
TripletFile = Annotated[
    Path | None,
    typer.Option("--triplets", help="Triplets (palaver probe triplets). [default: made from the corpora]"),
]
VectorCache = Annotated[
    Path | None,
    typer.Option("--cache", help="Where vectors are kept. [default: ~/.cache/palaver/vectors]"),
]

Database = Annotated[
    str | None,
    typer.Option("--database", help="study.db, or a URL. [default: study.db beside study.toml]"),
]
PublicUrl = Annotated[
    str | None, typer.Option("--public-url", help="The address people use, if a proxy stands in front.")
]
Host = Annotated[str, typer.Option("--host", help="Where to listen; 0.0.0.0 for all networks.")]
Port = Annotated[int, typer.Option("--port", min=0, max=65535, help="0 takes any free one.")]
Processes = Annotated[int, typer.Option("--processes", min=1, max=64, help="Server processes.")]
ProlificKeys = Annotated[
    Path | None,
    typer.Option(
        "--prolific-keys",
        help="Prolific's public keys (JSON): only people whose link Prolific signed come in.",
    ),
]
AdminToken = Annotated[
    str | None,
    typer.Option(
        "--admin-token",
        envvar="PALAVER_ADMIN_TOKEN",
        help="Token of the admin link. [default: a new one]",
    ),
]
NewKeys = Annotated[
    bool, typer.Option("--new-keys", help="Sign with new keys; everybody who was in must come in again.")
]
Qr = Annotated[bool, typer.Option("--qr/--no-qr", help="Print the link for people as a QR code.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="FIELD=VALUE", help="Replace a field of the experiment; repeat it."),
]


Kinds = Annotated[
    list[str] | None,
    typer.Option("--kind", help="Who rated a file, FILE=KIND: human, user, metric, model or llm; repeat it."),
]
Criteria = Annotated[
    str | None,
    typer.Option("--criteria", metavar="A,B", help="The criteria to read. [default: all that look like one]"),
]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        "--labels",
        metavar="WORDS",
        help='Words for numbers, lowest first: "Poor,Fair,Good", "Poor=1,Good=4", "q:Poor,Good"; repeat it.',
    ),
]
Missing = Annotated[
    list[str] | None,
    typer.Option("--missing", metavar="WORD", help="Means no answer, as NA, n/a and - do; repeat it."),
]
SheetName = Annotated[str | None, typer.Option("--sheet", help="Of a spreadsheet. [default: the first one]")]


def choices(names: Iterable[str]) -> dict[str, Any]:
    """What `typer.Option` needs to know of an option that takes one of these names."""
    known = list(names)

    def check(param: typer.CallbackParam, value: str | None) -> str | None:
        if value is None or value in known:
            return value
        raise UsageError(
            f"{param.opts[0]}: there is no {value!r}{nearest(value, known)}", f"there are {', '.join(known)}"
        )

    return {"metavar": "|".join(known), "callback": check, "autocompletion": lambda: known}


Shape = Annotated[
    str,
    typer.Option(
        "--shape",
        help="How ratings are laid out; forms: a row a rater, columns 'Q01 [bot]'; pairs: who won.",
        **choices(SHAPES),
    ),
]


def parse_pairs(option: str, words: Sequence[str] | None, shape: str, example: str) -> dict[str, str]:
    """`FIELD=NAME` as often as it was given, as a mapping."""
    pairs = {}
    for word in words or ():
        name, equals, value = word.partition("=")
        if not (name and equals and value):
            raise UsageError(f"{option}: expected {shape}, such as {example}, found {word!r}")
        pairs[name] = value
    return pairs


def parse_columns(words: Sequence[str] | None) -> dict[str, str]:
    """The columns of `--column`: field -> name in the file."""
    return parse_pairs("--column", words, "FIELD=NAME", "rater=worker_id")


def parse_rename(words: Sequence[str] | None) -> dict[str, str]:
    """The names of `--rename`: old -> new."""
    return parse_pairs("--rename", words, "OLD=NEW", "Rachael=Rachel")


def parse_criteria(text: str | None) -> list[str] | None:
    """The names of `--criteria A,B`."""
    if text is None:
        return None
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise UsageError(f"--criteria: expected names with commas between them, found {text!r}")
    return names


def parse_kinds(words: Sequence[str] | None) -> dict[str, Any]:
    """The kinds of `--kind`: file -> who rated it."""
    return parse_pairs("--kind", words, "FILE=KIND", "scores.csv=metric")


def _rating_options(
    column: Sequence[str] | None,
    shape: str,
    criteria: str | None,
    labels: Sequence[str] | None,
    missing: Sequence[str] | None,
    sheet: str | None,
) -> RatingOptions:
    """What the user says about a rating file."""
    return RatingOptions(
        columns=parse_columns(column),
        shape=shape,  # type: ignore[arg-type]  # one of SHAPES
        labels=parse_labels(labels),
        missing=tuple(missing or ()),
        criteria=parse_criteria(criteria),
        sheet=sheet,
    )


def rating_words(given: RatingOptions) -> list[str]:
    """The same about a rating file as words of another command; its criteria are not among them."""
    words = [word for pair in given.columns.items() for word in ("--column", "=".join(pair))]
    if given.shape != "auto":
        words += ["--shape", given.shape]
    orders = {
        name: ",".join(f"{w}={n:g}" for w, n in of.items()) for name, of in given.labels.numbers.items()
    }
    orders |= dict.fromkeys(sorted(given.labels.nominal), "nominal")
    for name, order in orders.items():
        words += ["--labels", f"{name}:{order}" if name else order]
    words += [word for text in given.missing for word in ("--missing", text)]
    return [*words, "--sheet", given.sheet] if given.sheet else words


RatingFile = Annotated[
    RatingOptions,
    Fields.among(
        _rating_options,
        column=(Columns, None),
        shape=(Shape, "auto"),
        criteria=(Criteria, None),
        labels=(Labels, None),
        missing=(Missing, None),
        sheet=(SheetName, None),
    ),
]
"""How a rating file is to be understood, where the user says so."""


def refuse_existing(out: Path | None, force: bool) -> None:
    """`--out` that exists needs --force; an empty folder is nothing to lose."""
    if out is None or force or not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    raise UserError(f"{out} is there already", "choose another name, or add --force to replace it")


def refuse_source(out: Path | None, *sources: str | Path | None) -> None:
    """`--out` must not be a file that is read, --force or not."""
    if out is None or not out.is_file():
        return
    for source in sources:
        if source is not None and Path(source).is_file() and out.samefile(source):
            raise UsageError(f"{out} is the file that is read", "choose another name")


def claim_ratings(out: Path | None, force: bool) -> None:
    """Find out before the work that `--out` is free, and that ratings can be written in its format."""
    refuse_existing(out, force)
    if out is not None:
        rating_format(out)


def claim_folder(out: Path | None, force: bool) -> None:
    """Find out before the work that the folder `--out` is free and can be written. Results make it."""
    refuse_existing(out, force)
    if out is not None:
        is_new = not out.exists()
        check_writable(out)
        if is_new:
            out.rmdir()


def torch_device(name: str) -> str:
    """The device that `--device` names, once it is known that torch is there."""
    require("torch", "models")
    from palaver.models.devices import choose_device

    return str(choose_device(name))


def corpora_folder(data: Path | None, name: str) -> Path:
    """The folder `name` of the corpora, or `data` itself where it is that folder."""
    from palaver.corpora.catalogue import usual_roots

    roots = (data,) if data is not None else usual_roots()
    return next((root / name for root in roots if (root / name).is_dir()), roots[0])
