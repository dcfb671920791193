"""Two real browsers through an annotated conversation; one reloads twice and loses its network once."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from chatting import ANNOTATED, WITH_BOT, is_talking, meet
from playwright.sync_api import Browser, BrowserContext, Page, WebSocketRoute, expect
from test_chat import put
from visits import accessible, no_sideways_scroll

from palaver.server.chat_log import ChatLog, Signal
from palaver.server.chat_records import conversations_of, ratings_of

TURNS = 20
OWN = {"sentiment": "Happy", "knowledge_source": "FS1"}
THEIRS = {"turn_rating": "4"}


class Cable:
    """What a page's WebSocket goes through, and what can be pulled out."""

    def __init__(self, context: BrowserContext) -> None:
        self.is_cut = False
        self._ends: list[WebSocketRoute] = []
        context.route_web_socket("**/chat/socket", self._plug_in)

    def _plug_in(self, socket: WebSocketRoute) -> None:
        if self.is_cut:
            socket.close(code=1012)
        else:
            self._ends += [socket, socket.connect_to_server()]

    def cut(self) -> None:
        self.is_cut = True
        for end in self._ends:
            end.close(code=1012)
        self._ends.clear()


def come_in(page: Page, url: str) -> None:
    page.goto(url)
    while page.locator("#chat").count() == 0:
        page.locator("button.go").first.click()
        page.wait_for_load_state()


def annotate(page: Page) -> None:
    """Answer whatever is asked about the messages, as somebody with a mouse does."""
    while page.locator("form.about").count():
        form = page.locator("form.about").first
        for question in form.locator(".question").all():
            question.locator("label.choice").nth(1).click()
        before = page.locator("form.about").count()
        form.locator(".go").click()
        expect(page.locator("form.about")).to_have_count(before - 1)


def say(page: Page, text: str, turns: int) -> None:
    expect(page.locator("#send")).to_be_enabled()
    page.fill("#text", text)
    page.keyboard.press("Enter")
    expect(page.locator(".message")).to_have_count(turns)


def test_two_browsers_hold_and_annotate_a_conversation(
    browser: Browser, tmp_path: Path, chat_server: Callable[[str], Any]
) -> None:
    url = f"sqlite:///{tmp_path / 'chat.db'}"
    database = put(url, ANNOTATED.format(fewest=TURNS))
    server = chat_server(url)
    wide = browser.new_context(viewport={"width": 1280, "height": 900})
    phone = browser.new_context(viewport={"width": 390, "height": 844})
    cable = Cable(wide)
    ann, bob = wide.new_page(), phone.new_page()
    problems: list[str] = []
    for page in (ann, bob):
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.set_default_timeout(20_000)
    come_in(ann, server.url)
    expect(ann.locator("#wait")).to_be_visible()
    accessible(ann)
    come_in(bob, server.url)
    expect(ann.locator("#say")).to_be_visible()
    expect(bob.locator("#say")).to_be_visible()
    expect(ann.locator("#partner")).to_have_text("Your partner is here. Either of you may begin.")
    expect(ann.locator("#text")).to_be_focused()
    expect(ann.locator("#reading")).to_contain_text("FS1")
    for number in range(TURNS):
        speaker, listener = (ann, bob) if number % 2 == 0 else (bob, ann)
        annotate(speaker)
        say(speaker, f"message {number}", number + 1)
        if number == 13:  # said while the other one had no network
            expect(ann.locator("#line")).to_contain_text("The connection is lost")
            cable.is_cut = False
        expect(listener.locator(".message")).to_have_count(number + 1)
        if number == 0:
            speaker.locator("#text").press_sequentially("and")
            expect(listener.locator("#typing")).to_have_text("Your partner is typing…")
            speaker.fill("#text", "")
        if number == 1:
            expect(ann.locator("form.about").first).to_be_visible()
            for page in (ann, bob):
                accessible(page)
                no_sideways_scroll(page)
            bob.click("#drawer")
            expect(bob.locator("#reading")).to_be_visible()
            bob.locator("#reading nav button", has_text="FS3").click()
            expect(bob.locator("#read-FS3")).to_be_in_viewport()
            expect(bob.locator("#log")).to_be_hidden()
            accessible(bob)
        if number == 2:  # somebody who reads is told that the partner wrote
            expect(bob.locator("#drawer")).to_have_text("Back to the conversation (1 new)")
            bob.click("#drawer")
            expect(bob.locator("#log")).to_be_visible()
        if number in (4, 9):
            ann.reload()
            expect(ann.locator(".message")).to_have_count(number + 1)
            expect(ann.locator(".theirs .answers").first).to_have_text("Not Good")  # as it was chosen
        if number == 12:
            cable.cut()
    expect(bob.locator(".mine .mark").first).to_contain_text("✓")
    annotate(ann)
    annotate(bob)
    ann.click("#submit")
    for page in (ann, bob):
        expect(page.locator("#verdict form")).to_be_visible()
        accessible(page)
        page.locator("#verdict label", has_text="Excellent").click()
        page.locator("#verdict .go").click()
        expect(page.locator("h1")).to_have_text("Thank you!")
    (held,) = conversations_of(database)
    assert [turn.text for turn in held.dialogue.turns] == [f"message {n}" for n in range(TURNS)]
    assert all(turn.labels["sentiment"] == "Sad" and turn.knowledge for turn in held.dialogue.turns)
    assert all(turn.labels["turn_rating"] == "Not Good" for turn in held.dialogue.turns)
    assert held.ending == "complete"
    assert problems == []
    database.close()


