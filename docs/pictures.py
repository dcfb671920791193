"""Make the pictures of the documentation.

    python docs/pictures.py              all of them (needs Chromium)
    python docs/pictures.py rate.png     only this one

The pages are those of real runs with simulated raters: a study that is served, and a report. Curves are drawn
from docs/results/responders.json.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

IMAGES = Path(__file__).parent / "images"
RESULTS = Path(__file__).parent / "results"
PORT = 8124

ELSEWHERE = {
    "removal.svg": "experiments/comparator/figure2.py",
    "removal-stages.svg": "experiments/comparator/figure2.py",
}
"""Pictures that need data which do not come along, and the scripts that make them."""

CURVES = {
    "curves-base.svg": ("xing-pretrain", "modern-pretrain"),
    "curves-speaker.svg": ("xing-speaker", "modern-speaker"),
    "curves-topicalchat.svg": ("tf", "tf-knowledge", "modern-tf", "modern-tf-knowledge"),
}


@contextlib.contextmanager
def browser_page(width: int, height: int) -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        yield browser.new_page(viewport={"width": width, "height": height}, color_scheme="light")
        browser.close()


def palaver(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "palaver", *words], check=True, stdout=subprocess.DEVNULL)


# --- a report -----------------------------------------------------------------------------------------------


def draw_report(path: Path) -> None:
    """The tutorial's own: docs/tutorials/first-analysis.md."""
    size = ["--systems", "5", "--items", "100", "--raters", "20", "--seed", "1"]
    files = ["--out", "ratings.csv", "--study-out", "simulated.toml"]
    palaver("study", "simulate", "--preset", "rankme", *size, *files)
    palaver("study", "analyse", "ratings.csv", "--study", "simulated.toml", "--out", "results")
    with browser_page(1200, 810) as page:
        page.goto(Path("results/report.html").resolve().as_uri())
        page.screenshot(path=path)


# --- a served study -----------------------------------------------------------------------------------------


@contextlib.contextmanager
def served_study(preset: str = "rankme", raters: int = 0) -> Iterator[tuple[str, Any]]:
    """The address and the database of a study of some items, which simulated people have answered."""
    from palaver import load_study
    from palaver.server.database import Database
    from palaver.server.migrations import migrate
    from palaver.server.study_state import StudyState

    file = Path("study.toml")
    palaver("study", "new", "--preset", preset, "--out", str(file))
    database = Database(f"sqlite:///{file.with_suffix('.db')}")
    migrate(database)
    state = StudyState.create(database, load_study(file), file.read_text(encoding="utf-8"))
    answer(state, file, raters)
    command = [sys.executable, "-m", "palaver", "study", "serve", str(file), "--no-qr", "--port", str(PORT)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{PORT}"
    try:
        for _ in range(600):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{address}/health").close()
                break
            time.sleep(0.1)
        yield address, database
    finally:
        server.terminate()
        server.wait()
        database.close()


def answer(state: Any, file: Path, raters: int) -> None:
    """Let people answer as `palaver study simulate` has them."""
    from palaver import load_study, simulate
    from palaver.server.answers import RawAnswer

    simulated = simulate(load_study(file), n_raters=max(raters, 3), seed=2).to_polars()
    values = {
        (row["item"], row["system"], row["rater"], row["criterion"]): row["value"]
        for row in simulated.to_dicts()
    }
    for name in sorted({rater for _, _, rater, _ in values})[:raters]:
        rater = state.enter()
        state.agree(rater)
        state.begin(rater)
        while (task := state.visit(rater).task) is not None:
            answers = []
            for question in task.questions:
                for place, output in enumerate(task.order):
                    system = task.item.outputs[output].system
                    value = values.get((task.item.id, system, name, question.criterion))
                    value = question.scale.parse(value) if isinstance(value, str) else value
                    value = list(value) if isinstance(value, tuple) else value
                    answers.append(RawAnswer(uuid.uuid4().hex, question.criterion, place, value, 14.0))
            state.submit(rater, task.assignment, answers)


def draw_rating_page(path: Path, width: int = 1000, height: int = 820) -> None:
    with served_study() as (address, _), browser_page(width, height) as page:
        page.goto(f"{address}/")
        while page.locator("#rate").count() == 0:
            page.locator(".go").click()
        for box, value in zip(
            page.locator("#rate input[type=text]").all(), ("120", "100", "60"), strict=False
        ):
            box.fill(value)
        page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
        page.screenshot(path=path)


def draw_phone(path: Path) -> None:
    draw_rating_page(path, 360, 740)


def draw_admin(path: Path) -> None:
    from palaver.server.oversight import arm_token

    with served_study(raters=3) as (address, database), browser_page(1200, 1340) as page:
        page.goto(f"{address}/admin/login?token={arm_token(database)}")
        page.get_by_role("button", name="Sign in").click()
        page.get_by_text("Agreement").first.wait_for()
        page.screenshot(path=path)


# --- curves -------------------------------------------------------------------------------------------------


def draw_curves(path: Path) -> None:
    """Perplexity per word on held-out pairs after each epoch."""
    from palaver.drawing import PALETTE
    from palaver.training.curves import Curve, draw_perplexity

    runs = json.loads((RESULTS / "responders.json").read_text(encoding="utf-8"))
    shapes = ("circle", "square", "diamond", "triangle")
    curves = []
    for name, colour, shape in zip(CURVES[path.name], PALETTE, shapes, strict=False):
        epochs = [row for row in runs[name]["epochs"] if row.get("valid_ppl_word")]
        points = [(row["seconds"] / 60, row["valid_ppl_word"]) for row in epochs]
        curves.append(Curve(name, points, colour, shape))
    x, y = "minutes of training, a mark after each epoch", "validation perplexity per word"
    path.write_text(draw_perplexity(curves, x, y) + "\n", encoding="utf-8")


MAKERS: dict[str, Callable[[Path], None]] = {
    "report.png": draw_report,
    "rate.png": draw_rating_page,
    "phone.png": draw_phone,
    "admin.png": draw_admin,
    **dict.fromkeys(CURVES, draw_curves),
}


def main() -> None:
    for name in sys.argv[1:] or MAKERS:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            MAKERS[name](IMAGES / name)
        print(IMAGES / name)


if __name__ == "__main__":
    main()
