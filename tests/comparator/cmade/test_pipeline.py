"""The whole pipeline with a tiny encoder: stages, resuming to the last bit, refusals, the command."""

from __future__ import annotations

import dataclasses
import json
import sys
from importlib import util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("accelerate")
from typer.testing import CliRunner  # noqa: E402

from palaver.cli.main import app  # noqa: E402
from palaver.comparator.cmade.network import ComparatorNetwork, apply_network  # noqa: E402
from palaver.comparator.cmade.pipeline import run_pipeline  # noqa: E402
from palaver.comparator.cmade.presets import PRESETS, Settings, Training  # noqa: E402
from palaver.comparator.reading import read_pairs, read_rated  # noqa: E402
from palaver.comparator.training_data import TrainingData  # noqa: E402
from palaver.errors import DataError, UserError  # noqa: E402

torch.set_num_threads(1)
ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def sources(rated_files: dict[str, Path]) -> TrainingData:
    dev = read_rated(rated_files["dev"])
    return TrainingData.gather(
        read_rated(rated_files["train"]), dev=dev, pairs=read_pairs(rated_files["pairs"], dev.index)
    )


@pytest.fixture(scope="module")
def quick(tiny_encoder: Path) -> Settings:
    training = Training(epochs=2, batch_size=20, learning_rate=1e-3)
    return Settings(encoder=str(tiny_encoder), k=5, flow_epochs=1, training=training)


