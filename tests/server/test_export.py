"""What was answered, is exported: every acknowledged answer once, in three formats, with its marks."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import sham

from palaver.errors import DataError
from palaver.schema import Study
from palaver.server import export
from palaver.server.database import Database
from palaver.server.export import FOR_ANALYSIS, Selection, rater_lines, read_answers, stream, write_export
from palaver.server.oversight import decide
from palaver.server.study_state import StudyState
from palaver.studies import read_ratings
from palaver.studies.design import PRESETS, preset_study

MakeStudy = Callable[..., Study]


def rows_of(database: Database, **choice: bool) -> list[dict[str, Any]]:
    return [
        json.loads(line) for line in b"".join(stream(database, "jsonl", Selection(**choice))).splitlines()
    ]


def run_study(
    database: Database, study: Study, n_raters: int = 3, seed: int = 1
) -> tuple[StudyState, list[str]]:
    service = StudyState.create(database, study, "source")
    rng = random.Random(seed)
    saved: list[str] = []
    for _ in range(n_raters):
        saved += sham.work(service, sham.come_in(service), rng)
    return service, saved


@pytest.mark.parametrize("preset", [name for name in PRESETS if name != "complete"])  # it has training
def test_every_acknowledged_answer_is_there_once_in_every_format(
    preset: str, sqlite: Database, tmp_path: Path
) -> None:
    _, saved = run_study(sqlite, preset_study(preset))
    frames = {}
    for kind in ("csv", "jsonl", "parquet"):
        assert write_export(sqlite, tmp_path / f"x.{kind}") == len(saved)
        table = read_ratings(tmp_path / f"x.{kind}", study=preset_study(preset))
        assert table.reading.n_ratings == len(saved)
        assert not table.reading.dropped
        frames[kind] = table.frame.cast({pl.Categorical: pl.String})
    assert frames["csv"].equals(frames["jsonl"])
    assert frames["csv"].equals(frames["parquet"])


def test_a_pair_has_the_id_of_its_context(sqlite: Database, make_study: MakeStudy) -> None:
    study = make_study(n_items=2, n_outputs=2, scale={"kind": "pairwise"})
    systems = "|".join(output.system for output in study.items[0].outputs)
    pair = study.items[0].model_copy(update={"id": f"c1|{systems}"})
    run_study(sqlite, study.model_copy(update={"items": (pair, study.items[1])}))
    contexts = {row["item"]: row.get("context") for row in rows_of(sqlite)}
    assert contexts == {pair.id: "c1", study.items[1].id: None}


def test_both_databases_export_what_was_given(database: Database, make_study: MakeStudy) -> None:
    service = StudyState.create(database, make_study(n_items=1, n_outputs=2), "")
    me = sham.come_in(service)
    task = service.visit(me).task
    assert task is not None
    given = sham.answers_to(task, random.Random(3))
    service.submit(me, task.assignment, given)
    rows = rows_of(database)
    assert [(r["criterion"], r["shown_position"], r["value"], r["seconds"]) for r in rows] == [
        (g.criterion, g.position, g.value, g.seconds) for g in given
    ]
    for row, g in zip(rows, given, strict=True):
        assert row["system"] == task.item.outputs[task.order[g.position]].system
        assert (row["rater"], row["item"], row["study"], row["screen"]) == (me, task.item.id, "small", "main")
        assert (row["excluded"], row["screened"], row["late"]) == (False, False, False)


def test_small_batches_lose_nothing(
    sqlite: Database, make_study: MakeStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, saved = run_study(sqlite, make_study(n_items=4, n_outputs=3), n_raters=2)
    whole = {kind: b"".join(stream(sqlite, kind)) for kind in ("csv", "jsonl")}
    monkeypatch.setattr(export, "BATCH", 5)
    assert {kind: b"".join(stream(sqlite, kind)) for kind in ("csv", "jsonl")} == whole
    pieces = list(stream(sqlite, "parquet"))
    assert b"".join(pieces)[:4] == b"PAR1"
    assert pl.read_parquet(io.BytesIO(b"".join(pieces))).height == len(saved)


def test_answers_that_arrive_meanwhile_wait_for_the_next_export(
    sqlite: Database, make_study: MakeStudy
) -> None:
    service = StudyState.create(sqlite, make_study(n_items=6), "")
    me, rng = sham.come_in(service), random.Random(1)
    first = sham.work(service, me, rng, screens=3)
    pieces = stream(sqlite, "jsonl")
    sham.work(service, me, rng)
    assert len(b"".join(pieces).splitlines()) == len(first)


def test_an_export_without_rows_is_an_error_that_says_so(
    sqlite: Database, make_study: MakeStudy, tmp_path: Path
) -> None:
    service = StudyState.create(sqlite, make_study(), "")
    with pytest.raises(DataError, match="nobody has answered yet"):
        stream(sqlite, "csv")
    with pytest.raises(DataError, match="nobody has answered yet"):
        write_export(sqlite, tmp_path / "x.csv")
    with pytest.raises(DataError, match="nobody has come in"):
        next(rater_lines(sqlite))
    assert not (tmp_path / "x.csv").exists()
    me = sham.come_in(service)
    saved = sham.work(service, me, random.Random(1))
    decide(sqlite, me, "exclude")
    with pytest.raises(DataError, match=f"all {len(saved)} answers .* come from excluded raters"):
        stream(sqlite, "csv", FOR_ANALYSIS)
    assert all(row["excluded"] for row in rows_of(sqlite))


def test_checks_and_training_only_when_asked_for(sqlite: Database, make_study: MakeStudy) -> None:
    def known(name: str) -> dict[str, Any]:
        outputs = [{"system": "gold", "text": "good"}]
        expected = [{"criterion": "quality", "system": "gold", "low": 1}]
        return {"item": {"id": name, "outputs": outputs}, "expected": expected}

    study = make_study(
        n_items=6,
        training={"items": [known("learn")], "pass_mark": 0},
        checks={"items": [known("check-1"), known("check-2")], "rate": 0.5},
    )
    run_study(sqlite, study, n_raters=2)
    assert {row["screen"] for row in rows_of(sqlite)} == {"main"}
    every = rows_of(sqlite, all_screens=True)
    assert {row["screen"] for row in every} == {"main", "check", "training"}
    assert {row["item"] for row in every if row["screen"] == "training"} == {"learn"}


def test_late_answers_are_marked(sqlite: Database, make_study: MakeStudy, clock: Any) -> None:
    service = StudyState.create(sqlite, make_study(n_items=2, raters_per_item=1), "", clock)
    rng = random.Random(1)
    slow, quick = sham.come_in(service), sham.come_in(service)
    held = service.visit(slow).task
    assert held is not None
    clock.sleep(61)
    sham.work(service, quick, rng)
    service.submit(slow, held.assignment, sham.answers_to(held, rng))
    assert {(r["rater"], r["late"]) for r in rows_of(sqlite)} == {(slow, True), (quick, False)}


def test_answers_of_those_screened_out_are_marked(sqlite: Database, make_study: MakeStudy) -> None:
    gold = {"id": "gold", "outputs": [{"system": "gold", "text": "good"}]}
    impossible = {"item": gold, "expected": [{"criterion": "quality", "system": "gold", "low": 99}]}
    checks = {"items": [impossible], "allowed_failures": 0, "rate": 0.5}
    run_study(sqlite, make_study(n_items=4, checks=checks), n_raters=1)
    assert {(r["screened"], r["excluded"], r["late"]) for r in rows_of(sqlite)} == {(True, True, False)}


NASTY = "<script>alert(1)</script> \u202eevil\u202c 😀 'x' \"y\", =1+1\r\n|\\ \u2028"


def test_hostile_texts_come_back_as_they_were(database: Database, make_study: MakeStudy) -> None:
    study = make_study(n_items=1, n_outputs=2, comments=True, survey=[{"name": "why", "text": "Why?"}])
    item = study.items[0]
    outputs = tuple(o.model_copy(update={"system": f"{n}{NASTY}"}) for n, o in enumerate(item.outputs))
    study = study.model_copy(update={"items": (item.model_copy(update={"id": NASTY, "outputs": outputs}),)})
    service = StudyState.create(database, study, NASTY)
    me = sham.come_in(service, platform="prolific", external=NASTY[:40], parameters={"SESSION_ID": NASTY})
    task = service.visit(me).task
    assert task is not None
    service.submit(me, task.assignment, sham.answers_to(task, random.Random(1)), NASTY)
    service.visit(me)
    service.answer_survey(me, {"why": NASTY})
    for kind in ("jsonl", "csv", "parquet"):
        content = io.BytesIO(b"".join(stream(database, kind)))
        read = {"jsonl": pl.read_ndjson, "csv": pl.read_csv, "parquet": pl.read_parquet}[kind]
        frame = read(content)
        assert frame["item"].to_list() == [NASTY, NASTY]
        assert set(frame["system"]) == {f"0{NASTY}", f"1{NASTY}"}
    (person,) = (json.loads(line) for line in rater_lines(database))
    assert person["external"] == NASTY[:40]
    assert person["survey"]["why"].strip() == NASTY.strip()
    assert person["comments"][0]["text"] == NASTY.strip()
    assert person["parameters"] == {"SESSION_ID": NASTY}


def test_the_table_needs_no_file_between(sqlite: Database, make_study: MakeStudy, tmp_path: Path) -> None:
    study = make_study()
    run_study(sqlite, study)
    write_export(sqlite, tmp_path / "x.parquet")
    through_file = read_ratings(tmp_path / "x.parquet", study=study)
    direct = read_ratings(read_answers(sqlite), study=study)
    assert direct.frame.equals(through_file.frame)
    assert direct.treatments == through_file.treatments
    assert set(direct.frame["kind"]) == {"human"}
    assert list(direct.hashes) == [study.name]
