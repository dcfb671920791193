"""What all HTML reports share: templates that escape, names and shades in cells, where a page may go."""

from __future__ import annotations

import base64
import hashlib
import itertools
import math
import os
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from palaver.errors import UserError
from palaver.files import write_atomically
from palaver.reports import names, numbers
from palaver.schema import RunRecord


def render(template: str, run: RunRecord, **values: Any) -> str:
    """A page as HTML text; everything in `values` is escaped."""
    return _environment(run.signature).get_template(template).render(run=run, **values)


def _environment(signature: str) -> Environment:
    loader = PackageLoader("palaver.reports")
    environment = Environment(
        loader=loader,
        autoescape=True,  # for every template: none of ours is anything but HTML
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: names.scrub(value) if type(value) is str else value,
    )
    script, _, _ = loader.get_source(environment, "page.js")
    ids = itertools.count(1)
    for filter_name in ("number", "p_value", "percent", "count", "seconds", "statistic", "hundred"):
        environment.filters[filter_name] = getattr(numbers, filter_name)
    environment.filters.update(
        name=name_mark,
        short=lambda text: names.shorten(text, 60),
        first_upper=lambda text: text[:1].upper() + text[1:],
    )
    environment.globals.update(
        some=numbers.some,
        interval=numbers.interval,
        isfinite=math.isfinite,
        heat=heat,
        signature=signature,
        next_id=lambda: f"t{next(ids)}",
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )
    return environment


def write_page(text: str, path: str | Path) -> Path:
    """Write a page as one file."""
    target = Path(path)
    check_target(target)
    with write_atomically(target.resolve()) as file:  # resolved: a link stays a link
        file.write(text)
    return target


def name_mark(name: str, width: int = 36) -> Markup:
    """A name from the data, on its own against the direction of writing; the whole one in `title`."""
    short, whole = names.shorten(name, width), names.clean(name)
    if short == whole:
        return Markup("<bdi>{}</bdi>").format(whole)
    return Markup('<bdi title="{}">{}</bdi>').format(whole, short)


def heat(value: float) -> Markup:
    """Attributes of a table cell that is shaded by a value in -1..1; nothing for an undefined one."""
    if value != value:
        return Markup("")
    kind = "heat below" if value < 0 else "heat"
    return Markup(' class="{}" style="--v:{}"').format(kind, round(100 * min(abs(value), 1.0)))


def check_target(target: Path) -> None:
    """Say what is wrong with the path before the work, not after it."""
    if target.is_dir():
        raise UserError(
            f"the report needs a file name, but {target} is a directory",
            f"give a file in it, for example {target / 'report.html'}",
        )
    if target.exists() and not target.is_file():  # moving a file to /dev/null would replace the device
        raise UserError(f"cannot write {target}: it is not a regular file", "give the name of a file")
    if target.exists() and not os.access(target, os.W_OK):
        raise UserError(f"cannot write {target}: it is write-protected", "choose another name")
