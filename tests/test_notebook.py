"""The notebook of the examples runs from its first cell to its answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parent.parent / "examples" / "notebook.ipynb"


def test_the_notebook_runs_and_answers(tmp_path: Path) -> None:
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    pytest.importorskip("matplotlib")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in cells), "outputs are not kept"
    client = nbclient.NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()  # raises where a cell does
    shown = [output for cell in cells for output in cell.outputs]
    assert "curious is better than terse." in text_of(cells[-1].outputs[-1])
    tables = [data_of(output).get("text/html", "") for output in shown]
    assert sum("<caption>" in table for table in tables) >= 4, "results show themselves as tables"
    assert any("image/png" in data_of(output) for output in shown)
    assert any("there is no file ratings-of-tomorrow.csv" in text_of(output) for output in shown)


def data_of(output: Any) -> dict[str, Any]:
    return dict(output.get("data", {}))


def text_of(output: Any) -> str:
    return str(output.get("text", ""))
