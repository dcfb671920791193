"""The rater's pages in a real browser: whole studies by keyboard, on a phone, accessibility."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, expect
from visits import (
    accessible,
    answer_by_keys,
    click_go,
    fill,
    here,
    no_sideways_scroll,
    open_page,
    press_go,
    turned,
)

from palaver.studies.design import PRESETS, preset_study, preset_text

pytestmark = pytest.mark.usefixtures("no_problems")
Serve = Callable[..., Any]
LONG = "\n".join(
    f'  {{ speaker = "{"user" if n % 2 else "system"}", text = "Turn {n} of a long conversation." }},'
    for n in range(40)
)
FULL = f'''
name = "full"
title = "Everything"
layout = "joint"
raters_per_item = 5
comments = true
consent = "We ask for your consent."
instructions = "Read everything."
[training]
[[training.items]]
[training.items.item]
id = "t"
outputs = [{{ system = "zebra", text = "Hello!" }}, {{ system = "quagga", text = "Bye!" }}]
[[training.items.expected]]
criterion = "good"
system = "zebra"
low = 150
feedback = "Hello is good."
[[survey]]
name = "age"
text = "How old are you?"
options = ["young", "old"]
required = true
[[survey]]
name = "more"
text = "Anything else?"
[completion]
code = "C0DE"
url = "https://app.prolific.com/submissions/complete?cc=C0DE"
[[questions]]
criterion = "good"
text = "How good?"
help = "Beside the standard."
scale = {{ kind = "rank-magnitude" }}
[[questions]]
criterion = "content"
text = "What about it?"
scale = {{ kind = "checkboxes" }}
[[questions]]
criterion = "better"
text = "Which is better?"
scale = {{ kind = "pairwise", ties = false }}
[[items]]
id = "one"
reference = "A standard."
[[items.outputs]]
system = "zebra"
[items.outputs.dialogue]
id = "d1"
turns = [
{LONG}
]
[[items.outputs]]
system = "quagga"
text = "{"A long word: " + "w" * 200}"
'''


PLAIN = [name for name in PRESETS if name != "complete"]
"""Presets without consent and training."""


@pytest.mark.parametrize("name", PLAIN)
def test_a_whole_study_by_keyboard_alone(name: str, serve: Serve, context: BrowserContext) -> None:
    n_items = 2  # each takes seconds in a browser
    server = serve("[[items]]".join(preset_text(name).split("[[items]]")[: 1 + n_items]))
    page = open_page(context, server.url)
    press_go(page)
    pages = 0
    while page.locator("#rate").count():
        answer_by_keys(page)
        pages += 1
        assert pages < 60
    assert page.locator("h1").inner_text() == "Thank you!"
    study = preset_study(name)
    pair = any(q.scale.kind == "pairwise" for q in study.questions)
    outputs = sum(1 if pair else len(item.outputs) for item in study.items[:n_items])
    rows = server.rows()
    assert len(rows) == outputs * len(study.questions)
    assert all(row[3] is not None and row[3] >= 0 for row in rows), "active seconds are recorded"


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1200, "light")])
def test_every_kind_of_page_fits_and_is_accessible(
    width: int, scheme: str, serve: Serve, browser: Browser
) -> None:
    server = serve(FULL)
    context = browser.new_context(
        viewport={"width": width, "height": 640},
        color_scheme=scheme,  # type: ignore[arg-type]
        has_touch=width < 500,
    )
    page = open_page(context, f"{server.url}/?PROLIFIC_PID=p")
    seen = []

    def look() -> None:
        seen.append(here(page))
        no_sideways_scroll(page)
        accessible(page)

    for _ in range(2):  # consent, instructions
        look()
        click_go(page)
    for _ in range(2):  # training, the item
        expect(page.locator("#rate")).to_be_visible()
        look()
        fill(page)
        accessible(page)
        before, training = here(page), page.locator(".progress").inner_text().startswith("Training")
        page.locator("#go").click()
        turned(page, before)
        if training:
            expect(page.locator("h1")).to_have_text("That is right.")
            look()
            click_go(page)
    look()
    page.locator(".choice").first.click()
    click_go(page)
    expect(page.locator("h1")).to_have_text("Thank you!")
    look()
    page.goto(f"{server.url}/nothing")
    look()
    assert len(set(seen)) == len(seen)
    context.close()


@pytest.mark.parametrize("name", PLAIN)
def test_rating_pages_of_presets_on_a_phone(name: str, serve: Serve, browser: Browser) -> None:
    server = serve(preset_text(name, layout="joint"))
    context = browser.new_context(viewport={"width": 360, "height": 640}, has_touch=True, is_mobile=True)
    page = open_page(context, server.url)
    click_go(page)
    expect(page.locator("#rate")).to_be_visible()
    no_sideways_scroll(page)
    accessible(page)
    assert page.locator(".bar").evaluate("b => b.offsetHeight <= innerHeight / 3 + 1")
    before = here(page)
    fill(page)
    page.locator("#go").tap()
    turned(page, before)
    context.close()


def test_a_long_dialogue_scrolls_and_the_question_stays(serve: Serve, context: BrowserContext) -> None:
    text = preset_text("pairwise").replace("turns = [", "turns = [\n" + LONG)
    page = open_page(context, serve(text).url)
    press_go(page)
    boxes = page.locator(".scroll")
    expect(boxes).to_have_count(2)
    assert all(
        box.evaluate("b => b.scrollHeight > b.clientHeight && b.tabIndex === 0") for box in boxes.all()
    )
    boxes.first.focus()
    page.keyboard.press("End")
    page.wait_for_function("() => document.querySelector('.scroll').scrollTop > 50")
    assert boxes.nth(1).evaluate("b => b.scrollTop") == 0
    expect(page.locator("fieldset.question")).to_be_in_viewport()
    expect(page.locator("#go")).to_be_in_viewport()


def test_the_end_of_a_conversation_so_far_shows_and_the_page_is_as_long_as_what_is_on_it(
    serve: Serve, context: BrowserContext
) -> None:
    text = preset_text("snippet").replace("turns = [", "turns = [\n" + LONG)
    page = open_page(context, serve(text).url)
    press_go(page)
    history = page.locator(".material .talk .scroll")
    assert history.evaluate("b => b.scrollTop + b.clientHeight >= b.scrollHeight - 1 && b.scrollTop > 100")
    bar_ends = "() => scrollY + document.querySelector('.bar').getBoundingClientRect().bottom"
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    assert page.evaluate("document.documentElement.scrollHeight") - page.evaluate(bar_ends) < 200
