"""The report as one HTML file."""

from __future__ import annotations

import dataclasses
import os
import re
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType

import pytest

from palaver.errors import UserError
from palaver.reports import render_report, write_report
from palaver.studies.results import Analysis

VOID = {"meta", "br", "link", "img", "input", "hr"}
NAN = float("nan")


class Page(HTMLParser):
    """Every element with its attributes, the text outside of style and script, and whether tags match."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.text: list[str] = []
        self.open: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {k: v or "" for k, v in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {k: v or "" for k, v in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("style", "script"):
            self.text.append(data)

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def words(self) -> str:
        return re.sub(r"\s+", " ", "".join(self.text))


@pytest.fixture(scope="module", params=["make", "hostile", "big", "one_system", "empty"])
def analysis(request: pytest.FixtureRequest, sample: ModuleType) -> Analysis:
    made: Analysis = getattr(sample, request.param)()
    return made


@pytest.fixture(scope="module")
def html(analysis: Analysis) -> str:
    return render_report(analysis)


@pytest.fixture(scope="module")
def page(html: str) -> Page:
    return Page(html)


@pytest.fixture(scope="module")
def plain(sample: ModuleType) -> Page:
    return Page(render_report(sample.make()))


def test_nothing_is_fetched(html: str, page: Page) -> None:
    for tag, attributes in page.elements:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base", "form")
        assert "src" not in attributes
        if "href" in attributes and tag != "a":
            assert attributes["href"].startswith("#")
        assert "url(" not in attributes.get("style", "").replace("url(#", "")
    style = html[html.index("<style>") : html.index("</style>")]
    assert "@import" not in style
    assert "url(" not in style
    policy = next(m["content"] for m in page.all("meta") if "http-equiv" in m)
    assert "default-src 'none'" in policy


def test_the_policy_lets_only_our_script_run(html: str, page: Page) -> None:
    import base64
    import hashlib

    assert len(page.all("script")) == 1
    script = html[html.index("<script>") + len("<script>") : html.rindex("</script>")]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in next(
        m["content"] for m in page.all("meta") if "http-equiv" in m
    )


def test_links_ids_and_labels_hold(page: Page) -> None:
    ids = [a["id"] for _, a in page.elements if "id" in a]
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"[a-z0-9-]+", i) for i in ids)
    for _, attributes in page.elements:
        if attributes.get("href", "").startswith("#"):
            assert attributes["href"][1:] in ids
        if "aria-labelledby" in attributes:
            assert attributes["aria-labelledby"] in ids
    outside = [a["href"] for a in page.all("a") if not a["href"].startswith("#")]
    assert all(href.startswith(("https://doi.org/", "https://aclanthology.org/")) for href in outside)


def test_tables_and_figures_can_be_read_aloud(page: Page) -> None:
    assert page.all("html")[0]["lang"] == "en"
    assert all("scope" in th for th in page.all("th"))
    assert all(svg.get("role") == "img" and svg.get("aria-label") for svg in page.all("svg"))
    assert all("aria-labelledby" in table for table in page.all("table"))
    assert len(page.all("h1")) == 1


def test_every_table_and_figure_carries_the_signature(analysis: Analysis, page: Page) -> None:
    n = page.words.count(f"run {analysis.run.signature}")
    assert n >= len(page.all("figcaption")) == len(page.all("table")) + len(page.all("svg"))
    assert str(analysis.run) in page.words or "\x00" in str(analysis.reading)


def test_same_analysis_same_bytes(analysis: Analysis, html: str) -> None:
    if len(analysis.raters) < 100:
        assert render_report(analysis) == html


def test_hostile_names_are_text_only(sample: ModuleType) -> None:
    """No element and no attribute comes from the data: the tags are those of a harmless report."""
    page, harmless = Page(render_report(sample.hostile())), Page(render_report(sample.make()))
    assert {tag for tag, _ in page.elements} <= {tag for tag, _ in harmless.elements} | {"title"}
    known = {key for _, attributes in harmless.elements for key in attributes} | {"title"}
    assert {key for _, attributes in page.elements for key in attributes} <= known
    assert not any(key.startswith("on") for key in known)
    assert "<script>alert(1)</script>" in page.words
    assert '"><img src=x onerror=alert(1)>' in page.words
    assert "{{ 7*7 }}" in page.words
    whole = [a["title"] for tag, a in page.elements if "title" in a]
    assert any(w.startswith("a-system-with") and w.endswith("v2") and len(w) > 400 for w in whole)


def test_a_hostile_report_is_valid_utf8_without_control_characters(
    sample: ModuleType, tmp_path: Path
) -> None:
    text = write_report(sample.hostile(), tmp_path / "r.html").read_bytes().decode()
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\u202e]", text)


def test_the_answer_comes_first(plain: Page) -> None:
    words = plain.words
    order = ["The answer", "Best first", "2.–4. Sheffield NLP", "; bootstrap over items, 95%", "ICC2k"]
    order += ["Moderate to good (Koo & Li 2016)", "Do the raters agree?", "Do the criteria go together?"]
    order += ["How were the systems rated?", "Who rated, and how?", "What was read", "Run record"]
    body = words[words.index("Skip to the answer") + len("Skip to the answer") :]
    body = body[body.index("Run record") + len("Run record") :]  # after the table of contents
    places = [body.index(part) for part in order]
    assert places == sorted(places)


def test_every_card_has_means_with_intervals_and_what_they_cannot_show(sample: ModuleType) -> None:
    base = sample.make()
    row = base.ranking[0]
    why = "won all 12 comparisons: the interval cannot show how sure this is"
    first, second = row.scores[:2]
    scores = (dataclasses.replace(first, low=first.score, high=first.score, reason=why), *row.scores[1:])
    quoted = [dataclasses.replace(r, headline_reason="all judged all") for r in base.agreement if r.headline]
    ranking = (dataclasses.replace(row, scores=scores), *base.ranking[1:])
    words = Page(render_report(dataclasses.replace(base, ranking=ranking, agreement=tuple(quoted)))).words
    assert f"1. {first.system} {first.score:.2f} –" in words
    assert f"{second.system} {second.score:.2f} [" in words
    assert words.count(f"{first.system}: {why}") == 2  # on the card and in the section
    assert "informativeness, naturalness, quality, facts: all judged all." in words


def test_disagreement_undefined_and_left_out_are_shown(plain: Page) -> None:
    assert "Caution. The ranking methods disagree" in plain.words
    assert "apart by bootstrap over items, but not by TrueSkill" in plain.words
    assert "undefined: more than two raters" in plain.words
    assert "undefined: one choice only" in plain.words
    assert "undefined: no two systems were compared by one rater" in plain.words
    assert "value outside the scale12" in plain.words.replace(" 12", "12")
    assert "3 items with fewer than two ratings" in plain.words
    assert "The 30 raters with most ratings, of 40." in plain.words
    assert " nan" not in plain.words


def test_choices_are_shown_by_system(plain: Page) -> None:
    assert "addedmissingok" in plain.words
    assert "--v:80" in [td.get("style", "") for td in plain.all("td")]


def test_choices_are_not_drawn_a_second_time(sample: ModuleType) -> None:
    base = sample.make()
    both = dataclasses.replace(base.criteria[0], choices=base.criteria[-1].choices)
    only = dataclasses.replace(base, criteria=(both,), ranking=(), rater_matrices=())
    labels = [svg["aria-label"] for svg in Page(render_report(only)).all("svg")]
    assert len(labels) == 1
    assert labels[0].startswith("Heatmap of how each of 30 raters")


def test_undefined_correlation_gives_its_reason(sample: ModuleType) -> None:
    base = sample.make()
    row = dataclasses.replace(base.correlation[0], value=NAN, p=NAN, low=NAN, high=NAN, reason="no spread")
    page = Page(render_report(dataclasses.replace(base, correlation=(row,))))
    assert "undefined: no spread" in page.words


def test_one_system_and_nothing_at_all(sample: ModuleType) -> None:
    assert "nothing to compare" in Page(render_report(sample.one_system())).words
    words = Page(render_report(sample.empty())).words
    assert "there is no answer" in words
    assert "Nothing was left out." in words


def test_more_raters_than_can_be_shown_are_capped(sample: ModuleType) -> None:
    base = sample.make(n_raters=40)
    raters = tuple(r.rater for r in base.raters)
    values = tuple((0.5,) * 40 for _ in raters)
    wide = dataclasses.replace(base.rater_matrices[0], raters=raters, values=values)
    words = Page(render_report(dataclasses.replace(base, rater_matrices=(wide,)))).words
    assert "The 30 raters with most ratings, of 40." in words


def test_sixty_systems_and_five_hundred_raters(sample: ModuleType, tmp_path: Path) -> None:
    analysis = sample.big()
    path = write_report(analysis, tmp_path / "report.html")
    assert path.stat().st_size < 3_000_000
    words = Page(path.read_text(encoding="utf-8")).words
    assert "52 more systems" in words
    assert "worker-499" in words


def test_missing_folders_are_made(sample: ModuleType, tmp_path: Path) -> None:
    path = write_report(sample.empty(), tmp_path / "a" / "b" / "report.html")
    assert path == tmp_path / "a" / "b" / "report.html"
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert [p.name for p in path.parent.iterdir()] == ["report.html"]


def test_others_may_read_it(sample: ModuleType, tmp_path: Path) -> None:
    mask = os.umask(0o022)
    try:
        path = write_report(sample.empty(), tmp_path / "report.html")
    finally:
        os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_directory_is_refused(sample: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is a directory") as caught:
        write_report(sample.empty(), tmp_path)
    assert "report.html" in caught.value.hint


def test_a_device_is_refused(sample: ModuleType) -> None:
    with pytest.raises(UserError, match="not a regular file"):
        write_report(sample.empty(), "/dev/null")
    assert not Path("/dev/null").is_file()


def test_a_parent_that_is_a_file_is_refused(sample: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(UserError, match="cannot write"):
        write_report(sample.empty(), tmp_path / "file" / "report.html")


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_folder_that_is_not_writable(sample: ModuleType, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(UserError, match="cannot write"):
        write_report(sample.empty(), tmp_path / "report.html")


def test_a_failure_leaves_the_old_report_and_no_rest(
    sample: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(UserError, match="Permission denied"):
        write_report(sample.empty(), path)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_a_write_protected_report_is_left_alone(
    sample: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(UserError, match="write-protected"):
        write_report(sample.empty(), path)
    assert path.read_text() == "old"


def test_a_link_stays_a_link(sample: ModuleType, tmp_path: Path) -> None:
    real = tmp_path / "real.html"
    real.write_text("old")
    link = tmp_path / "link.html"
    link.symlink_to(real)
    write_report(sample.empty(), link)
    assert link.is_symlink()
    assert real.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_a_share_just_below_the_cut_is_not_rounded_up_to_it(sample: ModuleType) -> None:
    base = sample.make(("a", "b"))
    rows = [dataclasses.replace(row, better=((0.0, 0.949), (0.051, 0.0))) for row in base.ranking[:1]]
    words = Page(render_report(dataclasses.replace(base, ranking=tuple(rows)))).words
    assert "0.949" in words
    assert "0.950" in words  # the cut in the caption
