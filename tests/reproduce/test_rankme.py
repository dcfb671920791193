"""RankME reproduced from the released ratings. Without the real data these tests are skipped."""

from __future__ import annotations

from pathlib import Path

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


def test_table_2(found: Comparison) -> None:
    cells = numbers(found, "Table 2")
    assert len(cells) == 18
    assert sum(cell.matches for cell in cells) >= 17


def test_table_3(found: Comparison) -> None:
    cells = numbers(found, "Table 3")
    assert len(cells) == 18
    assert sum(cell.matches for cell in cells) >= 16


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
    assert all("paper: p < 0.01" in r for r in found.remarks)


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
    monkeypatch.setitem(correlations["naturalness–quality"], "Likert", ((0.54, True), (0.4, False)))
    monkeypatch.setitem(rankings, "Likert: quality", rankings["Plain ME: naturalness"])
    lost = rankme.reproduce(shared_data / "rankme", n_replicates=100).lost
    assert {cell.row for cell in lost} == {"Likert naturalness–quality", "Likert quality"}


def test_missing_files_are_all_named(tmp_path: Path) -> None:
    (tmp_path / "stp1_likert.zip").write_bytes(b"")
    with pytest.raises(DataError) as caught:
        rankme.reproduce(tmp_path)
    assert len(caught.value.problems) == 11
    assert "no file stp1_likert.zip" not in caught.value.problems
