"""A study as owners ask for it: two languages, Markdown, an image, a sound, a question that depends on
another, labels of single turns. Walked on a computer in English and on a phone in German, and exported.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
from playwright.sync_api import Browser, Page, expect
from visits import accessible, click_go, here, no_sideways_scroll, turned

from palaver import analyse
from palaver.server.export import Selection, write_export

STUDY = """
name = "whole"
title = "Two assistants and a picture"
instructions = "Read **both** conversations.\\n\\n- Look at the picture.\\n- Answer about each reply."
consent = "You read and answer."
layout = "joint"
raters_per_item = 2
order = "fixed"
markdown = true
media = { folder = "media" }

[[questions]]
criterion = "quality"
text = "How good is the conversation?"
scale = { kind = "likert", low = 1, high = 5, labels = ["bad", "good"] }
[[questions]]
criterion = "why"
text = "What is wrong with it?"
scale = { kind = "text", min_length = 3 }
shown_if = { criterion = "quality", at_most = 2 }
[[questions]]
criterion = "fits"
text = "Does this reply fit?"
scale = { kind = "binary" }
per = "turn"

[[items]]
id = "picture"
context = "What is in **this** picture?\\n\\n![A red square](red.png)"

[[items.outputs]]
system = "amber"
[items.outputs.dialogue]
id = "a"
turns = [
  { speaker = "user", text = "What do you see?" },
  { speaker = "system", text = "A *red* square:\\n\\n| colour | shape |\\n|---|---|\\n| red | square |" },
  { speaker = "user", text = "Sure?" },
  { speaker = "system", text = "Yes. <script>window.broken = true</script>" },
]
[[items.outputs]]
system = "birch"
[items.outputs.dialogue]
id = "b"
turns = [
  { speaker = "user", text = "What do you see?" },
  { speaker = "system", text = "I like turtles." },
]

[translations.de]
title = "Zwei Assistenten und ein Bild"
instructions = "Lesen Sie **beide** Gespräche."
consent = "Sie lesen und antworten."
questions.quality = { text = "Wie gut ist das Gespräch?", labels = ["schlecht", "gut"] }
questions.why = { text = "Was stimmt daran nicht?" }
questions.fits = { text = "Passt diese Antwort?" }
"""
VISITS = {
    "en-GB": (1280, "Before you begin", "Does this reply fit?", "Thank you!"),
    "de-DE": (390, "Bevor Sie beginnen", "Passt diese Antwort?", "Vielen Dank!"),
}


def red_png(side: int = 40) -> bytes:
    """A red square."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    rows = zlib.compress((b"\0" + b"\xff\0\0" * side) * side)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def choose(page: Page, criterion: str, value: str, place: int, turn: int | None = None) -> None:
    where = f'[data-criterion="{criterion}"][data-position="{place}"]'
    where += f'[data-turn="{turn}"]' if turn is not None else ""
    page.locator(f'{where} .choice:has(input[value="{value}"])').click()


def is_free(page: Page, selector: str) -> bool:
    """Whether something can be pressed at both ends: nothing lies over it or cuts it off."""
    script = """selector => {
      const field = [...document.querySelectorAll(selector)].find((one) => one.checkVisibility());
      const box = field.getBoundingClientRect();
      const middle = (box.top + box.bottom) / 2;
      return [box.left + 4, box.right - 4].every((x) => field.contains(document.elementFromPoint(x, middle)));
    }"""
    return bool(page.evaluate(script, selector))


def walk(page: Page, url: str, look: Callable[[], None]) -> list[str]:
    """From the consent to the thanks; the headings, and the first question about a turn."""
    page.goto(url)
    seen = [page.locator("h1").inner_text()]
    look()
    click_go(page)
    expect(page.locator("main .prose strong, main strong").first).to_be_visible()
    look()
    click_go(page)
    picture = page.locator("img").first
    expect(picture).to_be_visible()
    page.wait_for_function("image => image.naturalWidth === 40", arg=picture.element_handle())
    for place, turns in ((0, (1, 3)), (1, (1,))):
        page.wait_for_selector(f'#rate:has([data-criterion="quality"][data-position="{place}"])')
        why = page.locator(f'[data-criterion="why"][data-position="{place}"]')
        expect(why).to_be_hidden()
        if place == 0:
            legend = page.locator(f'[data-criterion="fits"][data-position="{place}"] legend').first
            seen.append(legend.inner_text().splitlines()[-1])
            expect(page.locator(".bubble table, .text table").first).to_be_visible()
        choose(page, "quality", "5" if place == 0 else "1", place)
        for turn in turns:
            choose(page, "fits", "1" if place == 0 else "0", place, turn)
        if place == 1:
            expect(why).to_be_visible()
            assert is_free(page, "[data-criterion=why] :is(textarea, input)"), "the bar lies over it"
            why.locator("textarea, input").first.fill("Turtles! Schildkröten!")
        look()
        assert is_free(page, "#go"), "the button is cut off"
        if page.locator(f'[data-criterion="quality"][data-position="{place + 1}"]').count() == 0:
            before = here(page)
            page.locator("#go").click()
            turned(page, before)
    seen.append(page.locator("h1").inner_text())
    look()
    return seen


def test_a_study_with_everything(browser: Browser, tmp_path: Path, serve: Callable[..., Any]) -> None:
    (tmp_path / "media").mkdir()
    (tmp_path / "media" / "red.png").write_bytes(red_png())
    server = serve(STUDY)
    for locale, (width, *expected) in VISITS.items():
        context = browser.new_context(locale=locale, viewport={"width": width, "height": 844})
        context.set_default_timeout(30_000)
        page = context.new_page()
        problems: list[str] = []
        page.on("pageerror", lambda error, problems=problems: problems.append(str(error)))
        page.on(
            "console",
            lambda said, problems=problems: problems.append(said.text) if said.type == "error" else None,
        )

        def look(page: Page = page) -> None:
            accessible(page)
            no_sideways_scroll(page)
            assert page.evaluate("window.broken") is None

        assert walk(page, server.url, look) == expected
        assert problems == []
        context.close()
    file = tmp_path / "ratings.parquet"
    assert write_export(server.database, file, Selection()) == 2 * (3 + 3)
    ratings = pl.read_parquet(file)
    for language in ("en", "de"):
        rows = ratings.filter(language=language).select("system", "criterion", "turn", "value").rows()
        assert sorted(rows, key=str) == sorted(
            [
                ("amber", "quality", None, "5"),
                ("amber", "fits", 1, "1"),
                ("amber", "fits", 3, "1"),
                ("birch", "quality", None, "1"),
                ("birch", "fits", 1, "0"),
                ("birch", "why", None, "Turtles! Schildkröten!"),
            ],
            key=str,
        )
    assert analyse(file).ranking
