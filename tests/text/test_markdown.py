"""Markdown: what is wanted becomes tags, and nothing else can, whatever the text."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.text.markdown import LONGEST, Embedded, embedded, render

ATTACKS = json.loads(Path(__file__).with_name("markdown_attacks.json").read_text(encoding="utf-8"))
BLOCKS = {"p", "pre", "ul", "ol", "li", "blockquote", "hr", "div", "h2", "h3", "h4", "h5", "h6"}
TABLES = {"table", "thead", "tbody", "tr", "th", "td"}
TAGS = {"br", "strong", "em", "s", "code", "a", *BLOCKS, *TABLES}
ATTRIBUTES = {
    "a": {"href", "target", "rel"}, "ol": {"start"}, "th": {"scope", "class"}, "td": {"class"},
    "div": {"class", "tabindex"}, "pre": {"class", "tabindex"},
}  # fmt: skip


class Check(HTMLParser):
    """Reads HTML as a browser would, and complains about whatever is not on the list."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.words = ""
        self.open: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS
        assert {name for name, _ in attrs} <= ATTRIBUTES.get(tag, set())
        for name, value in attrs:
            if name == "href":
                assert value is not None
                assert value.lower().startswith(("http://", "https://", "mailto:"))
            if name == "class":
                assert value in ("wide", "center", "right")
        if tag not in ("br", "hr"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    handle_decl = handle_pi = unknown_decl = handle_comment


@pytest.mark.parametrize("attack", ATTACKS)
def test_attacks_are_text(attack: str) -> None:
    for links in (False, True):
        Check(render(attack, links=links))


pieces = st.sampled_from(
    [
        *ATTACKS,
        *"*_`~#>|[]()!<&\\\"'\n-:",
        "    ",
        "\n\n",
        "1. ",
        "- ",
        "|a|b|\n|-|:-:|\n",
        "```\n",
        "![a](b.png)",
        "[a](https://b.c)",
        "word",
    ]
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(pieces, st.text(max_size=8)), max_size=15), st.booleans(), st.integers(2, 4))
def test_no_text_gets_a_tag_or_an_address_through(parts: list[str], links: bool, level: int) -> None:
    Check(render("".join(parts), links=links, level=level))


@settings(max_examples=40, deadline=None)
@given(st.text(alphabet=st.characters(categories=["L", "N"]), min_size=1))
def test_plain_words_stay_what_they_are(text: str) -> None:
    assert Check(render(text)).words == text


def test_what_is_wanted_becomes_tags() -> None:
    text = "**bold** *soft* ~~gone~~ `x<y`\nnext line\n\n3. three\n4. four\n   - inner\n\n> said\n\n---"
    assert render(text) == (
        "<p><strong>bold</strong> <em>soft</em> <s>gone</s> <code>x&lt;y</code><br>\nnext line</p>"
        '<ol start="3"><li>three</li><li>four<ul><li>inner</li></ul></li></ol>'
        "<blockquote><p>said</p></blockquote><hr>"
    )
    table = render("| a | b |\n|---|--:|\n| 1 | 2 |")
    assert table == (
        '<div class="wide" tabindex="0"><table><thead><tr><th scope="col">a</th>'
        '<th scope="col" class="right">b</th></tr></thead>'
        '<tbody><tr><td>1</td><td class="right">2</td></tr></tbody></table></div>'
    )
    assert render("```py\na < b\n```") == '<pre class="wide" tabindex="0"><code>a &lt; b\n</code></pre>'


def test_owners_links_can_be_clicked_and_others_are_shown() -> None:
    text = "[here](https://a.org/?x=1&y=2)"
    address = "https://a.org/?x=1&amp;y=2"
    link = f'<a href="{address}" target="_blank" rel="noopener noreferrer">here</a>'
    assert render(text, links=True) == f"<p>{link}</p>"
    assert render(text) == f"<p>here ({address})</p>"
    assert render("[here](page.html)", links=True) == "<p>here (page.html)</p>"


def test_nothing_of_a_text_vanishes() -> None:
    assert (
        Check(render("[x]: https://a.org\n    four blanks\n\n<b>x</b>")).words
        == "[x]: https://a.org\nfour blanks<b>x</b>"
    )


def test_headings_never_skip_a_level() -> None:
    assert render("# a\n### b\n## c", level=2) == "<h2>a</h2><h3>b</h3><h3>c</h3>"
    assert render("###### a\n###### b", level=3) == "<h3>a</h3><h4>b</h4>"


def test_what_is_embedded_is_up_to_the_caller() -> None:
    text = "![a **cat**](my%20cat.png) and ![b](https://x.org/b.png)\n\n`![no](code.png)`"
    assert embedded(text) == [Embedded("my cat.png", "a cat"), Embedded("https://x.org/b.png", "b")]
    assert [one.is_foreign for one in embedded(text)] == [False, True]
    shown = render(text, lambda one: None if one.is_foreign else "<b>CAT</b>")
    assert shown == ("<p><b>CAT</b> and ![b](https://x.org/b.png)</p><p><code>![no](code.png)</code></p>")
    assert "CAT" not in render(
        "[![a](b.png)](https://x.org)", lambda _: "CAT", links=True
    )  # no link in a link


def test_a_very_long_text_is_shown_as_it_is() -> None:
    text = "![" * LONGEST
    assert render(text) == f"<p>{text}</p>"
    assert embedded(text) == []
