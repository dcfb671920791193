"""The eleven rows of Table 4 of Liang et al. (2020) as presets, and every setting with its default.

K = 50 is the paper's. It does not say how long or how fast it trained; those numbers are ours, and no row has
its own. Nothing stops early: the development pairs are for what the paper uses them for, and no more.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Literal

from palaver.errors import ConfigError, UserError, nearest

Objective = Literal["pairwise", "classification", "regression"]
StageName = Literal["rate", "flow", "smooth", "shapley"]
_STAGE_SETTINGS: dict[StageName, tuple[str, ...]] = {
    "rate": ("epochs", "within"),
    "flow": ("flow_epochs",),
    "smooth": ("epochs", "k", "rounds", "within"),
    "shapley": ("epochs", "k", "within"),
}
_LEAST = {
    2: ("max_tokens", "classes"),
    1: ("k", "rounds", "epochs", "flow_epochs", "graph_tokens"),
    0: ("batch_size", "weight_decay", "frozen_layers"),
}


@dataclass(frozen=True, kw_only=True)
class Training:
    """How a network is fitted."""

    epochs: int = 3
    batch_size: int = 32
    """Dialogues of a step, all of which are compared with each other; 0: the whole training set."""
    learning_rate: float = 5e-5
    new_layers: float = 10.0
    """How much faster f and the embedding of roles learn, which begin from nothing."""
    weight_decay: float = 0.01
    warmup: float = 0.1
    """Share of the steps up to the full rate; from there it falls as a cosine."""
    clip: float = 1.0
    graph_tokens: int = 131072
    """Padded tokens whose states are held at once; a larger step is run twice, once for its scores."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All that decides what a pipeline computes, beside its data and seed."""

    encoder: str = "minilm"
    pooling: Literal["auto", "cls", "mean"] = "auto"
    max_tokens: int = 512
    frozen_layers: int = 0
    """Lower layers of the encoder that stay as they are, which saves most of the time without a GPU."""
    k: int = 50
    """Neighbours, in stage 2 and in stage 3."""
    rounds: int = 1
    """Times stage 2 smooths and fine-tunes."""
    classes: int = 5
    within: Literal["all", "group", "rater", "system"] = "all"
    """Only dialogues of one sitting, rater or system are compared (the paper compares all)."""
    training: Training = field(default_factory=Training)
    flow_epochs: int = 2
    """Of stage 1, whose epochs are three times as long."""

    def check(self) -> Settings:
        """Raise `ConfigError` with everything that is wrong with the values."""
        t, values = self.training, self._flat()
        problems = [
            f"{name} should be {least} or more, found {values[name]:g}"
            for least, names in _LEAST.items()
            for name in names
            if values[name] < least
        ]
        if t.batch_size == 1:
            problems.append(
                "batch_size should be 2 or more, or 0 for all: one dialogue is compared with nothing"
            )
        if not 0 < t.learning_rate < 1:
            problems.append(f"learning_rate should lie between 0 and 1, found {t.learning_rate:g}")
        if not 0 <= t.warmup <= 1:
            problems.append(f"warmup should lie between 0 and 1, found {t.warmup:g}")
        if problems:
            raise ConfigError("the settings of the comparator cannot be used", problems=problems)
        return self

    def of_stage(self, stage: StageName) -> dict[str, Any]:
        """The settings that matter to a stage: changing any other leaves it as it is."""
        names = [f.name for f in dataclasses.fields(Training) if f.name not in ("epochs", "graph_tokens")]
        names += ["pooling", "max_tokens", "frozen_layers", *_STAGE_SETTINGS[stage]]
        values = self._flat()
        return {name: values[name] for name in names}

    def _flat(self) -> dict[str, Any]:
        """The settings and those of the training in one."""
        return dataclasses.asdict(self) | dataclasses.asdict(self.training)


@dataclass(frozen=True)
class Preset:
    """One row of Table 4: what is trained on, in which order, and what the paper measured."""

    name: str
    row: int
    title: str
    stages: tuple[StageName, ...]
    objective: Objective = "pairwise"
    dev: bool = False
    """Whether the development pairs are trained on."""
    accuracy: float = 0.0
    kappa: float = 0.0
    kappa_se: float = 0.0

    @property
    def needs_pairs(self) -> bool:
        """Whether it cannot do without development pairs."""
        return self.dev or "shapley" in self.stages

    @property
    def chain(self) -> tuple[str, ...]:
        """The folder of each stage: what it is, after all those before it."""
        if self.stages == ("rate",):
            return (f"rate-{self.objective}-dev" if self.dev else f"rate-{self.objective}",)
        return tuple("+".join(self.stages[: i + 1]) for i in range(len(self.stages)))


_ROWS = (
    Preset("classification", 1, "Classification", ("rate",), "classification", False, 0.581, 0.161, 0.049),
    Preset("regression", 2, "Regression", ("rate",), "regression", False, 0.640, 0.280, 0.048),
    Preset("pairwise", 3, "Pairwise", ("rate",), "pairwise", False, 0.730, 0.459, 0.044),
    Preset("pairwise-dev", 4, "Pairwise + Dev", ("rate",), "pairwise", True, 0.749, 0.499, 0.043),
    Preset("stage-2", 5, "Stage 2", ("smooth",), "pairwise", False, 0.755, 0.509, 0.043),
    Preset("stage-2-3", 6, "Stage 2 + 3", ("smooth", "shapley"), "pairwise", False, 0.764, 0.529, 0.042),
    Preset("stage-3", 7, "Stage 3", ("shapley",), "pairwise", False, 0.714, 0.429, 0.045),
    Preset("stage-1", 8, "Stage 1", ("flow",), "pairwise", False, 0.620, 0.241, 0.048),
    Preset("stage-1-3", 9, "Stage 1 + 3", ("flow", "shapley"), "pairwise", False, 0.788, 0.628, 0.039),
    Preset("stage-1-2", 10, "Stage 1 + 2", ("flow", "smooth"), "pairwise", False, 0.837, 0.673, 0.037),
    Preset("cmade", 11, "CMADE", ("flow", "smooth", "shapley"), "pairwise", False, 0.892, 0.787, 0.031),
)
PRESETS = {preset.name: preset for preset in _ROWS}


def find_preset(name: str) -> Preset:
    """A preset by its name or the number of its row."""
    by_name_or_row = PRESETS | {str(preset.row): preset for preset in _ROWS}
    if name in by_name_or_row:
        return by_name_or_row[name]
    raise UserError(
        f"there is no preset {name!r}{nearest(name, list(PRESETS))}", f"one of {', '.join(PRESETS)}"
    )
