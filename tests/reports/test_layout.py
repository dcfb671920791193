"""Every kind of page in a real browser: wide and narrow, nothing sticks out, nothing is squeezed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from palaver.comparator.cleaning import Cleaning, RaterVerdict, RatingVerdict
from palaver.comparator.evaluation import PairResult
from palaver.judges.audit import audit
from palaver.models.encoders.encoder import Encoder
from palaver.probes.evaluate import evaluate
from palaver.probes.probe import SAMPLE
from palaver.probes.triplet_files import read_triplets
from palaver.reports.audit import audit_page
from palaver.reports.compare import clean_page
from palaver.reports.personality import render_personality_report
from palaver.reports.probes import render_probe_report
from palaver.reports.render import render_report
from palaver.schema.run import record_run

PAPER = 680
"""What A4 leaves between its margins, in pixels."""


def probes(sample: ModuleType, characters: Any) -> str:
    def letters(texts: list[str]) -> list[list[float]]:
        return [[text.count(c) + 0.1 for c in "abcdefghijklmnopqrstuvwxyz"] for text in texts]

    names = ("an-encoder-with-a-long-name", "another", "a third one")
    encoders = [Encoder(name, name, "counts letters", letters) for name in names]  # type: ignore[arg-type]
    return render_probe_report(evaluate(encoders, read_triplets(SAMPLE)))


def cleaned(sample: ModuleType, characters: Any) -> str:
    why = (
        "the rater prefers what others find worse",
        "the rater types little: 1.2 words a turn, usually 5.3",
    )
    raters = tuple(RaterVerdict(f"w{n}", 6, 0.1, -0.2, 20.0, 50.0, 3.0, "drop", why) for n in range(30))
    rows = tuple(RatingVerdict(f"d{n}", f"w{n}", 50.0, 40.0, "drop", why, 0.9) for n in range(30))
    counts = {"keep": 0, "suspicious": 0, "drop": 30}
    agreement = PairResult(0.78, 0.7, 0.9, 0.5, 0.1, 40)
    cleaning = Cleaning(rows, raters, counts, dict.fromkeys(why, 30), agreement, ("a note",))
    return clean_page(cleaning, record_run("palaver compare clean"))


def analysis(sample: ModuleType, characters: Any) -> str:
    return render_report(sample.make())


def personality(sample: ModuleType, characters: Any) -> str:
    return render_personality_report(characters)


def audited(sample: ModuleType, characters: Any) -> str:
    return audit_page(audit(lambda response: float(len(response.response or ""))))


def test_a_phone_shows_long_cells_below_the_others(browser: Any, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(audited(None, None), encoding="utf-8")  # type: ignore[arg-type]
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.goto((tmp_path / "page.html").as_uri())
    widths = page.evaluate(
        """() => {
          const table = document.querySelector("#wrong table");
          const width = (cell) => cell.getBoundingClientRect().width;
          return [table.parentElement.scrollWidth - table.parentElement.clientWidth,
                  ...[...table.tBodies[0].rows].map((row) => width(row.cells[row.cells.length - 1]))];
        }"""
    )
    page.close()
    assert widths[0] == 0
    assert min(widths[1:]) >= 300


@pytest.mark.parametrize(
    "make", [analysis, probes, personality, cleaned, audited], ids=lambda make: make.__name__
)
def test_pages_fit_wide_and_narrow(
    make: Callable[[ModuleType, Any], str], browser: Any, sample: ModuleType, characters: Any, tmp_path: Path
) -> None:
    (tmp_path / "page.html").write_text(make(sample, characters), encoding="utf-8")
    check_page(tmp_path / "page.html", browser)


COMMANDS = {
    "meta.html": "meta people.csv judged.csv --responses said.jsonl --out meta.html",
    "habits.html": "meta pairs.csv --habits --out habits.html",
    "ppi.html": "trust ppi people.csv judged.csv --out ppi.html",
    "plan.html": "trust plan people.csv judged.csv --reach 0.5 --out plan.html",
    "checked/report.html": "collect check talks.jsonl --out checked",
}


def write_data(folder: Path) -> None:
    """Two systems, twelve contexts, four people, a judge, comparisons by a model, and a conversation."""
    ratings = ["item,system,rater,criterion,value,kind"]
    people, judged, pairs = (
        list(ratings),
        list(ratings),
        ["item,system,against,rater,criterion,value,kind,shown_position"],
    )
    said = []
    for n in range(12):
        for k, system in enumerate(("old", "new")):
            text = "word " * (2 + (n * 5 + k * 3) % 7)
            said.append({"id": f"q{n}", "system": system, "context": f"Question {n}?", "response": text})
            value = 2 + (n + 2 * k) % 4
            people += [f"q{n},{system},p{r},quality,{min(6, value + (n * r) % 2)},human" for r in range(4)]
            judged.append(f"q{n},{system},length,quality,{value + 0.3 * (n % 3)},metric")
        verdict = "win" if n % 3 else "loss"
        pairs += [f"q{n},new,old,model,quality,{verdict},llm,{place}" for place in (0, 1)]
    turns = [{"speaker": f"agent_{1 + i % 2}", "text": f"Message {i} about owls and tea."} for i in range(6)]
    for name, rows in (("people", people), ("judged", judged), ("pairs", pairs)):
        (folder / f"{name}.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (folder / "said.jsonl").write_text("\n".join(map(json.dumps, said)) + "\n", encoding="utf-8")
    (folder / "talks.jsonl").write_text(json.dumps({"id": "t1", "turns": turns}) + "\n", encoding="utf-8")


def test_pages_of_commands_fit_wide_and_narrow(
    browser: Any, palaver: Callable[..., Any], tmp_path: Path
) -> None:
    write_data(tmp_path)
    for file, line in COMMANDS.items():
        ran = palaver(*line.split())
        assert ran.code == 0, f"{line}\n{ran.out}\n{ran.err}"
        check_page(tmp_path / file, browser)


def check_page(path: Path, browser: Any) -> None:
    """It fits a screen, a phone and a sheet of paper, and nothing keeps anybody out."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = browser.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.goto(path.as_uri())
    for width, least in ((1200, 850), (360, 300)):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") == width, f"{path.name} sticks out"
        assert page.evaluate("document.querySelector('main').clientWidth") >= least, f"{path.name}: squeezed"
    violations = axe.run(page).response["violations"]
    assert [v["id"] for v in violations if v["impact"] in ("serious", "critical")] == [], path.name
    assert "skip-link" not in {v["id"] for v in violations}, path.name
    page.emulate_media(media="print", color_scheme="dark")
    page.set_viewport_size({"width": PAPER, "height": 1000})
    assert page.evaluate("document.documentElement.scrollWidth") <= PAPER, f"{path.name} is cut in print"
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background in ("rgb(255, 255, 255)", "rgba(0, 0, 0, 0)"), f"{path.name} prints {background}"
    assert problems == []
    page.close()
