"""Every kind of page in a real browser: wide and narrow, nothing sticks out, nothing is squeezed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from palaver.comparator.cleaning import Cleaning, RaterVerdict, RatingVerdict
from palaver.models.encoders.encoder import Encoder
from palaver.probes.evaluate import evaluate
from palaver.probes.probe import SAMPLE
from palaver.probes.triplet_files import read_triplets
from palaver.reports.compare import clean_page
from palaver.reports.personality import render_personality_report
from palaver.reports.probes import render_probe_report
from palaver.reports.render import render_report
from palaver.schema.run import record_run


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
    cleaning = Cleaning(rows, raters, counts, dict.fromkeys(why, 30), 0.78, ("a note",))
    return clean_page(cleaning, record_run("palaver compare clean"))


def analysis(sample: ModuleType, characters: Any) -> str:
    return render_report(sample.make())


def personality(sample: ModuleType, characters: Any) -> str:
    return render_personality_report(characters)


@pytest.mark.parametrize("make", [analysis, probes, personality, cleaned], ids=lambda make: make.__name__)
def test_pages_fit_wide_and_narrow(
    make: Callable[[ModuleType, Any], str], browser: Any, sample: ModuleType, characters: Any, tmp_path: Path
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    (tmp_path / "page.html").write_text(make(sample, characters), encoding="utf-8")
    page = browser.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.goto((tmp_path / "page.html").as_uri())
    for width, least in ((1200, 850), (360, 300)):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") == width, "it sticks out"
        assert page.evaluate("document.querySelector('main').clientWidth") >= least, "it is squeezed"
    violations = axe.run(page).response["violations"]
    assert [v["id"] for v in violations if v["impact"] in ("serious", "critical")] == []
    assert problems == []
    page.close()
