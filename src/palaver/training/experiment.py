"""An experiment file (TOML): what is trained, on which data, how. Declared once, for reader and reference.

The recipes of Xing & Fernández (2018, section 3.2) and Gopalakrishnan et al. (2019, section 5) are files
under `presets/`; an experiment names one and overrides what it likes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationInfo,
    field_validator,
    model_validator,
)

from palaver.errors import nearest
from palaver.models.catalogue import missing_data, not_installed, shipped
from palaver.schema.base import FrozenDict


def _find(path: Path, info: ValidationInfo) -> Path:
    """Look in the working folder, then beside the experiment file, whose folder is the context."""
    if info.context is None:
        return path
    for place in (path, info.context / path):
        if place.exists():
            return place.absolute()
    siblings = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
    raise ValueError(f"there is no {path}{nearest(path.name, siblings)}")


def _find_checkpoint(value: Any) -> Any:
    """A shipped name is the folder of that checkpoint; `./default` is a folder of one's own."""
    if value in not_installed("checkpoints"):
        raise ValueError(str(missing_data([value])))
    return shipped().get(value, value) if isinstance(value, str) else value


def _find_start(path: Path, info: ValidationInfo) -> Path:
    try:
        return _find(path, info)
    except ValueError as error:
        raise ValueError(f"{error}; shipped: {', '.join(shipped())}, or a checkpoint folder") from None


InputPath = Annotated[Path, AfterValidator(_find)]
"""Something that must be there when the experiment is read from a file."""
StartPath = Annotated[Path, BeforeValidator(_find_checkpoint), AfterValidator(_find_start)]
"""A checkpoint to start from: a shipped one by its name, or a folder."""


ColumnNames = Annotated[Mapping[str, str], AfterValidator(FrozenDict), PlainSerializer(dict)]


