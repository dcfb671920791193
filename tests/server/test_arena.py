"""An arena in a browser: two bots side by side, votes on their replies and at the end, names afterwards."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from test_chat import put
from test_chat_pages import come_in
from visits import accessible, no_sideways_scroll

from palaver import analyse
from palaver.collection.settings import preset_text
from palaver.schema import Reply, Request
from palaver.server.bots import BotRunner
from palaver.server.chat_log import ChatLog
from palaver.server.chat_records import answers_about, conversations_of, ratings_of

TEXT = (
    preset_text("arena")
    .replace('["default", "default-speaker/barista"]', '["parrot", "magpie"]')
    .replace("characters_per_second = 40", "characters_per_second = 100000")
    .replace("per_person = 10", "per_person = 2")
)


class Bot:
    """Says what it hears, once it may; fails when it is asked to."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.may_end = threading.Event()
        self.may_end.set()

    def reply(self, requests: Sequence[Request]) -> list[Reply]:
        return [self.stream(request, lambda piece: None) for request in requests]

    def stream(self, request: Request, say: Callable[[str], None]) -> Reply:
        heard = request.dialogue.turns[-1].text
        if heard == "break":
            raise RuntimeError("out of order")
        say("so far ")
        self.may_end.wait(30)
        say(f"I heard {heard}")
        return Reply(f"so far I heard {heard}")


@pytest.fixture
def bots(tmp_path: Path) -> Iterator[dict[str, Bot]]:
    """Both bots of the collection, at work."""
    database = put(f"sqlite:///{tmp_path / 'chat.db'}", TEXT)
    systems = {name: Bot(name) for name in ("parrot", "magpie")}
    stopping = threading.Event()
    runner = threading.Thread(target=BotRunner(ChatLog(database), systems).run, args=(stopping,))
    runner.start()
    yield systems
    stopping.set()
    for bot in systems.values():
        bot.may_end.set()
    runner.join(20)
    database.close()


def say(page: Page, text: str) -> None:
    expect(page.locator("#say")).to_be_visible()
    expect(page.locator("#send")).to_be_enabled()
    page.fill("#text", text)
    page.keyboard.press("Enter")


def vote(page: Page, label: str) -> None:
    form = page.locator("form.vote")
    form.locator(".choice", has_text=label).click()
    form.locator(".go").click()
    expect(form).to_have_count(0)


def test_two_rounds(
    browser: Browser, tmp_path: Path, bots: dict[str, Bot], chat_server: Callable[[str], Any]
) -> None:
    server = chat_server(f"sqlite:///{tmp_path / 'chat.db'}")
    page = browser.new_context(viewport={"width": 1280, "height": 844}).new_page()
    problems: list[str] = []
    frames: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: frames.append(str(frame))))
    come_in(page, server.url)
    expect(page.locator("#say")).to_be_visible()
    left, right = server.app.state.site.chat.log.host.lobby.rooms[1].bots

    bots[left].may_end.clear()
    say(page, "hello")
    expect(page.locator(".side-1.theirs:not(.piece)")).to_have_text("The right one: so far I heard hello")
    expect(page.locator(".side-0.piece")).to_contain_text("so far …")  # both columns stream
    expect(page.locator("form.vote")).to_have_count(0)
    expect(page.locator("#submit")).to_be_hidden()
    bots[left].may_end.set()
    expect(page.locator("form.vote")).to_be_visible()
    accessible(page)
    no_sideways_scroll(page)
    vote(page, "Right")
    expect(page.locator(".votes")).to_have_text("your vote: Right")
    page.set_viewport_size({"width": 390, "height": 844})
    say(page, "again")
    expect(page.locator("form.vote")).to_be_visible()
    accessible(page)
    no_sideways_scroll(page)
    vote(page, "Both are bad")
    page.reload()
    expect(page.locator(".votes")).to_have_text(["your vote: Right", "your vote: Both are bad"])
    say(page, "last")  # a vote is optional
    expect(page.locator("form.vote")).to_be_visible()
    page.click("#submit")
    expect(page.locator("form.vote")).to_have_count(0)
    expect(page.locator("#verdict form")).to_be_visible()
    accessible(page)
    assert not any(name in frame for frame in frames for name in bots), "no name before the last vote"
    page.locator("#verdict .choice", has_text="Left").click()
    page.locator("#verdict .go").click()
    expect(page.locator("#names li")).to_have_text([f"The left one: {left}", f"The right one: {right}"])
    accessible(page)
    no_sideways_scroll(page)

    page.locator("[data-choose=again]").click()
    say(page, "break")
    expect(page.locator("main")).to_contain_text("Why it ended")
    rows = [
        (row.criterion, row.system, row.against, row.turn, row.value) for row in ratings_of(server.database)
    ]
    assert rows == [
        ("better_reply", left, right, 0, "loss"),
        ("better_reply", left, right, 3, "both bad"),
        ("better", left, right, None, "win"),
    ]
    held = list(conversations_of(server.database))
    told = [answer[1:] for answer in answers_about(server.database, held[0])]
    about = f": {left} (left) or {right}"
    assert told == [
        ("two replies" + about, "better_reply", right),
        ("two replies" + about, "better_reply", "both bad"),
        ("the conversation" + about, "better", left),
    ]
    assert held[0].dialogue.labels["context"] == held[1].dialogue.labels["context"] == "1"
    endings = [conversation.ending for conversation in held]
    assert endings == ["complete", "complete", "failed", "failed"]
    assert problems == []


def test_votes_are_ranked(tmp_path: Path) -> None:
    lines = ["item,system,against,rater,criterion,value,turn"]
    lines += [
        f"{n}|a|b,a,b,p{n},better,{value},{n % 3}" for n, value in enumerate(["win"] * 30 + ["both bad"] * 10)
    ]
    (tmp_path / "votes.csv").write_text("\n".join(lines))
    ranking = analyse(tmp_path / "votes.csv").ranking[0]
    shares = {score.system: score.score for score in ranking.scores}
    assert shares == {"a": 0.875, "b": 0.125}
