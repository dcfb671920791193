"""A study that names a judge: its scores become part of the study, and what is wrong with them is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from palaver import UserError
from palaver.schema import Study
from palaver.studies.design import load_study, parse_study, preset_study, study_toml
from palaver.studies.simulate import example_study
from palaver.studies.stop_judge import verdicts_in


def a_study() -> Study:
    base = example_study(preset_study("likert", layout="joint"), 2, 12)
    return base.model_copy(update={"stop": "when-sure", "stop_criterion": "quality"})


def write(folder: Path, judge: str, rows: list[str]) -> Path:
    text = study_toml(a_study()).replace("\n\n[[", f"\nstop_judge = {judge}\n\n[[", 1)
    (folder / "study.toml").write_text(text)
    (folder / "judged.csv").write_text("\n".join(["item,system,rater,criterion,value,kind", *rows]) + "\n")
    return folder / "study.toml"


def verdicts(judge: str = "scorer", skip: int = 0) -> list[str]:
    rows = []
    for n, item in enumerate(a_study().items[skip:]):
        rows += [f"{item.id},{output.system},{judge},score,{n % 5},metric" for output in item.outputs]
    return rows


def test_scores_become_part_of_the_study(tmp_path: Path) -> None:
    rows = [
        *verdicts(),
        "elsewhere,system-A,scorer,score,3,metric",
        "elsewhere,system-B,scorer,score,1,metric",
    ]
    study = load_study(write(tmp_path, '{ file = "judged.csv" }', rows))
    assert study.stop_judge is not None
    assert (study.stop_judge.judge, study.stop_judge.criterion) == ("scorer", "score")
    assert verdicts_in(study.stop_judge).scores["elsewhere", "system-A"] == 3
    assert Study.model_validate_json(study.model_dump_json()) == study  # as the database keeps it
    (tmp_path / "again.toml").write_text(study_toml(study))
    assert load_study(tmp_path / "again.toml") == study


@pytest.mark.parametrize(
    ("judge", "rows", "why"),
    [
        ('{ file = "none.csv" }', verdicts(), "there is no file none.csv"),
        ('{ file = "judged.csv" }', verdicts(skip=3), "scorer did not rate 6 of the study's outputs"),
        ('{ file = "judged.csv" }', ["x,y,scorer,score,1,metric"], "rated nothing that the study rated"),
        ('{ file = "judged.csv" }', [*verdicts("one"), *verdicts("two")], "say which with judge: one, two"),
        ('{ file = "judged.csv", judge = "scorr" }', verdicts(), "did you mean 'scorer'"),
        ("{ }", verdicts(), "say where the judge's ratings are"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(judge: str, rows: list[str], why: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as error:
        load_study(write(tmp_path, judge, rows))
    assert why in str(error.value)
    assert "stop_judge" in str(error.value)


def test_a_text_alone_names_no_file(tmp_path: Path) -> None:
    text = write(tmp_path, '{ file = "judged.csv" }', verdicts()).read_text()
    with pytest.raises(UserError, match="cannot name a file of a judge"):
        parse_study(text, "the study file")