@pytest.fixture(scope="module")
def whole(sources: TrainingData, quick: Settings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All eleven rows in one folder, as the experiment does it."""
    out = tmp_path_factory.mktemp("whole")
    for preset in PRESETS.values():
        run_pipeline(preset, sources, out, quick, device="cpu")
    return out


def test_all_rows_run_and_share_their_stages(whole: Path) -> None:
    stages = sorted(p.name for p in whole.iterdir() if p.is_dir())
    assert len(stages) == 11
    results = [json.loads((whole / f"{name}.json").read_text()) for name in PRESETS]
    assert [r["row"] for r in results] == list(range(1, 12))
    assert all(0 <= r["on_pairs"]["accuracy"] <= 1 and r["on_pairs"]["n"] == 66 for r in results)
    by_name = {r["preset"]: r for r in results}
    assert by_name["cmade"]["stages"]["flow+smooth"] == by_name["stage-1-2"]["stages"]["flow+smooth"]
    assert by_name["cmade"]["pairs_were_used"]
    assert not by_name["stage-1-2"]["pairs_were_used"]
    assert 0 < by_name["cmade"]["n_kept"] < 60


def test_what_a_stage_leaves(whole: Path, sources: TrainingData) -> None:
    folder = whole / "flow+smooth+shapley"
    record = json.loads((folder / "run.json").read_text())
    assert {"flow.flow_epochs", "smooth.k", "shapley.k", "shapley.epochs"} <= set(record["config"])
    assert {"encoder", "ratings", "dev", "pairs"} == set(record["data"])
    arrays = np.load(folder / "arrays.npz")
    kept = arrays["kept"]
    assert (arrays["values"][kept] >= 0).all()
    assert len(kept) == record["n_kept"] == (arrays["values"] >= 0).sum()
    assert arrays["kept_ids"].tolist() == [sources.ratings.ids[i] for i in kept]
    network = ComparatorNetwork.load(folder / "network")
    assert sources.dev is not None
    scores, phi = apply_network(network, network.inputs(sources.dev.dialogues))
    np.testing.assert_array_equal(scores, arrays["dev_scores"])
    np.testing.assert_array_equal(phi, arrays["dev_embeddings"])
    smoothed = np.load(whole / "flow+smooth" / "arrays.npz")["smoothed"]
    assert smoothed.std() < sources.ratings.values.std()
    assert 0 <= json.loads((whole / "flow" / "run.json").read_text())["real_wins"] <= 1


def test_going_on_gives_what_one_run_gives(
    whole: Path, sources: TrainingData, quick: Settings, tmp_path: Path
) -> None:
    """Stopped after stage 1, and in the middle of stage 3: the same bits as without a stop."""
    run_pipeline(PRESETS["stage-1"], sources, tmp_path, quick, device="cpu")
    run_pipeline(PRESETS["cmade"], sources, tmp_path, quick, device="cpu")
    (tmp_path / "flow+smooth+shapley" / "run.json").unlink()
    (tmp_path / "flow+smooth+shapley" / "arrays.npz").write_bytes(b"half")
    said: list[str] = []
    outcome = run_pipeline(PRESETS["cmade"], sources, tmp_path, quick, device="cpu", say=said.append)
    assert [stage.resumed for stage in outcome.stages] == [True, True, False]
    assert "flow: done already" in said
    for stage in ("flow", "flow+smooth", "flow+smooth+shapley"):
        first, second = (np.load(folder / stage / "arrays.npz") for folder in (whole, tmp_path))
        for name in first.files:
            np.testing.assert_array_equal(first[name], second[name])
    assert all(stage.resumed for stage in run_pipeline(PRESETS["cmade"], sources, tmp_path, quick).stages)


def test_another_seed_gives_another_result(
    whole: Path, sources: TrainingData, quick: Settings, tmp_path: Path
) -> None:
    run_pipeline(PRESETS["pairwise"], sources, tmp_path, quick, seed=1, device="cpu")
    first, second = (np.load(f / "rate-pairwise" / "arrays.npz")["dev_scores"] for f in (whole, tmp_path))
    assert (first != second).any()


def test_other_settings_are_refused(whole: Path, sources: TrainingData, quick: Settings) -> None:
    other = dataclasses.replace(quick, k=7)
    with pytest.raises(UserError) as caught:
        run_pipeline(PRESETS["stage-1-2"], sources, whole, other, device="cpu")
    assert caught.value.problems == ("smooth.k: was 5, is 7",)
    assert "--force" in caught.value.hint
    fewer = dataclasses.replace(sources, ratings=sources.ratings.take(range(50)))
    with pytest.raises(UserError) as caught:
        run_pipeline(PRESETS["pairwise"], fewer, whole, quick, device="cpu")
    assert caught.value.problems == ("ratings: its content has changed",)
    # k is nothing to stage 1 and to plain ratings
    assert run_pipeline(PRESETS["pairwise"], sources, whole, other, device="cpu").stages[0].resumed


def test_more_neighbours_than_dialogues(sources: TrainingData, quick: Settings, tmp_path: Path) -> None:
    many = dataclasses.replace(quick, k=500)
    with pytest.raises(DataError, match="all smoothed ratings are equal"):
        run_pipeline(PRESETS["stage-2"], sources, tmp_path, many, device="cpu")
    result = run_pipeline(PRESETS["stage-3"], sources, tmp_path, many, device="cpu")
    assert result.on_pairs is not None


def test_pairs_are_needed_where_they_are(sources: TrainingData, quick: Settings, tmp_path: Path) -> None:
    without = dataclasses.replace(sources, dev=None, pairs=None)
    with pytest.raises(UserError, match="needs compared pairs"):
        run_pipeline(PRESETS["cmade"], without, tmp_path, quick)
    result = run_pipeline(PRESETS["regression"], without, tmp_path, quick, device="cpu")
    assert result.on_pairs is None
    assert result.dev_scores is None


def command(files: dict[str, Path], encoder: Path, out: Path, *more: str) -> list[str]:
    given = ["compare", "train", "--ratings", str(files["train"]), "--dev-pairs", str(files["pairs"])]
    given += ["--encoder", str(encoder), "--out", str(out), "--device", "cpu", "--epochs", "1"]
    given += ["--k", "5"]
    return [*given, *more]


def test_the_command(rated_files: dict[str, Path], tiny_encoder: Path, tmp_path: Path) -> None:
    dev = ("--dev-dialogues", str(rated_files["dev"]))
    first = command(rated_files, tiny_encoder, tmp_path / "o", *dev, "--preset", "stage-2-3")
    result = CliRunner().invoke(app, first)
    assert result.exit_code == 0, result.output
    assert "rated dialogues: 60, rated from 1 to 5" in result.output
    assert "compared pairs: 66" in result.output
    assert "these pairs were used in training" in result.output
    page = (tmp_path / "o" / "report.html").read_text()
    assert page.count("<svg") == 2, "how honest the probabilities are, and Figure 2"
    assert "The pairs were used in training" in page
    again = CliRunner().invoke(app, first)
    assert "smooth+shapley: done already" in again.output
    wrong = CliRunner().invoke(app, [*first, "--seed", "1"])
    assert isinstance(wrong.exception, UserError)
    assert wrong.exception.problems == ("seed: was 0, is 1",)
    assert len(CliRunner().invoke(app, ["compare", "presets"]).output.splitlines()) == 12


def test_pairs_among_the_ratings_are_held_out(
    rated_files: dict[str, Path], tiny_encoder: Path, tmp_path: Path
) -> None:
    more = ("--ratings", str(rated_files["dev"]), "--preset", "3")
    result = CliRunner().invoke(app, command(rated_files, tiny_encoder, tmp_path, *more))
    assert result.exit_code == 0, result.output
    assert "24 rated dialogues are in the development set" in result.output
    assert json.loads((tmp_path / "pairwise.json").read_text())["n_train"] == 60


def test_the_method_of_our_own(rated_files: dict[str, Path], tiny_encoder: Path, tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    dev = ("--dev-dialogues", str(rated_files["dev"]), "--method", "palaver")
    first = command(rated_files, tiny_encoder, tmp_path / "o", *dev)
    result = CliRunner().invoke(app, first)
    assert result.exit_code == 0, (result.output, result.exception)
    assert "compared pairs (they fix the unit, no more): accuracy" in result.output
    assert (tmp_path / "o" / "comparator" / "comparator.json").is_file()
    page = (tmp_path / "o" / "report.html").read_text()
    assert "ratings of raters it had not seen" in page
    assert page.count("<svg") == 1
    again = CliRunner().invoke(app, first)
    assert "represented.npz: done already" in again.output
    fewer = [*first[: first.index("--ratings")], "--ratings", str(rated_files["dev"]), "--min-turns", "3"]
    fewer += first[first.index("--ratings") + 2 :]
    other = CliRunner().invoke(app, fewer)
    assert other.exit_code == 1


def test_plain_kernels_give_what_the_compiled_give() -> None:
    """The experiment runs where numba is missing."""
    spec = util.spec_from_file_location("plain", ROOT / "experiments" / "comparator" / "plain_kernels.py")
    assert spec is not None
    assert spec.loader is not None
    plain = util.module_from_spec(spec)
    spec.loader.exec_module(plain)
    from palaver.comparator.cmade import ranking_loss, shapley, smoothing

    rng = np.random.default_rng(0)
    x, q, y = rng.normal(size=(70, 6)).astype(np.float32), rng.normal(size=(9, 6)), rng.random(70)
    scores, targets = (
        torch.from_numpy(rng.normal(size=70)),
        torch.from_numpy(rng.integers(0, 4, 70).astype(float)),
    )
    groups = torch.from_numpy(rng.integers(0, 5, 70))

    def everything() -> list[Any]:
        loss, lambdas = ranking_loss.pair_weights(scores, targets, groups=groups, weights=targets)
        plain_loss, plain_lambdas = ranking_loss.pair_weights(scores, targets)
        values = [shapley.knn_shapley(x, y, q, rng_weights, k=k) for k in (1, 5, 100)]
        return [*values, smoothing.smooth(x, y, k=7), loss, lambdas, plain_loss, plain_lambdas]

    rng_weights = rng.integers(-2, 3, 9).astype(float)
    compiled = everything()
    before = sys.modules["palaver.comparator.cmade._kernels"]
    sys.modules["palaver.comparator.cmade._kernels"] = plain
    try:
        for a, b in zip(compiled, everything(), strict=True):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), atol=1e-9)
    finally:
        sys.modules["palaver.comparator.cmade._kernels"] = before
