"""Experiment files: preset, file and `--set` put together and checked; every mistake named in its line."""

from __future__ import annotations

import copy
import dataclasses
import json
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from pydantic.fields import FieldInfo

from palaver.config import Lines, Location, config_error, parse_toml, read_toml, toml_value
from palaver.errors import ConfigError, UserError, explain_mistake, nearest
from palaver.training.experiment import (
    Data,
    Experiment,
    Log,
    ModelSettings,
    Optimiser,
    Source,
    VocabularySettings,
)

if TYPE_CHECKING:
    from palaver.models.pretrained import ResponderConfig

_PRESETS = files("palaver.training") / "presets"
PRESETS: dict[str, str] = tomllib.loads((_PRESETS / "index.toml").read_text(encoding="utf-8"))
"""Name -> what it is for."""
_TABLES: dict[str, type[BaseModel]] = {
    "the file itself": Experiment,
    "[data]": Data,
    "a source in `data.train` and `data.valid`": Source,
    "[vocabulary]": VocabularySettings,
    "[model]": ModelSettings,
    "[optimiser]": Optimiser,
    "[log]": Log,
}
_MODELS = ("seq2seq", "knowledge-transformer", "causal")
_FILLED_IN = (
    "vocab_size",
    "speakers",
    "ocean",
    "vocabulary",
    "history_turns",
    "architecture",
    "frame",
    "end",
)
"""Settings of a model that follow from the data."""
_SIZES = (
    *("embedding", "hidden", "layers", "dim", "heads", "feed_forward", "positions", "norm", "tied"),
    *("base", "lora_rank", "lora_layers"),
)
"""Settings of a model without which the weights of a checkpoint do not fit."""
_LIMITS = ("max_context", "max_response", "max_knowledge")
"""These, too, where each position has a learned vector."""
_ALTERNATIVES = {
    "batch_size": "batch_tokens",
    "batch_tokens": "batch_size",
    "speakers": "min_turns",
    "min_turns": "speakers",
}
"""Whoever gives one of these does not want the preset's other."""


def load_experiment(path: str | Path, assignments: Sequence[str] = ()) -> Experiment:
    """The experiment of a file, with `FIELD=VALUE` assignments on top. All mistakes are reported together."""
    path = Path(path)
    return _build(path, *read_toml(path), assignments)


def preset_experiment(name: str, assignments: Sequence[str] = ()) -> Experiment:
    """A preset by itself, to be looked at: it may lack a table of personalities, which only a user has."""
    data = {"preset": name, "name": name}
    return _build(Path(f"preset {name}"), data, Lines(""), assignments, needs_table=False)


def _build(
    path: Path,
    data: dict[str, Any],
    lines: Lines,
    assignments: Sequence[str],
    *,
    needs_table: bool = True,
) -> Experiment:
    given = _assigned(assignments)
    own = _merged(data, given)
    tables = _with_sizes_of_start(_with_preset(own), own, path.parent)
    model = tables.get("model", {})
    mistakes = list(_model_mistakes(model)) if isinstance(model, dict) else []
    model_is_sound = not mistakes
    experiment: Experiment | None = None
    try:
        experiment = Experiment.model_validate(tables)  # first without a look at the files it names
        experiment = Experiment.model_validate(tables, context=path.parent)
    except ValidationError as error:
        mistakes += _explain(error, Experiment, ())
    if experiment is not None and model_is_sound:
        mistakes += _contradictions(experiment, needs_table=needs_table)
    if mistakes or experiment is None:
        raise config_error(path, lines, [_from_set(given, mistake) for mistake in mistakes])
    return experiment


def preset_tables(name: str) -> dict[str, Any]:
    """The fields of a preset, those of the preset it builds on included."""
    if name not in PRESETS:
        raise ConfigError(
            f"there is no preset {name!r}{nearest(name, list(PRESETS))}", f"known: {', '.join(PRESETS)}"
        )
    text = (_PRESETS / f"{name}.toml").read_text(encoding="utf-8")
    return {**_with_preset(parse_toml(text, name)[0]), "preset": name}


def _with_preset(data: dict[str, Any]) -> dict[str, Any]:
    name = data.get("preset")
    return _merged(preset_tables(name), data) if isinstance(name, str) and name else data


