"""Files that Palaver 1.0.0 wrote are read by today's code, and files of a later format are refused.

The files in tests/data/version-1 are frozen; `make.py` beside them says how they were made.
"""

from __future__ import annotations

import gzip
import json
import shutil
import sqlite3
from pathlib import Path

import polars as pl
import pytest

from palaver.artefacts import FORMAT as RECORD_FORMAT
from palaver.artefacts import read_record, record_path
from palaver.collection.settings import load_collection
from palaver.errors import DataError, UserError
from palaver.evaluation.experiment import load_experiment
from palaver.evaluation.run import run_experiment
from palaver.evaluation.store import VERSION, Store
from palaver.generation.systems_file import load_systems, open_system
from palaver.models.pretrained import load
from palaver.readers import read_dialogues, read_responses
from palaver.schema import Dialogue, Request, Turn
from palaver.server.backup import FORMAT as BACKUP_FORMAT
from palaver.server.backup import restore
from palaver.server.database import Database
from palaver.server.export import write_export
from palaver.server.migrations import migrate
from palaver.studies import analyse, load_study, read_ratings

FILES = Path(__file__).parent / "data" / "version-1"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A copy: nothing is to write into the frozen folder."""
    return Path(shutil.copytree(FILES, tmp_path / "version-1"))


def test_a_small_folder() -> None:
    sizes = [path.stat().st_size for path in FILES.rglob("*") if path.is_file()]
    assert max(sizes) < 50_000
    assert sum(sizes) < 300_000


def test_settings_files() -> None:
    study = load_study(FILES / "study.toml")
    assert (study.name, len(study.items)) == ("restaurants-likert", 3)
    collection = load_collection(FILES / "collection.toml")
    assert (collection.name, collection.partners.bots) == ("talk-and-rate", ("default",))
    assert list(load_systems(FILES / "systems.toml")) == ["good", "plain"]
    experiment = load_experiment(FILES / "experiment.toml")
    assert (experiment.title, list(experiment.systems)) == ("Version 1", ["good", "plain"])


def test_ratings_and_the_analysis_of_them() -> None:
    study = load_study(FILES / "study.toml")
    tables = [read_ratings(FILES / name, study=study) for name in ("ratings.csv", "ratings.parquet")]
    assert [table.reading.n_ratings for table in tables] == [108, 108]
    frames = [table.frame.drop("order").cast({pl.Categorical: pl.String}) for table in tables]
    assert frames[0].equals(frames[1])
    before = json.loads((FILES / "results.json").read_text())
    now = analyse(tables[0], study=study, n_replicates=20)
    rankings = zip(now.ranking, before["ranking"], strict=True)
    for ranking, old in rankings:
        assert (ranking.criterion, ranking.method) == (old["criterion"], old["method"])
        scores = {row["system"]: row["score"] for row in old["scores"]}
        assert {row.system: row.score for row in ranking.scores} == pytest.approx(scores)
        assert ranking.label.startswith("1.–3. ")  # 3 items separate nobody; 1.0.0 thought they could
    assert [row.value for row in now.agreement] == pytest.approx(
        [float("nan") if row["value"] is None else row["value"] for row in before["agreement"]], nan_ok=True
    )


def test_dialogues_and_responses() -> None:
    dialogues = list(read_dialogues(FILES / "dialogues.jsonl"))
    assert [(d.id, d.turns[1].text, d.labels["rating"]) for d in dialogues][2] == ("d2", "Grüß dich", 3)
    responses = list(read_responses(FILES / "responses.jsonl"))
    assert len(responses) == 8
    assert responses[0].reference == "Number 0 is left."
    question = Dialogue(id="c2", turns=(Turn(speaker="user", text="Where is number 2?"),))
    (reply,) = open_system("good", FILES / "systems.toml").reply([Request(question)])
    assert reply.text == "Yes, number 2 is on the left."


def test_a_record() -> None:
    record = read_record(FILES / "generated.jsonl")
    assert (record.command, record.versions["palaver"]) == ("palaver generate", "1.0.0")
    assert record.signature == json.loads((FILES / "generated.jsonl.json").read_text())["signature"]


def test_an_evaluation_goes_on_where_it_stopped(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store(files / "evaluation", read_only=True) as store:
        assert {step.done for step in store.steps()} == {step.total for step in store.steps()}
        assert store.steps()
    monkeypatch.setattr("palaver.generation.replay.ReplaySystem.reply", None)  # no reply is asked for again
    evaluation = run_experiment(files / "experiment.toml", files / "evaluation")
    assert evaluation.n_responses == 8
    assert evaluation.answer == "No difference between good and plain can be shown, unigram_f1 says."


def test_a_checkpoint() -> None:
    model, vocabulary = load(FILES / "checkpoint")
    assert model.config.hidden == 8
    assert vocabulary.decode(vocabulary.encode("hello there")) == "Hello there"


@pytest.mark.parametrize("source", ["database", "backup"])
def test_a_study_with_its_answers(source: str, files: Path) -> None:
    database = Database(f"sqlite:///{files / 'study.db'}")
    try:
        if source == "database":
            (files / "study.db").write_bytes(gzip.decompress((files / "study.db.gz").read_bytes()))
            migrate(database)
        else:
            restore(files / "study-backup.jsonl.gz", database)
        assert write_export(database, files / "answers.csv") == 72
    finally:
        database.close()
    table = read_ratings(files / "answers.csv", study=load_study(files / "study.toml"))
    assert table.reading.n_ratings == 72


# --- formats of a later version -----------------------------------------------------------------------------


def test_a_later_record(files: Path) -> None:
    path = record_path(files / "generated.jsonl")
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": RECORD_FORMAT + 1}))
    with pytest.raises(DataError, match="is of the format 2, which is newer than 1\nupdate palaver"):
        read_record(files / "generated.jsonl")


def test_a_later_store_of_an_evaluation(files: Path) -> None:
    connection = sqlite3.connect(files / "evaluation" / "cells.db")
    connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    connection.close()
    with pytest.raises(UserError, match="written by another version of Palaver: format 2, not 1"):
        Store(files / "evaluation")


def test_a_later_database(files: Path) -> None:
    (files / "study.db").write_bytes(gzip.decompress((files / "study.db.gz").read_bytes()))
    connection = sqlite3.connect(files / "study.db")
    with connection:
        (table,) = connection.execute("SELECT name FROM sqlite_master WHERE name LIKE '%version'").fetchone()
        connection.execute(f"UPDATE {table} SET version_num = '9999'")
    connection.close()
    database = Database(f"sqlite:///{files / 'study.db'}")
    with pytest.raises(UserError, match="made by another version of Palaver"):
        migrate(database)
    database.close()


def test_a_later_backup(files: Path) -> None:
    path = files / "study-backup.jsonl.gz"
    first, _, rest = gzip.decompress(path.read_bytes()).partition(b"\n")
    header = {**json.loads(first), "format": BACKUP_FORMAT + 1, "version": "9.0"}
    path.write_bytes(gzip.compress(json.dumps(header).encode() + b"\n" + rest))
    database = Database(f"sqlite:///{files / 'new.db'}")
    with pytest.raises(DataError, match="was made by palaver 9.0, which is newer"):
        restore(path, database)
    database.close()


def test_a_later_checkpoint(files: Path) -> None:
    path = files / "checkpoint" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 2}))
    with pytest.raises(DataError, match="is in checkpoint format 2, this version of Palaver reads 1"):
        load(files / "checkpoint")


@pytest.mark.parametrize("name", ["study.toml", "collection.toml", "experiment.toml"])
def test_a_field_of_a_later_settings_file(name: str, files: Path) -> None:
    path = files / name
    path.write_text(f"field_of_tomorrow = 1\n{path.read_text()}")
    loaders = {"study": load_study, "collection": load_collection, "experiment": load_experiment}
    with pytest.raises(UserError, match=r"field_of_tomorrow: there is no such field"):
        loaders[path.stem](path)
