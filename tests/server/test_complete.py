"""The preset `complete` from consent to survey: 20 people at the same time, two of them in a real browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import polars as pl
from playwright.sync_api import Browser, Page, expect
from sqlalchemy import func, select
from visits import accessible, click_go, here, is_good, no_sideways_scroll, take_part, turned

from palaver.server.tables import answer, assignment, rater, screen
from palaver.studies.design import preset_text

PEOPLE = 20
WALKERS = {"phone": 390, "desktop": 1280}
# One place fewer than people on every item: the last ones have to share what is left, and to wait for it.
TEXT = preset_text("complete").replace("raters_per_item = 3", f"raters_per_item = {PEOPLE - 1}")
N_ITEMS = 4


def answer_page(page: Page, *, good: bool) -> None:
    """Answer both questions of the page and save."""
    before = here(page)
    for question, value in zip(page.locator(".question").all(), "51" if good else "10", strict=True):
        question.locator(f".choice:has(input[value='{value}'])").click()
    page.locator("#go").click()
    turned(page, before)


def shown_reply(page: Page) -> str:
    return page.locator(".judged .text").inner_text()


class Walker:
    """Somebody in a browser, who goes on page by page (`for _ in walker.walk()`)."""

    def __init__(self, browser: Browser, url: str, name: str) -> None:
        width = WALKERS[name]
        self.context = browser.new_context(viewport={"width": width, "height": 800}, has_touch=width < 500)
        self.context.set_default_timeout(30_000)
        self.page = self.context.new_page()
        self.problems: list[str] = []
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on(
            "console", lambda said: self.problems.append(said.text) if said.type == "error" else None
        )
        self.page.goto(f"{url}/?PROLIFIC_PID={name}&SESSION_ID=1")
        self.seen: set[str] = set()
        self.code = ""

    def look(self, kind: str) -> None:
        """Every kind of page fits and is accessible."""
        if kind not in self.seen:
            self.seen.add(kind)
            no_sideways_scroll(self.page)
            accessible(self.page)

    def walk(self) -> Iterator[None]:
        page = self.page
        page.keyboard.press("Enter")
        page.wait_for_timeout(50)
        expect(page.locator("h1")).to_have_text("Before you begin")  # Enter on arrival is no consent
        self.look("consent")
        click_go(page)
        self.look("instructions")
        click_go(page)
        yield
        yield from self._train()
        yield from self._rate()
        expect(page.locator("h1")).to_have_text("A few last questions")
        self.look("survey")
        page.locator(".choice").first.click()
        click_go(page)
        expect(page.locator("h1")).to_have_text("Thank you!")
        expect(page.locator("main")).to_contain_text("studies@example.org")
        self.look("end")
        self.code = page.locator(".code").inner_text()

    def _train(self) -> Iterator[None]:
        page = self.page
        expect(page.locator(".progress")).to_contain_text("Training, attempt 1 of 2")
        self.look("training")
        for _ in range(2):
            answer_page(page, good=False)  # the good reply, too
            yield
        expect(page.locator("h1")).to_have_text("Not quite.")
        expect(page.locator("main")).to_contain_text("not a bad one")
        assert page.locator(".judged .text").count() == 2, "the whole item is shown again"
        assert page.locator(".answered input:checked").count() == 4, "with the answers"
        self.look("feedback")
        click_go(page)
        expect(page.locator(".notice")).to_contain_text("attempt 2 of 2")
        for _ in range(2):
            answer_page(page, good=is_good(shown_reply(page)))
            yield
        expect(page.locator("h1")).to_have_text("That is right.")
        click_go(page)
        yield

    def _rate(self) -> Iterator[None]:
        page = self.page
        counts = []
        while True:
            if page.locator("#waiting").count():
                self.look("waiting")
                page.reload()
            elif page.locator("#rate").count():
                counts.append(page.locator(".progress label").inner_text())
                if len(counts) == 2:
                    page.locator(".again summary").click()
                    expect(page.locator(".again")).to_contain_text("judge the reply alone")
                    no_sideways_scroll(page)
                self.look("rating")
                answer_page(page, good=is_good(shown_reply(page)))
            else:
                break
            yield
        done = [int(text.split()[0]) for text in counts]
        assert done == sorted(done)
        assert len({text.split(" of ")[1] for text in counts}) == 1, "the total never changes"
        assert sorted(set(done)) == list(range(max(done) + 1)), "checks are counted like all other screens"


def test_twenty_people_walk_through_everything_at_the_same_time(
    serve: Callable[..., Any], browser: Browser, palaver: Callable[..., Any], tmp_path: Path
) -> None:
    server = serve(TEXT)
    walkers = [Walker(browser, server.url, name) for name in WALKERS]
    others = [f"p{number}" for number in range(PEOPLE - len(walkers))]
    with ThreadPoolExecutor(len(others)) as pool:
        codes = pool.map(lambda person: take_part(server.url, person), others)
        walking = [walker.walk() for walker in walkers]
        while walking:  # a page each, in turn
            walking = [walk for walk in walking if next(walk, "at the end") is None]
        given = [*codes, *(walker.code for walker in walkers)]

    assert len(set(given)) == PEOPLE, "everybody has a code, and a different one"
    kinds = {"consent", "instructions", "training", "feedback", "rating", "survey", "end"}
    for walker in walkers:
        assert kinds <= walker.seen
        assert walker.problems == []
        walker.context.close()
    place = select(screen.c.taken, screen.c.target).where(screen.c.kind == "main")
    status = select(assignment.c.status, func.count().label("n")).group_by(assignment.c.status)
    with server.database.reading() as connection:
        people = connection.execute(select(rater.c.state, rater.c.code, rater.c.checks_failed)).all()
        places = connection.execute(place).all()
        counts = {row.status: row.n for row in connection.execute(status)}
        n_answers = connection.execute(select(func.count()).select_from(answer)).scalar_one()
    assert {(person.state, person.checks_failed) for person in people} == {("done", 0)}
    assert sorted(given) == sorted(person.code for person in people)
    assert places == [(PEOPLE - 1, PEOPLE - 1)] * N_ITEMS, "nobody lost, nobody surplus"
    assert set(counts) == {"done"}
    assert n_answers == 4 * counts["done"], "two replies, two questions"

    exported = palaver("study", "export", "study.toml", "--out", "ratings.csv")
    assert exported.code == 0, exported.err
    ratings = pl.read_csv(tmp_path / "ratings.csv")
    assert ratings.height == 4 * (PEOPLE - 1) * N_ITEMS
    assert ratings["rater"].n_unique() == PEOPLE
    analysed = palaver("study", "analyse", "ratings.csv", "--study", "study.toml", "--out", "results")
    assert analysed.code == 0, analysed.err
    assert "listener" in analysed.out
    assert (tmp_path / "results" / "report.html").exists()