def _with_sizes_of_start(tables: dict[str, Any], own: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Kind and sizes of the checkpoint to start from replace the preset's; what the file says stays."""
    model = own.get("model")
    if not isinstance(model, dict) or not isinstance(model.get("initialise_from"), str):
        return tables
    try:
        start = ModelSettings.model_validate({"initialise_from": model["initialise_from"]}, context=folder)
    except ValidationError:
        return tables  # said later, with its line
    from palaver.models.pretrained import read_config

    assert start.initialise_from is not None
    try:
        config = read_config(start.initialise_from)
    except UserError:
        return tables
    kind = config.get("model")
    if kind not in _MODELS or not _goes_with(model, kind):
        return tables
    names = [*_SIZES, *(_LIMITS if config.get("positions") == "learned" else ())]
    sizes = {name: config[name] for name in names if name in config}
    of_preset = tables["model"] if tables["model"].get("kind", "seq2seq") == kind else model
    return {**tables, "model": {**of_preset, "kind": kind, **sizes, **model}}


def _goes_with(model: dict[str, Any], kind: str) -> bool:
    """Whether what a file says about the model can be about one of this kind."""
    known = {*model_table(kind).model_fields, "kind", "initialise_from"}
    return model.get("kind", kind) == kind and known >= set(model)


def _merged(base: dict[str, Any], top: dict[str, Any]) -> dict[str, Any]:
    """`top` over `base`, table by table; a list replaces a list."""
    result = copy.deepcopy(base)
    for key, value in top.items():
        other = _ALTERNATIVES.get(key)
        if other is not None and other not in top:
            result.pop(other, None)
        below = result.get(key)
        both = isinstance(value, dict) and isinstance(below, dict)
        result[key] = _merged(below, value) if both else copy.deepcopy(value)
    return result


def _assigned(assignments: Sequence[str]) -> dict[str, Any]:
    """`optimiser.epochs=3` -> {"optimiser": {"epochs": 3}}; what is no TOML value is taken as text."""
    tables: dict[str, Any] = {}
    for word in assignments:
        key, equals, text = word.partition("=")
        parts = key.strip().split(".")
        if not equals or not all(parts):
            raise UserError(f"--set: expected FIELD=VALUE such as optimiser.epochs=3, found {word!r}")
        try:
            value = tomllib.loads(f"value = {text}")["value"]
        except ValueError:
            value = text
        for part in reversed(parts):
            value = {part: value}
        tables = _merged(tables, value)
    return tables


def _from_set(given: dict[str, Any], mistake: tuple[Location, str]) -> tuple[Location, str]:
    location, text = mistake
    here: Any = given
    for part in location:
        if not isinstance(here, dict) or part not in here:
            return mistake
        here = here[part]
        if not isinstance(here, dict):
            return location, f"{text} (given with --set)"
    return mistake


def _explain(error: ValidationError, table: type[BaseModel], at: Location) -> Iterator[tuple[Location, str]]:
    """Place and words of each mistake."""
    for mistake in error.errors():
        way = mistake["loc"]
        yield (*at, *way), explain_mistake(mistake, _fields(table, way[:-1]))


def _fields(table: type[BaseModel], way: Location) -> list[str]:
    """The fields that exist in the table `way` leads to."""
    if any(isinstance(part, int) for part in way):
        table = Source
    elif way:
        table = _TABLES.get(f"[{way[0]}]", table)
    return [field.alias or name for name, field in table.model_fields.items()]


def _config_class(kind: str) -> type[ResponderConfig]:
    from palaver.models.causal import CausalConfig
    from palaver.models.seq2seq import Seq2SeqConfig
    from palaver.models.transformer import KnowledgeTransformerConfig

    classes: tuple[type[ResponderConfig], ...] = (Seq2SeqConfig, KnowledgeTransformerConfig, CausalConfig)
    return next(config for config in classes if config.model == kind)


@cache
def model_table(kind: str) -> type[BaseModel]:
    """The settings of a model as a table, read off the model's own configuration."""
    config = _config_class(kind)
    hints = get_type_hints(config, include_extras=True)
    fields: dict[str, Any] = {
        field.name: (
            hints[field.name],
            field.default if field.default is not dataclasses.MISSING else field.default_factory(),
        )
        for field in dataclasses.fields(config)
        if field.name not in _FILLED_IN
    }
    strict = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, protected_namespaces=())
    return create_model(f"{kind} settings", __config__=strict, **fields)


