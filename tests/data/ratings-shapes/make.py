"""Writes the same 144 ratings in twelve shapes: 3 systems, 6 items, 4 raters, 2 criteria.

Shapes that can hold one criterion only hold `quality`. One answer is missing everywhere.
Run it in this folder; what it wrote is part of the repository.
"""

from __future__ import annotations

import csv
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import polars as pl
import xlsxwriter

HERE = Path(__file__).parent
SYSTEMS = ("alpha", "beta", "gamma")
ITEMS = tuple(f"Q0{n}" for n in range(1, 7))
RATERS = ("ann", "ben", "cleo", "dev")
WORDS = ("Poor", "Fair", "Good", "Very good", "Excellent")
MISSING = ("Q03", "beta", "dev")
"""Nobody answered here."""

Row = dict[str, Any]


def value(item: str, system: str, rater: str, criterion: str) -> int | None:
    """A rating from 1 to 5. alpha is best, gamma worst; raters differ a little."""
    if (item, system, rater) == MISSING:
        return None
    base = {"alpha": 4, "beta": 3, "gamma": 2}[system]
    place = ITEMS.index(item) * 5 + RATERS.index(rater) * (3 + ITEMS.index(item)) + SYSTEMS.index(system) * 7
    noise = (place % 7) // 3 - 1
    shift = 0 if criterion == "quality" else (ITEMS.index(item) + RATERS.index(rater)) % 2
    return max(1, min(5, base + noise + shift))


def long_rows(criteria: Sequence[str] = ("quality", "warmth")) -> list[Row]:
    return [
        {"item": i, "system": s, "rater": r, "criterion": c, "value": value(i, s, r, c)}
        for i in ITEMS
        for r in RATERS
        for s in SYSTEMS
        for c in criteria
    ]


def output_rows() -> list[Row]:
    return [
        {
            "item": i,
            "system": s,
            "rater": r,
            **{c: value(i, s, r, c) for c in ("quality", "warmth")},
            "age": 20 + 7 * RATERS.index(r),
            "comment": "" if r == "ann" else "fine",
        }
        for i in ITEMS
        for r in RATERS
        for s in SYSTEMS
    ]


def write_table(name: str, rows: Sequence[Row], delimiter: str = ",", empty: str = "") -> None:
    with (HERE / name).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        writer.writerow(rows[0])
        for row in rows:
            writer.writerow([empty if cell is None else cell for cell in row.values()])


def forms() -> list[Row]:
    rows: list[Row] = []
    for n, rater in enumerate(RATERS):
        row: Row = {"Timestamp": f"3/{n + 1}/2024 10:15:00", "Email Address": rater}
        row |= {f"{i} [{s}]": value(i, s, rater, "quality") for i in ITEMS for s in SYSTEMS}
        rows.append({**row, "Any comments?": "Thanks!"})
    return rows


def screens() -> list[Row]:
    rows: list[Row] = []
    for n, item in enumerate(ITEMS):
        for rater in RATERS:
            shown = SYSTEMS[n % 3 :] + SYSTEMS[: n % 3]
            row: Row = {"item": item, "rater": rater}
            row |= {f"team{k}": system for k, system in enumerate(shown, 1)}
            for criterion in ("quality", "warmth"):
                row |= {f"{criterion}{k}": value(item, s, rater, criterion) for k, s in enumerate(shown, 1)}
            rows.append(row)
    return rows


def write_xlsx(name: str, rows: Sequence[Row]) -> None:
    """With an empty row above the table and one in it, and a second sheet."""
    with xlsxwriter.Workbook(HERE / name) as book:
        sheet = book.add_worksheet("Ratings")
        sheet.write_row(1, 0, list(rows[0]))
        for n, row in enumerate(rows):
            sheet.write_row(n + 2 + (n >= 10), 0, ["n/a" if cell is None else cell for cell in row.values()])
        book.add_worksheet("Notes").write(0, 0, "Collected in March.")


def write_ods(name: str, rows: Sequence[Row]) -> None:
    def cell(content: object) -> str:
        if content is None:
            return "<table:table-cell/>"
        text = f"<text:p>{escape(str(content))}</text:p>"
        kind = f'"float" office:value="{content}"' if isinstance(content, int) else '"string"'
        return f"<table:table-cell office:value-type={kind}>{text}</table:table-cell>"

    lines = [list(rows[0]), *(list(row.values()) for row in rows)]
    table = "".join(f"<table:table-row>{''.join(map(cell, line))}</table:table-row>" for line in lines)
    spaces = "urn:oasis:names:tc:opendocument:xmlns"
    content = (
        '<?xml version="1.0" encoding="UTF-8"?><office:document-content office:version="1.2" '
        f'xmlns:office="{spaces}:office:1.0" xmlns:table="{spaces}:table:1.0" xmlns:text="{spaces}:text:1.0">'
        f'<office:body><office:spreadsheet><table:table table:name="Ratings">{table}</table:table>'
        "</office:spreadsheet></office:body></office:document-content>"
    )
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    manifest = (
        f'<?xml version="1.0"?><manifest:manifest xmlns:manifest="{spaces}:manifest:1.0">'
        f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{kind}"/>'
        '<manifest:file-entry manifest:full-path="content.xml" manifest:media-type="text/xml"/>'
        "</manifest:manifest>"
    )
    with zipfile.ZipFile(HERE / name, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("mimetype"), kind)
        archive.writestr("content.xml", content)
        archive.writestr("META-INF/manifest.xml", manifest)


def main() -> None:
    rows = long_rows()
    write_table("long.csv", rows, empty="NA")
    with (HERE / "long.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    pl.DataFrame(rows).write_parquet(HERE / "long.parquet")
    (HERE / "array.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    words = {None: None, **dict(enumerate(WORDS, 1))}
    write_table("words.csv", [{**row, "value": words[row["value"]]} for row in rows])
    commas = [{**row, "value": f"{row['value']},0" if row["value"] else "-"} for row in rows]
    write_table("semicolon.csv", commas, delimiter=";")
    write_table("outputs.csv", output_rows(), empty="null")
    names = {"item": "Question", "system": "Bot", "rater": "Participant"}
    renamed = [{names.get(name, name): cell for name, cell in row.items()} for row in output_rows()]
    write_table("outputs.tsv", renamed, delimiter="\t", empty="–")
    write_table("screens.csv", screens())
    write_table("forms.csv", forms())
    write_xlsx("sheet.xlsx", rows)
    write_ods("sheet.ods", output_rows())


if __name__ == "__main__":
    main()
