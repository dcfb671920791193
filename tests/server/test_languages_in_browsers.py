"""A study in several languages in a real browser: one answer whatever the language, and right to left."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from visits import accessible, click_go, no_sideways_scroll, turned

from palaver.server.export import frames, rater_lines

STUDY = """
name = "tea"
title = "Tea"
instructions = "Read the reply."
layout = "joint"
raters_per_item = 9
consent = "You read."
comments = true
[[survey]]
name = "age"
text = "How old are you?"
options = ["young", "old"]
[[questions]]
criterion = "kind"
text = "What is it?"
scale = { kind = "choice", options = ["answer", "question"] }
[[questions]]
criterion = "good"
text = "How good is it?"
scale = { kind = "likert", low = 1, high = 3, labels = ["bad", "good"] }
[[questions]]
criterion = "fits"
text = "Does it fit?"
scale = { kind = "binary" }
[[questions]]
criterion = "warmth"
text = "How warm is it?"
scale = { kind = "slider", labels = ["cold", "warm"] }
[[items]]
id = "one"
[items.context]
id = "c"
turns = [{ speaker = "A", text = "Tea?" }, { speaker = "B", text = "هل تريد شايًا؟" }]
[[items.outputs]]
system = "quagga"
text = "Yes, please."

[translations.de]
title = "Tee"
instructions = "Lesen Sie die Antwort."
consent = "Sie lesen."
questions.kind = { text = "Was ist es?", labels = ["Antwort", "Frage"] }
questions.good = { text = "Wie gut ist es?", labels = ["schlecht", "gut"] }
questions.fits = { text = "Passt es?" }
questions.warmth = { text = "Wie warm ist es?", labels = ["kalt", "warm"] }
survey.age = { text = "Wie alt sind Sie?", options = ["jung", "alt"] }

[translations.ar]
title = "شاي"
instructions = "اقرأ الرد."
consent = "ستقرأ."
questions.kind = { text = "ما هو؟", labels = ["جواب", "سؤال"] }
questions.good = { text = "ما مدى جودته؟", labels = ["سيئ", "جيد"] }
questions.fits = { text = "هل هو مناسب؟" }
questions.warmth = { text = "ما مدى دفئه؟", labels = ["بارد", "دافئ"] }
survey.age = { text = "كم عمرك؟", options = ["شاب", "كبير"] }
"""


def walk(page: Page, url: str, look: Callable[[Page], None] = lambda page: None) -> list[str]:
    """Answer everything with the first choice and the middle of the line; the headings on the way."""
    page.goto(url)
    headings = [page.locator("h1").inner_text()]
    look(page)
    click_go(page)
    headings.append(page.locator("h1").inner_text())
    look(page)
    click_go(page)
    expect(page.locator(".slider input[type=range]")).to_be_visible()
    for question in page.locator("fieldset.question").all():
        question.locator(".choice").first.click()
    page.locator(".slider input[type=number]").fill("50")
    look(page)
    headings.append(page.locator("h2").last.inner_text())
    before = page.evaluate("() => { const d = rate.dataset; return `${d.assignment}:${d.position}` }")
    page.locator("#go").click()
    turned(page, before)
    look(page)
    page.locator(".choice").first.click()
    click_go(page)
    headings.append(page.locator("h1").inner_text())
    look(page)
    return headings


def test_raters_of_two_languages_give_the_same_answers(browser: Browser, serve: Callable[..., Any]) -> None:
    server = serve(STUDY)
    for locale, expected in (
        ("de-AT", ["Bevor Sie beginnen", "Tee", "Antwort", "Vielen Dank!"]),
        ("pt-BR", ["Before you begin", "Tea", "Reply", "Thank you!"]),
    ):
        context = browser.new_context(locale=locale)
        assert walk(context.new_page(), server.url) == expected
        context.close()
    answers: dict[str, dict[str, str]] = {}
    for frame in frames(server.database):
        for row in frame.iter_rows(named=True):
            answers.setdefault(row["language"], {})[row["criterion"]] = row["value"]
    given = {"kind": "answer", "good": "1", "fits": "1", "warmth": "50"}
    assert answers == {"de": given, "en": given}
    people = [json.loads(line) for line in rater_lines(server.database)]
    assert [(person["language"], person["survey"]) for person in people] == [
        ("de", {"age": "young"}),
        ("en", {"age": "young"}),
    ]


@pytest.mark.parametrize("width", [1280, 390])
def test_arabic_goes_from_right_to_left(width: int, browser: Browser, serve: Callable[..., Any]) -> None:
    server = serve(STUDY)
    context = browser.new_context(locale="ar", viewport={"width": width, "height": 844})

    def look(page: Page) -> None:
        accessible(page)
        no_sideways_scroll(page)
        assert page.evaluate("getComputedStyle(document.body).direction") == "rtl"
        if page.locator(".bubble").count():  # each text keeps its own direction
            directions = "all => all.map((text) => getComputedStyle(text).direction)"
            assert page.locator(".bubble, .judged .text").evaluate_all(directions) == ["ltr", "rtl", "ltr"]

    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    assert walk(page, server.url, look)[1] == "شاي"
    assert problems == []
    context.close()
