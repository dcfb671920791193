"""`palaver chat`: talk with one or more systems in the terminal, or through a pipe."""

from __future__ import annotations

import contextlib
import io
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from palaver.cli import completion, options
from palaver.cli.decoding import Decoding
from palaver.cli.knowledge_file import KnowledgeFile
from palaver.cli.messages import show_error
from palaver.corpora.personalities import TRAITS
from palaver.errors import UsageError, UserError, count_of, nearest
from palaver.generation.conversation import Conversation, Hear, SystemReply
from palaver.generation.options import DecodingOptions
from palaver.generation.system import notes, parse_ocean
from palaver.generation.systems_file import best_system, find_system
from palaver.readers import write_dialogues
from palaver.tabular import show_fixed

DEFAULTS: dict[str, Any] = {"method": "sample", "temperature": 0.8, "top_p": 0.9, "no_repeat_ngram": 3}
"""How replies are drawn in a chat unless the systems file or an option says otherwise."""

_SAME_AS_COMMAND = re.compile(r"--(speaker|ocean|knowledge)\b")
COMMANDS = {
    "/help": "what can be typed",
    "/speaker NAME": "speak as NAME; off: as nobody in particular",
    "/ocean O,C,E,A,N": "speak with this personality, five numbers from 1 to 7; off",
    "/knowledge TEXT|FILE": "a sentence to use, or a file to choose sentences from; off",
    "/retry": "another reply to the last turn",
    "/undo": "take back the last turn and its replies",
    "/save FILE": "write the conversation to FILE (.jsonl, .csv or .parquet)",
    "/quit": "leave (also Ctrl-D)",
}
_COLOURS = ("green", "magenta", "yellow", "blue", "red", "cyan")


def chat(
    systems: Annotated[
        list[str] | None,
        typer.Argument(
            help="Names from systems.toml, everyday, smollm2, default, or checkpoint folders; without any, "
            "the best there is.",
            metavar="[SYSTEM]...",
            autocompletion=completion.systems,
        ),
    ] = None,
    speaker: Annotated[str | None, typer.Option(help="Who the systems speak as, such as Joey.")] = None,
    ocean: Annotated[
        str | None, typer.Option(help="Or their personality: five numbers from 1 to 7, joined by commas.")
    ] = None,
    knowledge: options.KnowledgeText = None,
    systems_file: options.SystemsFile = None,
    seed: options.Seed = 0,
    decoding: Decoding = DecodingOptions(),
    device: options.Device = "auto",
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Also say which knowledge was used, and ln p of replies.")
    ] = False,
) -> None:
    """Talk with a system, or with several side by side.

    /help says what can be typed. When the input is no terminal, each line is a turn, and only the replies are
    printed.

    Example: palaver chat

    Example: palaver chat everyday smollm2
    """
    if speaker is not None and ocean is not None:
        raise UsageError(
            "--speaker and --ocean were both given", "a speaker has a personality; give one of them"
        )
    scores = parse_ocean(ocean) if ocean is not None else None
    screen = _Screen(verbose)
    names, about = list(dict.fromkeys(systems or [])), ""
    if not names:
        name, about = best_system()
        names = [name]
    specs = [find_system(name, systems_file) for name in names]
    with screen.waiting("opening " + ", ".join(spec.name for spec in specs)):
        chosen = None if device == "auto" else device  # auto leaves the device to the systems file
        opened = [spec(device=chosen, decoding=decoding.given(), defaults=DEFAULTS) for spec in specs]
        conversation = Conversation(opened, seed=seed)
        session = _Session(conversation, screen)
        if about:
            session.note(f"this is {about}")
        session.note(*(note for spec in specs if (note := spec.without_effect(decoding.given()))))
        if speaker is not None:
            session.note(*conversation.set_speaker(speaker))
        if scores is not None:
            session.note(*conversation.set_ocean(scores))
        if knowledge is not None:
            session.use_knowledge(knowledge)
    session.run()


def _in_chat(error: UserError) -> UserError:
    """The same error with the commands of the chat in place of the options that do the same."""
    message, hint = (_SAME_AS_COMMAND.sub(r"/\1", text) for text in (error.message, error.hint or ""))
    return UserError(message, hint, error.problems)


