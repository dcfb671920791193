"""Safe Markdown: the parser's tokens that are on a list become tags, everything else is shown as text.

Nothing is sanitised afterwards. HTML is off in the parser, every piece of text is escaped, and attributes are
made here, so no tag, address or script of the text's own can get through. What would load something is up to
the caller (`Embed`); where it declines, the source is shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import escape

LONGEST = 50_000
"""Characters up to which a text is parsed: some texts take the square of their length."""
_PARSER = (
    MarkdownIt("commonmark", {"html": False, "maxNesting": 30})
    .enable(["table", "strikethrough"])
    # Definitions of references vanish from a text, and TOML texts are often indented: neither is wanted.
    .disable(["html_block", "html_inline", "autolink", "reference", "code"])
)
_TAGS = {
    "paragraph": "p", "blockquote": "blockquote", "bullet_list": "ul", "list_item": "li",
    "thead": "thead", "tbody": "tbody", "tr": "tr", "strong": "strong", "em": "em", "s": "s",
}  # fmt: skip
_ADDRESS = re.compile(r"(https?://|mailto:)[^\s\"'<>]+", re.IGNORECASE)
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:|[/\\]{2}", re.IGNORECASE)
_PARSER.validateLink = lambda url: not _SCHEME.match(url) or bool(_ADDRESS.match(url))  # type: ignore[method-assign]


@dataclass(frozen=True, slots=True)
class Embedded:
    """Something that a text wants shown: `![label](source)`."""

    source: str
    label: str

    @property
    def is_foreign(self) -> bool:
        """Whether it is an address, not a file's name."""
        return bool(_SCHEME.match(self.source))


Embed = Callable[[Embedded], str | None]
"""The HTML that shows something; None to show its source."""


def embedded(text: str) -> list[Embedded]:
    """What a Markdown text wants shown, in its order."""
    if "![" not in text or len(text) > LONGEST:
        return []
    inline = [token.children or [] for token in _tokens(text) if token.type == "inline"]
    return [_embedded(token) for tokens in inline for token in tokens if token.type == "image"]


def render(text: str, embed: Embed = lambda _: None, *, links: bool = False, level: int = 2) -> str:
    """Markdown as HTML. Without `links` an address is shown and cannot be clicked.

    Headings begin at `level`, and none is more than one below the one before.
    """
    if len(text) > LONGEST:
        return f"<p>{escape(text)}</p>"
    return "".join(_Writer(embed, links, level).blocks(_tokens(text)))


@lru_cache(maxsize=1024)
def _tokens(text: str) -> tuple[Token, ...]:
    return tuple(_PARSER.parse(text.strip()))


def _embedded(token: Token) -> Embedded:
    label = "".join(child.content for child in token.children or [])
    return Embedded(unquote(str(token.attrs["src"])), label)


class _Writer:
    def __init__(self, embed: Embed, links: bool, level: int) -> None:
        self._embed, self._links = embed, links
        self._first_level, self._level = level, level - 1
        self._targets: list[str] = []

    def blocks(self, tokens: Sequence[Token]) -> Iterator[str]:
        for token in tokens:
            if token.hidden:  # the paragraph of an item in a tight list
                continue
            kind, _, end = token.type.rpartition("_")
            if kind in _TAGS:
                yield f"<{_TAGS[kind]}>" if end == "open" else f"</{_TAGS[kind]}>"
            elif kind == "heading":
                yield self._heading(token)
            elif kind == "ordered_list":
                start = int(token.attrs.get("start", 1))
                yield "</ol>" if end == "close" else "<ol>" if start == 1 else f'<ol start="{start}">'
            elif kind == "table":  # it scrolls by itself, by keyboard too
                yield '<div class="wide" tabindex="0"><table>' if end == "open" else "</table></div>"
            elif kind in ("th", "td"):
                yield _cell(token) if end == "open" else f"</{kind}>"
            elif token.type == "hr":
                yield "<hr>"
            elif token.type == "fence":
                yield f'<pre class="wide" tabindex="0"><code>{escape(token.content)}</code></pre>'
            elif token.type == "inline":
                yield from self._inline(token.children or [])
            else:
                yield str(escape(token.content))

    def _heading(self, token: Token) -> str:
        if token.nesting < 0:
            return f"</h{self._level}>"
        wanted = self._first_level + int(token.tag[1]) - 1
        self._level = min(wanted, self._level + 1, 6)
        return f"<h{self._level}>"

    def _inline(self, tokens: Sequence[Token]) -> Iterator[str]:
        for token in tokens:
            kind, _, end = token.type.rpartition("_")
            if kind in _TAGS:
                yield f"<{_TAGS[kind]}>" if end == "open" else f"</{_TAGS[kind]}>"
            elif token.type in ("softbreak", "hardbreak"):
                yield "<br>\n"
            elif token.type == "code_inline":
                yield f"<code>{escape(token.content)}</code>"
            elif kind == "link":
                yield self._link(token)
            elif token.type == "image":
                yield self._image(_embedded(token))
            else:
                yield str(escape(token.content))

    def _image(self, image: Embedded) -> str:
        is_in_link = any(map(self._is_link, self._targets))  # an image is a link itself
        shown = None if is_in_link else self._embed(image)
        return shown or str(escape(f"![{image.label}]({image.source})"))

    def _link(self, token: Token) -> str:
        """A link that opens elsewhere and tells nobody where it was; or the address, behind the words."""
        if token.nesting > 0:
            target = str(token.attrs["href"])
            self._targets.append(target)
            if not self._is_link(target):
                return ""
            return f'<a href="{escape(target)}" target="_blank" rel="noopener noreferrer">'
        target = self._targets.pop()
        return "</a>" if self._is_link(target) else str(escape(f" ({target})"))

    def _is_link(self, target: str) -> bool:
        return self._links and bool(_ADDRESS.fullmatch(target))


def _cell(token: Token) -> str:
    scope = ' scope="col"' if token.tag == "th" else ""
    side = str(token.attrs.get("style", "")).removeprefix("text-align:")
    aligned = f' class="{side}"' if side in ("center", "right") else ""
    return f"<{token.tag}{scope}{aligned}>"
