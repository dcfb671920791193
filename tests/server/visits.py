"""Visits to a served study, in a browser and over HTTP."""

from __future__ import annotations

import re
import time
from html import unescape
from typing import Any

import httpx
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import BrowserContext, ConsoleMessage, Locator, Page


def violations(page: Any) -> list[str]:
    """What axe finds in a page, as far as it keeps somebody out."""
    problems = Axe().run(page).response["violations"]
    grave = [problem for problem in problems if problem["impact"] in ("serious", "critical")]
    return [f"{problem['id']}: {problem['nodes'][0]['html']}" for problem in grave]


def show_in_time(page: Page, place: Locator) -> None:
    """Let the time of a page with a clock of its own pass, some seconds at once, until it shows this."""
    for _ in range(500):
        page.clock.run_for(6000)
        if place.is_visible():
            return
        page.wait_for_timeout(20)
    raise AssertionError(f"the page never showed {place}: {page.locator('main').inner_text()}")


def here(page: Page) -> str:
    """What tells one page from the next."""
    return str(
        page.evaluate(
            "() => { const d = document.getElementById('rate')?.dataset;"
            " return d ? `${d.assignment}:${d.position}` : document.querySelector('h1').textContent }"
        )
    )


def turned(page: Page, before: str) -> None:
    """Wait until the next page is there."""
    page.wait_for_function(
        "(before) => { const d = document.getElementById('rate')?.dataset;"
        " const now = d ? `${d.assignment}:${d.position}` : document.querySelector('h1')?.textContent;"
        " return document.readyState === 'complete' && now && now !== before }",
        arg=before,
    )


def click_go(page: Page) -> None:
    before = here(page)
    page.locator(".go").click()
    turned(page, before)


def no_sideways_scroll(page: Page) -> None:
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= page.viewport_size["width"], here(page)  # type: ignore[index]


def accessible(page: Page) -> None:
    assert violations(page) == [], here(page)


PROBLEMS: list[str] = []
"""What went wrong in a page: errors of scripts, and what the content policy stopped."""


def _listen(message: ConsoleMessage) -> None:
    if message.type == "error" and "Failed to load resource" not in message.text:  # lost on purpose
        PROBLEMS.append(message.text)


def open_page(context: BrowserContext, url: str) -> Page:
    page = context.new_page()
    page.on("pageerror", lambda error: PROBLEMS.append(str(error)))
    page.on("console", _listen)
    page.goto(url)
    return page


def press_go(page: Page) -> None:
    """A page of words by keyboard: the button has the focus, or Tab reaches it."""
    before = here(page)
    for _ in range(20):
        if page.evaluate("document.activeElement.classList.contains('go')"):
            break
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    turned(page, before)


def answer_by_keys(page: Page) -> None:
    """Answer a rating page with digits and Enter alone."""
    kinds = page.eval_on_selector_all(".question", "all => all.map(q => q.dataset.kind)")
    before = here(page)
    for kind in kinds:
        if kind in ("number", "boxes"):  # Enter goes to the next open question, and from the last one sends
            page.keyboard.type("50" if kind == "number" else "1")
            page.keyboard.press("Enter")
        else:  # a digit chooses and goes on by itself
            page.keyboard.press("1")
    if kinds[-1] not in ("number", "boxes"):
        page.keyboard.press("Enter")
    turned(page, before)


def fill(page: Page) -> None:
    for question in page.locator(".question").all():
        if question.get_attribute("data-kind") == "number":
            number = question.locator("input[name]")
            number.fill("50" if number.get_attribute("type") == "number" else "150")
        else:
            question.locator(".choice").first.click()


# --- over HTTP, as a browser without scripts


def is_good(reply: str) -> bool:
    """Whether a reply of the preset `complete` is one of those that are meant to be good."""
    return not re.search(
        "nine nine|rain rain|You said|Your tomatoes|we shall see|You are a bit worried", reply
    )


def take_part(url: str, person: str) -> str:
    """Walk through the study as somebody of Prolific's; the completion code."""
    until = time.monotonic() + 120
    with httpx.Client(base_url=url, follow_redirects=True, timeout=60) as client:
        reply = client.get("/", params={"PROLIFIC_PID": person, "SESSION_ID": f"session of {person}"})
        while time.monotonic() < until:
            assert reply.status_code == 200, reply.text
            page = reply.text
            code = re.search(r'<p class="code"><code>(\w+)</code>', page)
            if code:
                return code[1]
            if 'id="waiting"' in page:
                time.sleep(0.1)
                reply = client.get("/study")
            elif 'class="answered"' in page:
                reply = client.get("/study")
            else:
                action = re.search(r'<form [^>]*action="([^"]+)"', page)
                assert action is not None, page
                reply = client.post(action[1], data=_filled_in(page))
    raise TimeoutError(f"{person} did not come to the end")


def _filled_in(page: str) -> dict[str, str]:
    """The first form of a page: hidden fields, an opinion about a reply, else the first option."""
    form = page[page.index("<form") : page.index("</form>")]
    fields = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', form))
    reply = re.search(r'class="[^"]*judged.*?<p[^>]*>(.*?)</p>', page, re.DOTALL)
    for name, value in re.findall(r'<input type="radio" name="([^"]+)" value="([^"]*)"', form):
        opinion = ("5", "1") if reply and is_good(reply[1]) else ("1", "0")
        if name.startswith("answer:") and value == opinion[0 if name.endswith("quality") else 1]:
            fields[unescape(name)] = value
        elif name.startswith("survey:"):
            fields.setdefault(unescape(name), unescape(value))
    return fields