class _Session:
    """The loop: lines in, replies out."""

    def __init__(self, conversation: Conversation, screen: _Screen) -> None:
        self.conversation = conversation
        self.screen = screen
        self._saved: set[Path] = set()
        self._told: set[str] = set()

    def run(self) -> None:
        self.screen.greet(self.conversation)
        for line in self.screen.lines():
            try:
                if not self.heed(line):
                    return
            except UserError as error:
                if not self.screen.interactive:
                    raise
                show_error(_in_chat(error))
            except KeyboardInterrupt:
                if not self.screen.interactive:
                    raise
                self.screen.say("stopped; nothing of this turn is kept")

    def heed(self, line: str) -> bool:
        """Do what a line says; False when it says to leave."""
        text = line.strip()
        if not text:
            return True
        if not text.startswith("/") or text.startswith("//"):
            said = text.removeprefix("/") if text.startswith("//") else text
            self._hear(partial(self.conversation.say, said))
            return True
        command, _, rest = text.partition(" ")
        if command in ("/quit", "/exit", "/q"):
            return False
        self._command(command, rest.strip())
        return True

    def _command(self, command: str, rest: str) -> None:
        names = [name.split()[0] for name in COMMANDS]
        if command == "/help":
            self.screen.help()
        elif command == "/retry":
            self._retry()
        elif command == "/undo":
            self.screen.say(f"taken back: {self.conversation.undo()}")
        elif command == "/save":
            self._save(rest)
        elif command == "/speaker":
            self._speaker(rest)
        elif command == "/ocean":
            self._ocean(rest)
        elif command == "/knowledge":
            self._knowledge(rest)
        else:
            raise UserError(
                f"there is no command {command}{nearest(command, names)}",
                f"there are {', '.join(names)}; begin with // to say something that begins with /",
            )

    def _retry(self) -> None:
        before = [dialogue.turns[-1].text for dialogue in self.conversation.dialogues()]
        replies = self._hear(self.conversation.retry)
        if before == [said.reply.text for said in replies]:
            decodes = any(hasattr(system, "decoding") for system in self.conversation.systems)
            others = "; --method sample or a higher --temperature gives others" if decodes else ""
            self.screen.say(f"(the same again{others})")

    def _hear(self, ask: Callable[..., list[SystemReply]]) -> list[SystemReply]:
        """Show replies: of one system while they come, of several side by side."""
        if self.screen.interactive and len(self.conversation.systems) == 1:
            with self.screen.stream() as hear:
                replies = ask(hear=hear)
            if not replies[0].reply.text.strip():  # nothing came, so nothing was shown
                self.screen.say("(an empty reply)")
            self.screen.details(replies)
        else:
            with self.screen.waiting("…"):
                replies = ask()
            self.screen.replies(replies)
        for system in self.conversation.systems:
            self.note(*notes(system))
        return replies

    def _save(self, name: str) -> None:
        if not name:
            raise UserError("/save needs the name of a file", "for example /save chat.jsonl")
        try:
            path = Path(name).expanduser()
            there = path.exists() and path.resolve() not in self._saved
            path.resolve()
        except (OSError, ValueError, RuntimeError) as error:  # too long, a zero byte, an unknown ~user
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise UserError(f"{name[:60]!r} cannot be the name of a file: {reason}") from None
        if there:
            raise UserError(f"{path} is there already", "choose another name")
        dialogues = self.conversation.dialogues()
        if not dialogues:
            raise UserError("there is nothing to save yet")
        write_dialogues(dialogues, path)
        self._saved.add(path.resolve())
        self.screen.say(f"saved {count_of(len(dialogues), 'dialogue')} in {path}")

    def _speaker(self, name: str) -> None:
        known = dict.fromkeys(n for s in self.conversation.systems for n in getattr(s, "speakers", ()))
        if not name:
            self.screen.say(
                f"speaker: {self.conversation.speaker or 'none'}; known: {', '.join(known) or 'none'}"
            )
            return
        self.note(*self.conversation.set_speaker(None if name == "off" else name))
        self.screen.say(f"speaker: {self.conversation.speaker or 'none'}")

    def _ocean(self, text: str) -> None:
        if text:
            self.note(*self.conversation.set_ocean(None if text == "off" else parse_ocean(text)))
        scores = self.conversation.ocean
        shown = ", ".join(f"{trait} {score:g}" for trait, score in zip(TRAITS, scores or (), strict=False))
        self.screen.say(f"personality: {shown or 'none'}")

    def _knowledge(self, text: str) -> None:
        if not text:
            raise UserError("/knowledge needs a sentence or a file", "or off, to go on without")
        if text == "off":
            self.conversation.set_knowledge(None)
            self.screen.say("knowledge: none")
        elif _is_file(text):
            self.use_knowledge(Path(text).expanduser())
        elif " " not in text and ("/" in text or text.endswith((".txt", ".md", ".gz"))):
            raise UserError(f"there is no file {text}", "a sentence to use has more than one word")
        else:
            self.note(*self.conversation.set_knowledge(lambda history: text))
            self.screen.say(f"knowledge: {text}")

    def use_knowledge(self, path: Path) -> None:
        facts = KnowledgeFile(path)
        self.note(*self.conversation.set_knowledge(facts.choose))
        if self.screen.interactive or self.screen.verbose:
            self.screen.say(f"knowledge: {len(facts.sentences):,} sentences of {path}", error=True)

    def note(self, *texts: str) -> None:
        """Things to know, each said once, never among the replies."""
        for text in texts:
            if text not in self._told:
                self._told.add(text)
                self.screen.say(f"note: {text}", error=True)


