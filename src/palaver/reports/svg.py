"""A matplotlib figure as inline SVG: small, themed by the page, the same bytes every time, safe names.

matplotlib's file is parsed and written again, because inside a page it would do harm: its `<style>` would
apply to the whole page, its ids would collide with those of the next figure, its colours are fixed and
its fonts are not the page's. Colours of `THEME` become CSS variables, so figures follow dark mode.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Mapping
from xml.etree import ElementTree

import matplotlib
from matplotlib.figure import Figure

from palaver.reports.names import clean, shorten

INK = "#1c1e20"
MUTED = "#5b6168"
LINE = "#d4d7da"
BAND = "#f0f2f4"
ACCENT = "#0072b2"
THEME = {INK: "ink", MUTED: "muted", LINE: "line", BAND: "band", ACCENT: "accent"}
"""Colour while drawing -> name of the CSS variable in the page."""

_SETTINGS = {"svg.fonttype": "none", "svg.hashsalt": "palaver"}
_NO_METADATA = {"Date": None, "Creator": None, "Format": None, "Type": None}
_NAMESPACE = re.compile(r"\{[^}]*\}")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")


def inline_svg(figure: Figure, *, prefix: str, label: str, shorts: Mapping[str, str] | None = None) -> str:
    """`figure` as an `<svg>` element with ids that start with `prefix` and `label` as text alternative.

    `shorts` has the short form of each name; where it stands, the whole name is its tooltip.
    """
    root = ElementTree.fromstring(_save(figure))
    used = _references(root)
    for element in root.iter():
        _tidy(element, prefix, used)
    root[:] = [child for child in root if child.tag != "metadata" and child.find("style") is None]
    _flatten(root)
    whole = {short: clean(name) for name, short in (shorts or {}).items()}
    for text in [*root.iter("text")]:
        full = whole.get(text.text or "")
        if full is not None and full != text.text:
            title = ElementTree.Element("title")
            title.text, title.tail, text.text = full, text.text, None
            text.insert(0, title)
    view = root.get("viewBox", "0 0 1 1")
    width, height = view.split()[2:]
    root.attrib = {"viewBox": view, "width": width, "height": height, "role": "img"}
    root.set("aria-label", shorten(label, 400))
    return ElementTree.tostring(root, encoding="unicode")


def _save(figure: Figure) -> str:
    file = io.StringIO()
    with matplotlib.rc_context(_SETTINGS), warnings.catch_warnings():
        # The browser has fonts for scripts that matplotlib's own font lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support")
        figure.savefig(file, format="svg", metadata=_NO_METADATA, transparent=True)
    return file.getvalue()


def _references(root: ElementTree.Element) -> set[str]:
    """The ids that something in the figure points to; all others are dropped."""
    ids: set[str] = set()
    for element in root.iter():
        for key, value in element.attrib.items():
            if _NAMESPACE.sub("", key) == "href" and value.startswith("#"):
                ids.add(value[1:])
            ids.update(_REFERENCE.findall(value))
    return ids


def _tidy(element: ElementTree.Element, prefix: str, used: set[str]) -> None:
    element.tag = _NAMESPACE.sub("", element.tag)
    attributes = {_NAMESPACE.sub("", key): value for key, value in element.attrib.items()}
    if attributes.get("id") in used:
        attributes["id"] = f"{prefix}-{attributes['id']}"
    else:
        attributes.pop("id", None)
    if attributes.get("transform", "").startswith("rotate(-0 "):
        del attributes["transform"]
    if "d" in attributes:
        attributes["d"] = " ".join(attributes["d"].split())
    if attributes.get("href", "").startswith("#"):
        attributes["href"] = f"#{prefix}-{attributes['href'][1:]}"
    elif "href" in attributes:
        attributes["href"] = "".join(attributes["href"].split())
    for key in ("clip-path", "style"):
        if key in attributes:
            attributes[key] = _REFERENCE.sub(rf"url(#{prefix}-\1)", attributes[key])
    if "style" in attributes:
        attributes["style"] = _themed(attributes["style"])
    element.attrib = attributes
    element.tail = None
    if element.text is not None and not element.text.strip():
        element.text = None


def _themed(style: str) -> str:
    style = re.sub(r"font-family:[^;]*;?\s*", "", style)
    return re.sub(r"#[0-9a-f]{6}\b", lambda m: f"var(--{THEME[m[0]]})" if m[0] in THEME else m[0], style)


def _flatten(element: ElementTree.Element) -> None:
    """Drop empty groups and replace groups that say nothing by what they hold."""
    children: list[ElementTree.Element] = []
    for child in element:
        _flatten(child)
        if child.tag == "g" and not child.attrib:
            children.extend(child)
        elif not (child.tag in ("g", "defs") and len(child) == 0):
            children.append(child)
    element[:] = children