class Part(BaseModel):
    """A table of the file."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, populate_by_name=True)

    @field_validator("*", mode="before")
    @classmethod
    def _numbers(cls, value: Any, info: ValidationInfo) -> Any:
        """`epochs = true` and `epochs = "3"` are slips, which pydantic would take for numbers."""
        kind = cls.model_fields[info.field_name or ""].annotation
        if isinstance(value, bool | str) and kind in (int, float, int | None, float | None):
            raise ValueError(f"expected a number, found {value!r}")
        return value


class Source(Part):
    """Where dialogues come from: a corpus by name, or a file."""

    corpus: str | None = Field(None, description="a name of `palaver corpus list`")
    path: InputPath | None = Field(None, description="a file of dialogues (.jsonl, .csv, .parquet; .gz too)")
    columns: ColumnNames | None = Field(
        None, description='other names in the file: `{ speaker = "who", text = "said" }`'
    )
    split: str | None = Field(None, description="only dialogues of this split")
    root: InputPath | None = Field(None, description="the folder the corpus lies in, if not `data.root`")

    @model_validator(mode="after")
    def _one_of_two(self) -> Source:
        if (self.corpus is None) == (self.path is None):
            raise ValueError("give either corpus or path")
        return self

    def __str__(self) -> str:
        return f"{self.corpus or self.path}{f' ({self.split})' if self.split else ''}"


class Data(Part):
    """`[data]`: which dialogues, and how they become examples."""

    train: tuple[Source, ...] = Field((), description="sources of the training examples")
    valid: tuple[Source, ...] = Field((), description="sources of the validation examples")
    root: InputPath | None = Field(
        None, description="where corpora lie; default: `PALAVER_DATA`, then the cache"
    )
    prepared: Path | None = Field(
        None, description="folder for tokenised data, shared between runs; default: `prepared` beside `out`"
    )
    task: Literal["response", "windows"] = Field(
        "response",
        description="`response`: answer the turns before; `windows`: language model, each window of tokens "
        "predicts the next one",
    )
    window: int = Field(32, ge=1, description="tokens in a window (`windows` only)")
    history_turns: int = Field(0, ge=0, description="how many turns a response sees; 0: all before it")
    merge_turns: bool = Field(False, description="join consecutive turns of one speaker")
    speakers: tuple[str, ...] = Field((), description="who gets an id; only their responses are learned")
    min_turns: int = Field(
        0, ge=0, description="instead of `speakers`: whoever has so many turns in one source; 0: off"
    )
    ocean: InputPath | None = Field(
        None, description="table (CSV or JSON) of speaker and five OCEAN scores from 1 to 7"
    )
    knowledge: Literal["none", "oracle", "tfidf", "bm25", "encoder"] = Field(
        "none", description="how a sentence of the reading set is chosen for each response"
    )
    valid_examples: int = Field(
        2000, ge=0, description="without `valid`: so many training examples are held out at random"
    )
    max_examples: int | None = Field(None, ge=1, description="only the first so many training examples")

    @field_validator("speakers")
    @classmethod
    def _each_once(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"there twice: {', '.join(map(repr, twice))}")
        return names


class VocabularySettings(Part):
    """`[vocabulary]`: made from the training texts, or taken from somewhere."""

    kind: Literal["word", "bpe"] = Field("bpe", description="whole words, or pieces of bytes")
    size: int = Field(8000, ge=10, le=1_000_000, description="at most so many tokens")
    lowercase: bool = Field(False, description="`bpe` only; words are always lower-cased")
    from_: InputPath | None = Field(
        None, alias="from", description="folder with a `tokenizer.json` to use as it is"
    )


class ModelSettings(BaseModel):
    """`[model]`: its kind, and any setting of that kind (checked in `experiment_file`)."""

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False)

    kind: Literal["seq2seq", "knowledge-transformer", "causal"] = Field("seq2seq", description="which model")
    initialise_from: StartPath | None = Field(
        None,
        description="checkpoint to start from: `default`, `default-speaker`, `default-personality` or a "
        "folder; its vocabulary is used too, and its kind and sizes where the file names none",
    )


Beta = Annotated[float, Field(ge=0, lt=1)]


class Optimiser(Part):
    """`[optimiser]`: steps, batches and when to stop."""

    name: Literal["sgd", "adamw"] = Field("adamw", description="the optimiser")
    learning_rate: float = Field(5e-4, gt=0, le=1e6, description="at its highest")
    condition_rate: float = Field(
        1.0, gt=0, le=1e6, description="how many times as fast the vectors of speakers or personalities learn"
    )
    weight_decay: float = Field(0.0, ge=0, description="not on vectors (biases, norms)")
    betas: tuple[Beta, Beta] = Field((0.9, 0.98), description="of AdamW")
    schedule: Literal["constant", "halve-after", "plateau", "warmup-cosine", "warmup-inverse-sqrt"] = Field(
        "constant", description="how the learning rate changes"
    )
    halve_after: int = Field(6, ge=0, description="`halve-after`: halved with each epoch after this one")
    decay: float = Field(0.5, gt=0, lt=1, description="`plateau`: the rate is multiplied by this")
    patience: int = Field(
        3, ge=0, description="`plateau`: after more than so many epochs without a better one"
    )
    warmup_steps: int = Field(1000, ge=0, description="`warmup-…`: steps up to the full rate")
    clip: float = Field(0.0, ge=0, description="largest norm of the gradient; 0: not clipped")
    label_smoothing: float = Field(0.0, ge=0, lt=1, description="share given to all tokens alike")
    loss_per: Literal["token", "example"] = Field(
        "token", description="the loss of a batch is divided by its target tokens or by its examples"
    )
    batch_size: int | None = Field(None, ge=1, description="examples in a batch, on each process")
    batch_tokens: int | None = Field(
        None, ge=1, description="instead: tokens in a batch, padding included, on each process"
    )
    bucket: int = Field(
        200,
        ge=0,
        description="batches of similar length are cut from pools of so many batches; 0: no sorting",
    )
    precision: Literal["fp32", "bf16"] = Field("fp32", description="`bf16` needs a GPU, else `fp32` is used")
    epochs: int = Field(10, ge=1, description="passes over the training examples")
    max_steps: int | None = Field(None, ge=1, description="stop after so many steps")
    early_stop: int = Field(
        0, ge=0, description="stop after so many epochs without a better validation perplexity; 0: never"
    )

    @model_validator(mode="after")
    def _one_size(self) -> Optimiser:
        if (self.batch_size is None) == (self.batch_tokens is None):
            raise ValueError("give either batch_size or batch_tokens")
        return self


class Log(Part):
    """`[log]`: what is written while training."""

    every: int = Field(50, ge=1, description="steps between lines of `metrics.jsonl`")
    checkpoint_every: int = Field(
        1000, ge=0, description="steps between checkpoints; 0: at ends of epochs only"
    )
    keep: int = Field(1, ge=1, description="so many of the newest checkpoints are kept, and the best")
    tensorboard: bool = Field(False, description="also write for TensorBoard, into `OUT/tensorboard`")


class Experiment(Part):
    """The whole file."""

    preset: str = Field("", description="recipe to start from, see `palaver train presets`")
    name: str = Field("experiment", min_length=1, description="what the run is called")
    seed: int = Field(1, ge=0, le=2**32 - 1, description="of weights, dropout, order and held-out examples")
    out: Path | None = Field(None, description="folder of the run; default: `runs/NAME`")
    data: Data = Data()
    vocabulary: VocabularySettings = VocabularySettings()
    model: ModelSettings = ModelSettings()
    optimiser: Optimiser = Optimiser(batch_size=32)
    log: Log = Log()

    @property
    def folder(self) -> Path:
        """Where the run is kept."""
        return self.out or Path("runs") / self.name

    @property
    def prepared(self) -> Path:
        """Where tokenised data is kept."""
        return self.data.prepared or self.folder.parent / "prepared"

    @property
    def model_settings(self) -> dict[str, Any]:
        """The settings of the model itself."""
        return dict(self.model.model_extra or {})

    def plain(self) -> dict[str, Any]:
        """Everything as JSON values, keys as in the file."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)
