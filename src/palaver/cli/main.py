"""`palaver`: one command, a noun, a verb. A verb's module is imported when the verb is used.

To add a verb: write a function in the noun's module, with a docstring that has an example, and its line here.
"""

from __future__ import annotations

import io
import sys
from typing import Any

import typer

from palaver import __version__
from palaver.cli.lazy import LazyGroup, Noun
from palaver.cli.messages import show_error
from palaver.errors import UsageError, UserError, nearest

HELP = "Which conversation is better, and how far can you trust that answer?"

COMMANDS: dict[str, Noun | str] = {
    "study": Noun(
        "Plan, simulate, serve and analyse human studies.",
        {
            "new": "palaver.cli.study:new",
            "check": "palaver.cli.study:check",
            "simulate": "palaver.cli.study:simulate",
            "power": "palaver.cli.study:power",
            "analyse": "palaver.cli.study_analyse:analyse",
            "compare-agreement": "palaver.cli.study_compare:compare_agreement",
            "describe": "palaver.cli.study_analyse:describe",
            "convert": "palaver.cli.study_analyse:convert",
            "serve": "palaver.cli.study_serve:serve",
            "amend": "palaver.cli.study_amend:amend",
            "status": "palaver.cli.study_serve:status",
            "export": "palaver.cli.study_serve:export",
            "backup": "palaver.cli.study_serve:backup",
            "restore": "palaver.cli.study_serve:restore",
            "reset": "palaver.cli.study_reset:reset",
            "admin": "palaver.cli.study_admin:admin",
        },
    ),
    "trust": Noun(
        "How far to trust an answer, and how many people it still takes.",
        {
            "interval": "palaver.cli.trust:interval",
            "ppi": "palaver.cli.trust:ppi",
            "alt-test": "palaver.cli.trust:alt_test",
            "sequence": "palaver.cli.trust:sequence",
            "plan": "palaver.cli.trust_plan:plan",
            "calibrate": "palaver.cli.trust_plan:calibrate",
        },
    ),
    "demo": "palaver.cli.demo:demo",
    "init": "palaver.cli.init:init",
    "evaluate": "palaver.cli.evaluate:evaluate",
    "chat": "palaver.cli.chat:chat",
    "generate": "palaver.cli.generate:generate",
    "judge": "palaver.cli.judge:judge",
    "meta": "palaver.cli.meta:meta",
    "metrics": "palaver.cli.metrics:metrics",
    "compare": Noun(
        "Learn from noisy ratings which dialogue is better.",
        {
            "train": "palaver.cli.compare:train",
            "presets": "palaver.cli.compare:presets",
            "score": "palaver.cli.compare_tool:score",
            "pair": "palaver.cli.compare_tool:pair",
            "rank": "palaver.cli.compare_tool:rank",
            "clean": "palaver.cli.compare_tool:clean",
            "audit": "palaver.cli.compare_measures:audit",
            "evaluate": "palaver.cli.compare_measures:evaluate",
            "ratings": "palaver.cli.compare_measures:ratings",
        },
    ),
    "collect": Noun(
        "Collect conversations: let people talk, check what they say, make a dataset.",
        {
            "new": "palaver.cli.collect:new",
            "serve": "palaver.cli.collect:serve",
            "amend": "palaver.cli.collect_amend:amend",
            "decide": "palaver.cli.collect_amend:decide",
            "status": "palaver.cli.collect:status",
            "conversations": "palaver.cli.collect:conversations",
            "ratings": "palaver.cli.collect:ratings",
            "check": "palaver.cli.collect_check:check",
            "stats": "palaver.cli.collect_data:stats",
            "split": "palaver.cli.collect_data:split",
            "export": "palaver.cli.collect_data:export",
        },
    ),
    "corpus": Noun(
        "List, get, show and convert corpora of dialogues.",
        {
            "list": "palaver.cli.corpus:list_corpora",
            "show": "palaver.cli.corpus:show",
            "get": "palaver.cli.corpus:get",
            "convert": "palaver.cli.corpus:convert",
        },
    ),
    "get": "palaver.cli.get:get",
    "doctor": "palaver.cli.doctor:doctor",
    "knowledge": Noun(
        "Build knowledge bases and reading sets; choose the knowledge of a reply.",
        {
            "build": "palaver.cli.knowledge_base:build",
            "reading-sets": "palaver.cli.knowledge_base:reading_sets",
            "agreement": "palaver.cli.knowledge:agreement",
        },
    ),
    "personality": Noun(
        "What personality words show, and whether it tells characters apart.",
        {
            "score": "palaver.cli.personality:score",
            "fit": "palaver.cli.personality:fit",
            "table": "palaver.cli.personality_table:table",
            "distinguish": "palaver.cli.personality_distinguish:distinguish",
            "fidelity": "palaver.cli.personality_fidelity:fidelity",
        },
    ),
    "probe": Noun(
        "What a sentence encoder notices in sentences changed by rule.",
        {
            "run": "palaver.cli.probe_run:run",
            "transform": "palaver.cli.probe:transform",
            "triplets": "palaver.cli.probe:triplets",
        },
        usual="run",
    ),
    "train": Noun(
        "Train response models.",
        {
            "responder": "palaver.cli.train:responder",
            "presets": "palaver.cli.train:presets",
            "show": "palaver.cli.train:show",
            "status": "palaver.cli.train:status",
            "fields": "palaver.cli.train:fields",
            "new": "palaver.cli.train:new",
        },
    ),
    "reproduce": Noun(
        "Print a paper's published tables beside ours.",
        {
            "rankme": "palaver.cli.reproduce:rankme",
            "personality": "palaver.cli.reproduce:personality",
            "probes": "palaver.cli.reproduce:probes",
            "topical-chat": "palaver.cli.reproduce_topical_chat:topical_chat",
            "judges": "palaver.cli.reproduce:judges",
        },
    ),
}