def _model_mistakes(model: dict[str, Any]) -> Iterator[tuple[Location, str]]:
    kind = model.get("kind", "seq2seq")
    if kind not in _MODELS:
        return  # said already
    table = model_table(kind)
    own = {key: value for key, value in model.items() if key not in ("kind", "initialise_from")}
    for name in _FILLED_IN:
        if own.pop(name, None) is not None:
            yield ("model", name), "is filled in from the data; do not give it"
    try:
        table.model_validate(own)
    except ValidationError as error:
        yield from _explain(error, table, ("model",))


def _contradictions(experiment: Experiment, *, needs_table: bool) -> Iterator[tuple[Location, str]]:
    data = experiment.data
    settings: Any = model_table(experiment.model.kind)(**experiment.model_settings)
    conditioning, wants_knowledge = settings.conditioning, bool(settings.knowledge)
    filled = _config_class(experiment.model.kind)(vocab_size=1, speakers=("anybody",), **dict(settings))
    yield from ((("model",), problem) for problem in filled.contradictions())
    yield from _another_kind(experiment)
    if data.task == "windows" and conditioning != "none":
        yield ("data", "task"), "windows of text have no speaker: set model.conditioning to none"
    if data.task == "windows" and data.knowledge != "none":
        yield ("data", "knowledge"), "windows of text have no knowledge sentence: expected none"
    if data.task == "response" and wants_knowledge != (data.knowledge != "none"):
        yield (
            ("data", "knowledge"),
            f"found {data.knowledge!r}, but model.knowledge is {str(wants_knowledge).lower()}",
        )
    if data.task == "windows" and data.window > min(settings.max_context, settings.max_response):
        yield ("data", "window"), f"found {data.window}, more than model.max_context or model.max_response"
    if conditioning == "speaker" and not (data.speakers or data.min_turns):
        yield ("model", "conditioning"), "speakers need data.speakers (names) or data.min_turns"
    if conditioning == "personality" and data.ocean is None and needs_table:
        yield (
            ("model", "conditioning"),
            "personalities need data.ocean, a table of scores per speaker (see palaver personality table)",
        )
    if conditioning != "personality" and data.ocean is not None:
        yield ("data", "ocean"), f"is of no use: model.conditioning is {conditioning!r}"


def _another_kind(experiment: Experiment) -> Iterator[tuple[Location, str]]:
    """A checkpoint of another model: said before hours of preparing data."""
    from palaver.models.pretrained import read_config

    start, kind = experiment.model.initialise_from, experiment.model.kind
    if start is not None and (start / "config.json").is_file():
        try:
            theirs = read_config(start).get("model")
        except UserError as error:
            yield ("model", "initialise_from"), error.message
        else:
            if theirs != kind:
                yield ("model", "initialise_from"), f"{start} holds a {theirs} model, not a {kind}"


def experiment_toml(experiment: Experiment) -> str:
    """The experiment as a file that `load_experiment` reads back to the same value.

    Where a table of personalities is still to be named, a comment says so.
    """
    plain = experiment.plain()
    tables = {key: plain.pop(key) for key in list(plain) if isinstance(plain[key], dict)}
    lines = [f"{key} = {toml_value(value)}" for key, value in plain.items()]
    for name, table in tables.items():
        lines += ["", f"[{name}]", *(f"{key} = {toml_value(value)}" for key, value in table.items())]
        if name == "data" and _lacks_table(experiment):
            lines += [
                '# ocean = "ocean.csv"  # to be named before training: palaver personality table writes it'
            ]
    return "\n".join(lines) + "\n"


def _lacks_table(experiment: Experiment) -> bool:
    is_personality = experiment.model_settings.get("conditioning") == "personality"
    return is_personality and experiment.data.ocean is None


def reference() -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """The tables of the file in order, then those of the models; each with names, defaults and meanings."""
    for title, table in _TABLES.items():
        fields = table.model_fields.items()
        yield title, [_describe(field.alias or name, field) for name, field in fields if field.description]
    for kind in _MODELS:
        fields = model_table(kind).model_fields.items()
        yield f'[model] of kind "{kind}"', [_describe(name, field) for name, field in fields]


def _describe(name: str, field: FieldInfo) -> tuple[str, str, str]:
    value: Any = field.get_default(call_default_factory=True)
    default = "" if value is None or value in ("", ()) else json.dumps(value)
    meaning = [field.description] if field.description else []
    if get_origin(field.annotation) is Literal:
        meaning.append(", ".join(f"`{value}`" for value in get_args(field.annotation)))
    return name, default, "; ".join(meaning)