def test_somebody_goes_on_for_somebody_who_left(
    browser: Browser, tmp_path: Path, chat_server: Callable[[str], Any]
) -> None:
    url = f"sqlite:///{tmp_path / 'chat.db'}"
    database = put(url, ANNOTATED.format(fewest=2))
    server = chat_server(url)
    ann, bob = meet(server.url)
    ann.say("hello")
    ann.ask(type="answer", turn=0, answers=OWN)
    bob.wait(lambda view: view["n_turns"] == 1)
    bob.ask(type="answer", turn=0, answers=THEIRS)
    bob.say("I have to go")
    bob.http.post("/study/leave", data={"csrf": bob.token})
    ann.wait(lambda view: view["state"] == "alone")
    cid = browser.new_context(viewport={"width": 390, "height": 844}).new_page()
    come_in(cid, server.url)
    expect(cid.locator(".message")).to_have_count(2)
    expect(cid.locator("#log")).to_contain_text("Go on from here.")
    expect(cid.locator("#reading")).to_be_attached()
    assert ann.wait(is_talking)["changes"] == [{"n": 2, "who": "partner"}]
    assert ann.ask(type="answer", turn=1, answers=THEIRS)["type"] == "done"
    ann.say("are you there?")
    # Nothing is asked about what they neither said nor were told.
    expect(cid.locator(".message:has(form.about)")).to_have_text(re.compile("are you there"))
    annotate(cid)
    say(cid, "yes", 4)
    expect(cid.locator(".mine form.about")).to_be_visible()
    annotate(cid)
    expect(cid.locator(".mine .answers")).to_contain_text("Sad")
    database.close()


def test_a_message_waits_for_the_network(
    browser: Browser, tmp_path: Path, chat_server: Callable[[str], Any]
) -> None:
    """The server goes away while somebody writes: the page keeps the message, and it arrives once."""
    url = f"sqlite:///{tmp_path / 'chat.db'}"
    database = put(url, WITH_BOT.format(fewest=2))
    server = chat_server(url)
    page = browser.new_context(viewport={"width": 390, "height": 844}).new_page()
    come_in(page, server.url)
    expect(page.locator("#send")).to_be_enabled()
    page.fill("#text", "are you there?")
    server.stop()
    expect(page.locator("#line")).to_contain_text("The connection is lost")
    expect(page.locator("#send")).to_be_disabled()
    server.start()
    expect(page.locator("#send")).to_be_enabled(timeout=20_000)
    page.keyboard.press("Enter")
    expect(page.locator(".mine .mark")).to_contain_text("saved")
    expect(page.locator("#typing")).to_contain_text("The chatbot is typing")
    log = ChatLog(database)
    piece = {"type": "piece", "room": 1, "turns": 1, "side": 0, "text": "I am here"}
    log.tell([Signal(1, "", piece)])
    expect(page.locator(".piece .bubble")).to_have_text("I am here …")
    page.reload()  # pieces are not kept: the bot is typing, and then says it
    expect(page.locator(".message")).to_have_count(1)
    expect(page.locator("#typing")).to_contain_text("The chatbot is typing")
    log.tell([Signal(1, "", piece)])
    expect(page.locator(".piece .bubble")).to_have_text("I am here …")
    log.run([lambda host, now: host.reply(1, "parrot", 1, "I am here and I have many words", now)])
    expect(page.locator(".theirs .bubble")).to_have_text("I am here and I have many words")
    expect(page.locator(".piece")).to_have_count(0)
    page.click("#submit")
    page.locator("#verdict label").nth(4).click()
    page.locator("#verdict .go").click()
    expect(page.locator("h1")).to_have_text("Thank you!")
    (held,) = conversations_of(database)
    texts = [turn.text for turn in held.dialogue.turns]
    assert texts == ["are you there?", "I am here and I have many words"]
    assert [row.value for row in ratings_of(database)] == [5.0]
    database.close()


def test_two_bots_side_by_side(browser: Browser, tmp_path: Path, chat_server: Callable[[str], Any]) -> None:
    url = f"sqlite:///{tmp_path / 'chat.db'}"
    text = WITH_BOT.format(fewest=3).replace('["parrot"]', '["parrot", "magpie"]\ncompare = "side by side"')
    text += '[[about_pair]]\ncriterion = "better"\ntext = "Which?"\nscale = { kind = "pairwise" }\n'
    database = put(url, text)
    server = chat_server(url)
    page = browser.new_context(viewport={"width": 390, "height": 844}).new_page()
    come_in(page, server.url)
    expect(page.locator("#send")).to_be_enabled()
    page.fill("#text", "hello")
    page.keyboard.press("Enter")
    expect(page.locator(".mine .mark")).to_contain_text("saved")
    log = ChatLog(database)
    bots = log.host.lobby.rooms[1].bots
    log.run([lambda host, now, b=b, n=n: host.reply(1, b, 1, f"word {n}", now) for n, b in enumerate(bots)])
    expect(page.locator(".side-1 .bubble")).to_have_text("word 1")
    accessible(page)
    no_sideways_scroll(page)
    page.click("#submit")
    expect(page.locator("#verdict form")).to_have_count(3)
    accessible(page)
    for place, choice in enumerate((4, 1, 0)):
        form = page.locator("#verdict form").first
        form.locator("label.choice").nth(choice).click()
        form.locator(".go").click()
        if place < 2:
            expect(page.locator("#verdict form")).to_have_count(2 - place)
    expect(page.locator("h1")).to_have_text("Thank you!")
    given = {(row.criterion, row.system, row.against): row.value for row in ratings_of(database)}
    assert given == {
        ("rating", bots[0], None): 5.0,
        ("rating", bots[1], None): 2.0,
        ("better", bots[0], bots[1]): "win",
    }
    database.close()