def _is_file(text: str) -> bool:
    try:
        return Path(text).expanduser().is_file()
    except (OSError, ValueError, RuntimeError):  # a sentence may be no possible name of a file
        return False


class _Screen:
    """What is seen: colours and columns for a person, bare replies in a pipe."""

    def __init__(self, verbose: bool) -> None:
        self.verbose = verbose
        self.interactive = sys.stdin is not None and sys.stdin.isatty()
        self._console = Console(highlight=False)
        self._aside = Console(highlight=False, stderr=True)

    def lines(self) -> Iterator[str]:
        if isinstance(sys.stdin, io.TextIOWrapper):
            sys.stdin.reconfigure(errors="replace")
        if not self.interactive:
            yield from sys.stdin
            return
        with contextlib.suppress(ImportError):  # arrow keys and history, where Python has it
            import readline  # noqa: F401
        prompt = "you › "
        if self._console.color_system and "readline" in sys.modules:
            prompt = "\001\033[1;36m\002you ›\001\033[0m\002 "  # \001 \002: takes no room on the line
        while True:
            try:
                yield input(prompt)
            except (EOFError, KeyboardInterrupt):
                self._console.print()
                return

    @contextlib.contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        if not self.interactive or not self._aside.is_terminal:
            yield
            return
        with self._aside.status(what, spinner="dots"):
            yield

    def greet(self, conversation: Conversation) -> None:
        if self.interactive:
            names = ", ".join(system.name for system in conversation.systems)
            self._console.print(
                f"Talking with {names}. /help says what can be typed.", style="dim", markup=False
            )

    def help(self) -> None:
        for command, what in COMMANDS.items():
            self.say(f"{command:<22}{what}")

    def say(self, text: str, *, error: bool = False) -> None:
        """About the chat, not part of it; in a pipe such lines stay out of the replies."""
        console = self._console if self.interactive and not error else self._aside
        console.print(_clean(text), style="dim", markup=False, soft_wrap=True)

    def replies(self, replies: Sequence[SystemReply]) -> None:
        if not self.interactive:
            for said in replies:
                text = " ".join(_clean(said.reply.text).split())
                print(f"{said.system}: {text}" if len(replies) > 1 else text, flush=True)
        elif len(replies) > 1 and self._console.width >= 36 * len(replies):
            self._columns(replies)
        else:
            self._below(replies)
        self.details(replies)

    def details(self, replies: Sequence[SystemReply]) -> None:
        if self.verbose:
            for said in replies:
                used = f"; knowledge: {said.knowledge}" if said.knowledge else ""
                lnp = "" if said.reply.logprob is None else f"; ln p {show_fixed(said.reply.logprob)}"
                if used or lnp:
                    self.say(f"{said.system}{lnp}{used}", error=True)

    @contextlib.contextmanager
    def stream(self) -> Iterator[Hear]:
        """Who speaks, then each piece of the reply as it comes."""
        waiting = contextlib.ExitStack()
        waiting.enter_context(self.waiting("…"))
        begun = False

        def hear(who: str, piece: str) -> None:
            nonlocal begun
            if not begun:
                begun = True
                waiting.close()
                self._console.print(Text(f"{who} › ", style=f"bold {_COLOURS[0]}"), end="")
            self._console.print(_clean(piece), end="", markup=False, soft_wrap=True)

        try:
            yield hear
        finally:
            waiting.close()
            if begun:
                self._console.print()

    def _below(self, replies: Sequence[SystemReply]) -> None:
        for place, said in enumerate(replies):
            who = Text(f"{said.who} › ", style=f"bold {_COLOURS[place % len(_COLOURS)]}")
            self._console.print(who + Text(_clean(said.reply.text), style="none"))

    def _columns(self, replies: Sequence[SystemReply]) -> None:
        table = Table(box=None, expand=True, padding=(0, 2, 0, 0))
        for place, said in enumerate(replies):
            who = Text(said.who, style=f"bold {_COLOURS[place % len(_COLOURS)]}")
            table.add_column(who, ratio=1, overflow="fold")
        table.add_row(*(Text(_clean(said.reply.text)) for said in replies))
        self._console.print(table)


def _clean(text: str) -> str:
    """Without control characters: a reply must not move the cursor or colour the terminal."""
    return "".join(c if c.isprintable() or c in "\n\t" else " " for c in text)
