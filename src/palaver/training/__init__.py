"""Training of response models: experiment files, prepared data, the loop, checkpoints."""

from palaver.training.experiment import Experiment
from palaver.training.experiment_file import PRESETS, experiment_toml, load_experiment, preset_experiment

__all__ = ["PRESETS", "Experiment", "experiment_toml", "load_experiment", "preset_experiment"]