class Palaver(LazyGroup):
    """The command `palaver`."""

    targets = COMMANDS

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            typer.echo("stopped", err=True)
            raise typer.Exit(130) from None


app = typer.Typer(
    cls=Palaver,
    help=HELP,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"palaver {__version__}")
        raise typer.Exit


@app.callback(help=HELP)
def _options(
    version: bool = typer.Option(
        False, "--version", "-V", callback=_print_version, is_eager=True, help="Show the version."
    ),
) -> None:
    """The options of `palaver` itself."""


_ClickUsageError: Any = typer.BadParameter.__bases__[0]  # its module differs between versions of typer


def run() -> None:
    """The console script. Exit 1: the user's data or settings; exit 2: the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without “–” or “≠” shows ? in their place
    try:
        sys.exit(app(prog_name="palaver", standalone_mode=False))
    except _ClickUsageError as error:
        _fail(_in_our_words(error), 2)
    except UsageError as error:
        _fail(error, 2)
    except UserError as error:
        _fail(error, 1)
    except MemoryError as error:
        _fail(UserError(f"not enough memory: {error}" if str(error) else "not enough memory"), 1)
    except BrokenPipeError:  # the reader of our output went away (… | head)
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:  # such as a full disk behind our output
        _fail(UserError(str(error)), 1)


def _fail(error: UserError, code: int) -> None:
    show_error(error)
    sys.exit(code)


def _in_our_words(error: Any) -> UsageError:
    """What the parser found wrong with the command line."""
    where = error.ctx.command_path if error.ctx is not None else "palaver"
    hint = f"{where} --help shows what it takes"
    if hasattr(error, "possibilities"):  # there is no such option
        params = error.ctx.command.get_params(error.ctx)
        known = [name for param in params for name in (*param.opts, *param.secondary_opts)]
        return UsageError(f"there is no option {error.option_name}{nearest(error.option_name, known)}", hint)
    param = getattr(error, "param", None)
    if param is None:
        message = error.format_message()
        return UsageError(message[:1].lower() + message[1:].rstrip("."), hint)
    is_option = param.param_type_name == "option"
    name = max(param.opts, key=len) if is_option else param.metavar or param.name.upper()
    return UsageError(f"{name}: {error.message}" if error.message else f"{name} is missing", hint)
