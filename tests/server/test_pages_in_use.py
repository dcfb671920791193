"""What raters do on their pages in a real browser: reload, lose the network, go back, leave, move sliders."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect
from visits import (
    accessible,
    answer_by_keys,
    click_go,
    here,
    no_sideways_scroll,
    open_page,
    press_go,
    show_in_time,
    turned,
)

from palaver.studies.design import preset_text

pytestmark = pytest.mark.usefixtures("no_problems")
Serve = Callable[..., Any]


def test_a_reload_in_mid_item_resumes(serve: Serve, context: BrowserContext) -> None:
    server = serve(preset_text("rankme"))
    page = open_page(context, server.url)
    press_go(page)
    before = here(page)
    texts = page.locator(".judged .text").all_inner_texts()
    page.locator("input[type=text]").nth(1).fill("77")
    page.reload()
    assert here(page) == before
    assert page.locator(".judged .text").all_inner_texts() == texts, "in the same order"
    expect(page.locator("input[type=text]").nth(1)).to_have_value("77")
    page.close()
    page = open_page(context, server.url)  # a tab that was closed
    assert here(page) == before
    expect(page.locator("input[type=text]").nth(1)).to_have_value("77")
    assert server.rows() == []


def test_an_incomplete_page_is_not_sent(serve: Serve, context: BrowserContext) -> None:
    server = serve(preset_text("rankme"))
    page = open_page(context, server.url)
    press_go(page)
    before = here(page)
    page.locator("input[type=text]").first.fill("77")
    page.locator("#go").click()
    page.locator("input[type=text]").nth(1).fill("-3")
    page.locator("#go").click()
    assert here(page) == before
    assert server.rows() == []


def test_an_answer_given_offline_arrives_once(serve: Serve, context: BrowserContext) -> None:
    server = serve(preset_text("likert"))
    page = open_page(context, server.url)
    press_go(page)
    before = here(page)
    context.set_offline(True)
    page.keyboard.press("4")
    page.keyboard.press("Enter")
    expect(page.locator("#state")).to_contain_text("kept on this device")
    page.keyboard.press("Enter")  # impatience sends nothing twice
    assert page.evaluate("Object.keys(localStorage).length") == 2  # the draft, and what waits
    assert server.rows() == []
    context.set_offline(False)
    turned(page, before)
    assert [row[2] for row in server.rows()] == ["4"]
    assert page.evaluate("Object.keys(localStorage).length") == 0


def test_an_answer_whose_acknowledgement_was_lost_is_sent_after_a_reload_and_is_one_row(
    serve: Serve, context: BrowserContext
) -> None:
    server = serve(preset_text("likert"))

    def lose(route: object) -> None:
        route.fetch()  # type: ignore[attr-defined]
        route.abort()  # type: ignore[attr-defined]

    context.route("**/api/answers", lose)  # before the page is there: one that is may send past a new route
    page = open_page(context, server.url)
    press_go(page)
    before = here(page)
    page.keyboard.press("5")
    page.keyboard.press("Enter")
    expect(page.locator("#state")).to_contain_text("kept on this device")
    context.unroute("**/api/answers")
    page.reload()
    page.wait_for_function("() => Object.keys(localStorage).length === 0")
    assert [row[2] for row in server.rows()] == ["5"]
    turned(page, before)


def test_saved_is_said_only_after_the_server_said_so_and_nothing_jumps(
    serve: Serve, context: BrowserContext
) -> None:
    server = serve(preset_text("likert"))
    held: list[object] = []
    context.route("**/api/answers", lambda route: held.append(route))
    page = open_page(context, server.url)
    press_go(page)
    page.keyboard.press("5")
    top = page.locator("#go").bounding_box()
    page.keyboard.press("Enter")
    expect(page.locator("#state")).to_have_text("Saving…")
    page.locator("#go").click(force=True)
    assert page.locator("#go").bounding_box() == top
    assert server.rows() == []
    page.wait_for_timeout(50)
    assert len(held) == 1
    before = here(page)
    held[0].continue_()  # type: ignore[attr-defined]
    turned(page, before)
    assert len(server.rows()) == 1


def test_a_server_that_fails_is_tried_again(serve: Serve, context: BrowserContext) -> None:
    server = serve(preset_text("likert"))
    failures: list[str] = []

    def fail(route: object) -> None:
        failures.append("503")
        route.fulfill(status=503, body="{}")  # type: ignore[attr-defined]

    context.route("**/api/answers", fail, times=1)
    page = open_page(context, server.url)
    press_go(page)
    before = here(page)
    page.keyboard.press("2")
    page.keyboard.press("Enter")
    turned(page, before)
    assert failures == ["503"]
    assert [row[2] for row in server.rows()] == ["2"]


def test_two_raters_at_once(serve: Serve, browser: Browser) -> None:
    server = serve(preset_text("pairwise"))
    contexts = [browser.new_context() for _ in range(2)]
    pages = [open_page(context, server.url) for context in contexts]
    for page in pages:
        press_go(page)
    for _ in range(2):
        for page in pages:
            answer_by_keys(page)
    for page in pages:
        expect(page.locator("h1")).to_have_text("Thank you!")
    rows = server.rows()
    assert len(rows) == 4
    assert len({row[0] for row in rows}) == 2
    for context in contexts:
        context.close()


SLIDER = preset_text("slider", layout="joint")


def first_slider(context: BrowserContext, url: str) -> tuple[Page, Locator, Locator]:
    page = open_page(context, url)
    press_go(page)
    question = page.locator(".slider").first
    return page, question.locator("input[type=range]"), question.locator("input[type=number]")


@pytest.mark.parametrize("width", [1200, 360])
def test_a_slider_counts_only_when_it_was_moved(width: int, serve: Serve, browser: Browser) -> None:
    server = serve(SLIDER)
    context = browser.new_context(viewport={"width": width, "height": 800}, has_touch=width < 500)
    page, line, number = first_slider(context, server.url)
    before = here(page)
    no_sideways_scroll(page)
    accessible(page)
    expect(number).to_have_value("")
    expect(line).to_have_attribute("aria-valuetext", "not answered yet")
    page.locator("#go").click()
    assert here(page) == before
    assert server.rows() == []
    line.click()  # in the middle, where the hidden thumb stands
    expect(number).to_have_value("50")
    second = page.locator(".slider").nth(1)
    box = second.locator("input[type=range]").bounding_box()
    assert box is not None
    assert box["height"] >= 44, "large enough for a finger"
    page.mouse.click(box["x"] + box["width"] - 2, box["y"] + box["height"] / 2)
    expect(second.locator("input[type=number]")).to_have_value("100")
    accessible(page)
    page.locator("#go").click()
    turned(page, before)
    assert [row[2] for row in server.rows()] == ["50", "100"]
    context.close()


def test_a_slider_by_keys_and_after_a_reload(serve: Serve, context: BrowserContext) -> None:
    server = serve(SLIDER)
    page, line, number = first_slider(context, server.url)
    line.focus()
    page.keyboard.press(" ")
    expect(number).to_have_value("50")
    page.keyboard.press("ArrowRight")
    expect(number).to_have_value("51")
    page.keyboard.press("Home")
    expect(number).to_have_value("0")
    page.keyboard.press("7")  # a digit goes to the number
    page.keyboard.press("3")
    expect(line).to_have_value("73")
    page.reload()
    expect(number).to_have_value("73")
    expect(line).to_have_value("73")
    number.fill("")
    expect(line).to_have_attribute("aria-valuetext", "not answered yet")
    number.fill("101")
    before = here(page)
    page.locator("#go").click()
    assert here(page) == before
    assert server.rows() == []


def test_a_slider_without_scripts_is_a_number(serve: Serve, browser: Browser) -> None:
    server = serve(SLIDER)
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(server.url)
    page.locator(".go").click()
    page.wait_for_selector("#rate")
    assert page.locator("input[type=range]").count() == 0
    for number, value in zip(page.locator("input[type=number]").all(), ("12", "88"), strict=True):
        number.fill(value)
    page.locator("#go").click()
    expect(page.locator(".part")).to_have_text("2 of 3 for this item")
    assert [row[2] for row in server.rows()] == ["12", "88"]
    context.close()


def test_exclusive_boxes_stand_alone(serve: Serve, context: BrowserContext) -> None:
    page = open_page(context, serve(preset_text("likert", layout="joint")).url)
    press_go(page)
    boxes = page.locator("input[type=checkbox]")
    labels = page.locator(".boxes .choice")
    labels.nth(0).click()
    labels.nth(1).click()
    labels.nth(2).click()
    assert [box.is_checked() for box in boxes.all()] == [False, False, True]
    labels.nth(0).click()
    assert [box.is_checked() for box in boxes.all()] == [True, False, False]


def test_without_scripts_the_form_works(serve: Serve, browser: Browser) -> None:
    server = serve(preset_text("likert"))
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(server.url)
    page.locator(".go").click()
    page.wait_for_selector("#rate")
    page.locator(".choice").nth(2).click()
    page.locator("#go").click()
    expect(page.locator(".part")).to_have_text("2 of 3 for this item")
    assert [row[2] for row in server.rows()] == ["3"]
    context.close()


def test_going_back_corrects_the_previous_page(serve: Serve, context: BrowserContext) -> None:
    server = serve(preset_text("likert"))
    page = open_page(context, server.url)
    press_go(page)
    assert page.locator(".back").count() == 0, "there is nothing to go back to"
    first = here(page)
    page.keyboard.press("5")
    page.keyboard.press("Enter")
    turned(page, first)
    second = here(page)
    page.locator(".back").click()
    turned(page, second)
    assert here(page) == first
    expect(page.locator(".notice")).to_contain_text("answered this before")
    assert page.locator(".question input:checked").first.get_attribute("value") == "5"
    page.locator(".question .choice").first.click()
    page.locator("#go").click()
    turned(page, first)
    assert here(page) == second
    values = [(row[1], row[4], row[2]) for row in server.rows()]
    assert [value for *_, value in values] == ["5", "1"]
    assert values[0][:2] == values[1][:2], "a later row for the same output"


def test_leaving_asks_first_and_gives_no_code(serve: Serve, context: BrowserContext) -> None:
    server = serve(preset_text("likert"))
    page = open_page(context, server.url)
    press_go(page)
    page.locator(".again summary").click()
    page.get_by_role("link", name="Leave the study").click()
    accessible(page)
    page.get_by_role("link", name="Stay").click()
    expect(page.locator("#rate")).to_be_visible()
    page.goto(f"{server.url}/study/leave")
    page.get_by_role("button", name="Leave the study").click()
    expect(page.locator("h1")).to_have_text("You have left the study")
    assert page.locator(".code").count() == 0


SHORT_LEASE = """
name = "short"
raters_per_item = 1
lease_minutes = 0.5
questions = [{ criterion = "quality", text = "How good?", scale = { kind = "likert" } }]
items = [{ id = "a", outputs = [{ system = "x", text = "Hello." }] }]
"""


def test_the_waiting_page_counts_down_and_goes_on_by_itself(
    serve: Serve, context: BrowserContext, browser: Browser
) -> None:
    server = serve(SHORT_LEASE)
    holder = open_page(context, server.url)
    press_go(holder)
    other = browser.new_context(viewport={"width": 390, "height": 700})
    other.clock.install()
    page = open_page(other, server.url)
    click_go(page)
    expect(page.locator("h1")).to_have_text("One moment, please")
    expect(page.locator("#left")).to_contain_text("min")
    shown = page.locator("#left").inner_text()
    page.clock.run_for(2000)
    assert page.locator("#left").inner_text() != shown
    accessible(page)
    no_sideways_scroll(page)
    server.app.state.site.study_state.clock = lambda: time.time() + 31  # the first one's lease is over
    show_in_time(page, page.locator("#rate"))
    other.close()


def boxes_of(page: Page, selector: str) -> list[dict[str, float]]:
    """Where the elements stand, and how large they are."""
    return page.locator(selector).evaluate_all("all => all.map(e => e.getBoundingClientRect().toJSON())")


@pytest.mark.parametrize("width", [360, 1200])
def test_eleven_steps_stay_in_one_row_with_the_labels_at_the_ends(
    width: int, serve: Serve, browser: Browser
) -> None:
    scale = '{ kind = "likert", low = 0, high = 10, labels = ["worst", "best"] }'
    server = serve(SHORT_LEASE.replace('{ kind = "likert" }', scale))
    context = browser.new_context(viewport={"width": width, "height": 640})
    page = open_page(context, server.url)
    click_go(page)
    no_sideways_scroll(page)
    accessible(page)
    steps, ends = boxes_of(page, ".choice"), boxes_of(page, ".ends span")
    assert len(steps) == 11
    assert len({step["y"] for step in steps}) == 1
    assert all(step["width"] >= 24 and step["height"] >= 40 for step in steps)
    low, high = ends
    assert abs(low["x"] - steps[0]["x"]) < 2
    assert abs(high["x"] + high["width"] - steps[-1]["x"] - steps[-1]["width"]) < 2
    context.close()


def test_an_open_page_shows_that_somebody_is_there(serve: Serve, context: BrowserContext) -> None:
    server = serve(preset_text("likert"))
    page = open_page(context, server.url)
    press_go(page)
    page.clock.install()
    page.reload()
    with page.expect_response("**/api/alive") as first:
        page.clock.run_for(6_000)
    assert first.value.status == 204
    with page.expect_response("**/api/alive"):
        page.clock.run_for(60_000)


def test_the_steps_of_a_scale_are_equally_wide_beside_a_choice_of_two(serve: Serve, browser: Browser) -> None:
    more = '[[questions]]\ncriterion = "quality"\ntext = "How good is it?"\n'
    more += 'scale = { kind = "likert", low = 1, high = 5 }\n\n[[items]]'
    server = serve(preset_text("pairwise").replace("[[items]]", more, 1))
    for width in (1280, 390):
        page = open_page(browser.new_context(viewport={"width": width, "height": 844}), server.url)
        press_go(page)
        expect(page.locator(".choices.pair .choice").first).to_be_visible()
        steps = page.locator(".steps").first.locator(".choice").all()
        boxes = [step.bounding_box() for step in steps]
        assert len(boxes) == 5
        widths = [round(box["width"]) for box in boxes if box is not None]
        assert max(widths) - min(widths) <= 1, widths
        no_sideways_scroll(page)
