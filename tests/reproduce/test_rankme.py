"""RankME reproduced from the released ratings. Without the real data these tests are skipped."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from palaver.errors import DataError
from palaver.reproduce import rankme
from palaver.reproduce.comparison import Comparison, GroupCell, NumberCell

pytestmark = pytest.mark.filterwarnings("error")

MEASURED = ("Likert", "Plain ME", "RankME")
CRITERIA = ("naturalness", "quality", "informativeness")


@pytest.fixture(scope="module")
def found(shared_data: Path) -> Comparison:
    return rankme.reproduce(shared_data / "rankme", n_replicates=2000)


def numbers(found: Comparison, table: str) -> list[NumberCell]:
    return [cell for cell in found.of(table) if isinstance(cell, NumberCell)]


def groups(found: Comparison) -> dict[str, GroupCell]:
    return {cell.row: cell for cell in found.of("Table 4") if isinstance(cell, GroupCell)}


@pytest.mark.parametrize("table", ["Table 2", "Table 3"])
def test_one_convention_gives_fifteen_of_eighteen(table: str, found: Comparison) -> None:
    cells = numbers(found, table)
    assert (len(cells), sum(cell.matches for cell in cells)) == (18, 15)
    conventions = {cell.convention for cell in cells}
    assert conventions in ({"output means"}, {"ICC(1,k), raw", "ICC(1,k), log"})
    likert = {cell.convention for cell in cells if cell.row.startswith("Likert")}
    assert likert <= {"output means", "ICC(1,k), raw"}


def alternatives(found: Comparison, table: str, row: str) -> dict[str, float]:
    (cell,) = (c for c in numbers(found, table) if (c.row, c.column) == (row, "Setup 2"))
    return {other.convention: round(other.value, 2) for other in cell.alternatives}


def test_pairs_of_different_raters_are_a_note_and_not_a_match(found: Comparison) -> None:
    by_order, by_rater = alternatives(found, "Table 2", "Likert naturalness–quality").items()
    assert (by_order[1], by_rater[1]) == (-0.01, 0.33)
    assert "meaningless" in by_order[0]
    assert "same rater" in by_rater[0]
    assert [*alternatives(found, "Table 2", "Plain ME naturalness–quality").values()] == [-0.03, 0.35]


def test_the_rater_on_whom_the_cell_hangs_is_named(found: Comparison) -> None:
    others = alternatives(found, "Table 3", "RankME quality")
    [without] = [convention for convention in others if "without rater 43883861" in convention]
    assert others[without] == 0.63
    assert others["values as given"] == 0.10


def test_box_rows_say_which_file_they_come_from(found: Comparison) -> None:
    boxes = [cell for row, cell in groups(found).items() if row.endswith(" information")]
    assert {cell.convention for cell in boxes} == {"bootstrap, boxes of stp2_rankME_qual"}
    assert sum("by the boxes of" in remark for remark in found.remarks) == 4


def test_the_cell_that_does_not_follow_from_the_data_is_not_tuned_to(found: Comparison) -> None:
    (cell,) = (c for c in numbers(found, "Table 3") if (c.row, c.column) == ("RankME quality", "Setup 2"))
    assert cell.paper == 0.68
    assert abs(cell.ours) < 0.2
    assert "released file" in cell.why


def test_table_4(found: Comparison) -> None:
    cells = groups(found)
    nine = [cells[f"{method} {criterion}"] for method in MEASURED for criterion in CRITERIA]
    assert sum(cell.matches for cell in nine) >= 8


@pytest.mark.parametrize("criterion", CRITERIA)
def test_trueskill_gives_the_groups_of_rankme(criterion: str, found: Comparison) -> None:
    cells = groups(found)
    assert cells[f"TrueSkill {criterion}"].ours == cells[f"RankME {criterion}"].ours
    assert cells[f"TrueSkill {criterion}"].matches


def test_nothing_is_lost_and_every_difference_has_a_reason(found: Comparison) -> None:
    assert found.lost == ()
    assert all(cell.why for cell in found.cells if not cell.matches)
    assert all(cell.convention for cell in found.cells)


def test_significance_agrees_with_the_papers_stars(found: Comparison) -> None:
    cells = [c for t in ("Table 2", "Table 3") for c in numbers(found, t) if c.matches]
    assert sum((c.p < 0.05) == c.paper_star for c in cells) >= len(cells) - 3


def test_the_chi_square_test_of_section_3(found: Comparison) -> None:
    assert len([r for r in found.remarks if "χ²" in r]) == 3
    assert sum("paper: p < 0.01" in r for r in found.remarks) == 3


def test_the_signature_names_seed_and_files(found: Comparison, shared_data: Path) -> None:
    assert "12 files" in found.signature
    assert "seed 0" in found.signature


def test_the_same_seed_gives_the_same_cells(shared_data: Path) -> None:
    one, two = (rankme.reproduce(shared_data / "rankme", seed=3, n_replicates=100) for _ in range(2))
    assert one == two


@pytest.mark.parametrize("seed", [1, 2])
def test_other_seeds_lose_nothing(seed: int, shared_data: Path) -> None:
    assert rankme.reproduce(shared_data / "rankme", seed=seed, n_replicates=1000).lost == ()


def test_a_published_number_that_changes_is_noticed(
    shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    correlations, rankings = rankme.FIGURES["table_2"], rankme.FIGURES["table_4"]
    monkeypatch.setitem(correlations["informativeness–quality"], "Likert", ((0.0, False), (0.4, False)))
    monkeypatch.setitem(rankings, "Likert: quality", rankings["Plain ME: naturalness"])
    lost = rankme.reproduce(shared_data / "rankme", n_replicates=100).lost
    assert {cell.row for cell in lost} == {"Likert informativeness–quality", "Likert quality"}


def test_missing_files_are_all_named(tmp_path: Path) -> None:
    (tmp_path / "stp1_likert.zip").write_bytes(b"")
    with pytest.raises(DataError) as caught:
        rankme.reproduce(tmp_path)
    assert len(caught.value.problems) == 11
    assert "no file stp1_likert.zip" not in caught.value.problems


RESULTS = Path(__file__).parent.parent.parent / "docs/results"


def script(name: str) -> ModuleType:
    """An experiment, which is no part of the package."""
    path = RESULTS.parent.parent / f"experiments/rankme/{name}.py"
    spec = importlib.util.spec_from_file_location(f"rankme_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("name", "file"), [("tables", "rankme"), ("learning_curve", "rankme-learning-curve")]
)
def test_the_page_quotes_the_record(name: str, file: str) -> None:
    page = (RESULTS / "rankme.md").read_text(encoding="utf-8")
    record = json.loads((RESULTS / f"{file}.json").read_text(encoding="utf-8"))
    for table in script(name).page_tables(record):
        assert table in page
    assert record["command"].startswith(f"python experiments/rankme/{name}.py")
    assert record["hardware"]


def test_the_record_is_what_the_files_give(found: Comparison) -> None:
    """But for rankings, whose replicates are fewer here."""
    record = json.loads((RESULTS / "rankme.json").read_text(encoding="utf-8"))
    cells = {
        (c["table"], c["row"], c["column"]): c["ours"] for c in record["comparison"]["cells"] if "p" in c
    }
    ours = {(c.table, c.row, c.column): c.ours for t in ("Table 2", "Table 3") for c in numbers(found, t)}
    assert cells == pytest.approx(ours)
    page = (RESULTS / "rankme.md").read_text(encoding="utf-8")
    [row] = record["influence"]["against_likert"]
    quoted = [f"{row[name]:.2f}".removeprefix("0") for name in ("a", "b", "difference", "low", "high")]
    text = "ICC(1,1) {} against {}, difference {}, 95% {} to {}".format(*quoted)
    assert text in " ".join(page.split())


def test_the_learning_curve_script_runs(shared_data: Path) -> None:
    module = script("learning_curve")
    world, _ = module.released(shared_data / "rankme")
    for assignment in module.ASSIGNMENTS:
        right = module.run(world, assignment, [30, 600], np.random.default_rng(0))
        assert right[1].all()  # with two of three comparisons used, the order is that of all
    assert module.first_reaching(np.array([0.95, 0.8, 0.9, 0.92]), [1, 2, 3, 4]) == 3
