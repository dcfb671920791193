"""Free text, conditions, questions about turns, best and worst, rankings: in a browser and stored."""

from __future__ import annotations

import csv
import io
import uuid
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from playwright.sync_api import Browser, Page, expect
from sqlalchemy import select
from starlette.datastructures import FormData
from visits import accessible, here, no_sideways_scroll, turned

from palaver.schema import Study
from palaver.server import shortcuts
from palaver.server.answers import RawAnswer
from palaver.server.database import Database
from palaver.server.export import Selection, read_answers, stream
from palaver.server.migrations import migrate
from palaver.server.pages import form_answers
from palaver.server.refusal import Refusal
from palaver.server.study_state import StudyState, Task
from palaver.server.tables import answer
from palaver.studies.analyse import analyse
from palaver.studies.design import parse_study
from palaver.studies.ratings import read_ratings

OUTPUTS = "\n".join(
    f"""
[[items.outputs]]
system = "{system}"
[items.outputs.dialogue]
id = "{system}"
turns = [
  {{ speaker = "user", text = "Hello there." }},
  {{ speaker = "system", text = "Good morning, says {n}." }},
  {{ speaker = "user", text = "How are you?" }},
  {{ speaker = "system", text = "Fine, says {n}." }},
]"""
    for n, system in enumerate(("zebra", "quagga", "okapi"))
)
STUDY = f"""
name = "kinds"
layout = "separate"
raters_per_item = 2
order = "fixed"
[[questions]]
criterion = "quality"
text = "How good is the conversation?"
scale = {{ kind = "likert", low = 1, high = 5 }}
[[questions]]
criterion = "why"
text = "What is wrong with it?"
scale = {{ kind = "text", min_length = 3, max_length = 100, lines = 3 }}
shown_if = {{ criterion = "quality", at_most = 2 }}
beside = "quality"
[[questions]]
criterion = "fits"
text = "Does this reply fit?"
scale = {{ kind = "binary" }}
per = "turn"
beside = "quality"
[[questions]]
criterion = "fault"
text = "Which fault has it?"
scale = {{ kind = "choice", options = ["rude", "false"] }}
per = "turn"
shown_if = {{ criterion = "fits", equals = "no" }}
beside = "quality"
[[questions]]
criterion = "liking"
text = "Which do you like most, which least?"
scale = {{ kind = "best-worst" }}
[[questions]]
criterion = "order"
text = "Put them in order."
scale = {{ kind = "ranking" }}
[[items]]
id = "one"
{OUTPUTS}
"""


# --- in a browser -------------------------------------------------------------------------------------------


def send(page: Page) -> None:
    before = here(page)
    page.locator("#go").click()
    turned(page, before)


def question(page: Page, criterion: str, place: int = 0, turn: int | None = None) -> Any:
    where = f'[data-criterion="{criterion}"][data-position="{place}"]'
    return page.locator(where + (f'[data-turn="{turn}"]' if turn is not None else ""))


def choose(page: Page, criterion: str, value: str, place: int = 0, turn: int | None = None) -> None:
    question(page, criterion, place, turn).locator(f'input[value="{value}"]').check(force=True)


@pytest.mark.parametrize("width", [1200, 360])
def test_a_walk_through_all_kinds_of_questions(
    width: int, serve: Callable[..., Any], browser: Browser
) -> None:
    server = serve(STUDY)
    context = browser.new_context(viewport={"width": width, "height": 800}, has_touch=width < 500)
    context.set_default_timeout(10_000)
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(server.url)
    page.locator(".go").click()
    for place in range(3):
        page.wait_for_selector(f'#rate[data-position="{place}"]')
        why = question(page, "why", place)
        expect(why).to_be_hidden()
        expect(question(page, "fault", place, 1)).to_be_hidden()
        if place:
            choose(page, "quality", "5", place)
            for turn in (1, 3):
                choose(page, "fits", "1", place, turn)
            send(page)
            continue
        # By keys: the digits answer what is focused and go on to what is open.
        question(page, "quality").locator("input").first.focus()
        page.keyboard.press("2")
        expect(why).to_be_visible()
        expect(page.locator("#state")).to_contain_text("What is wrong with it?")
        question(page, "fits", 0, 1).locator("input").first.focus()
        page.keyboard.press("0")
        expect(question(page, "fault", 0, 1)).to_be_visible()
        expect(question(page, "fault", 0, 3)).to_be_hidden()
        page.keyboard.press("1")  # in the question that appeared: it is the next that is open
        choose(page, "fits", "1", 0, 3)
        accessible(page)
        no_sideways_scroll(page)
        before = here(page)
        page.locator("#go").click()
        assert here(page) == before, "the text is still missing"
        why.locator("textarea").fill('=HYPERLINK("x")\nand more')
        page.reload()
        expect(why.locator("textarea")).to_have_value('=HYPERLINK("x")\nand more')
        expect(question(page, "fault", 0, 1).locator("input:checked")).to_have_value("rude")
        send(page)
    page.wait_for_selector(".order")
    choose(page, "liking", "1", 0)
    choose(page, "liking", "1", 2)  # another best one takes it from the first
    expect(question(page, "liking", 0).locator("input:checked")).to_have_count(0)
    choose(page, "liking", "-1", 1)
    expect(question(page, "liking", 0).locator("input:checked")).to_have_value("0")
    accessible(page)
    no_sideways_scroll(page)
    send(page)
    page.wait_for_selector(".rank")
    down = page.get_by_role("button", name="Down: Conversation 1")
    down.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".output h2").first).to_contain_text("Conversation 2")
    expect(page.locator("[role=status].unseen")).to_have_text("Conversation 1: place 2 of 3")
    last, middle = page.locator(".output h2").nth(2), page.locator(".output h2").nth(1)
    last.scroll_into_view_if_needed()
    handle, above = last.bounding_box(), middle.bounding_box()
    assert handle is not None
    assert above is not None
    page.mouse.move(handle["x"] + 20, handle["y"] + 5)
    page.mouse.down()
    page.mouse.move(handle["x"] + 20, handle["y"] - 20)
    page.mouse.move(handle["x"] + 20, max(above["y"], 0) + 8)
    page.mouse.up()
    expect(page.locator(".output h2").nth(1)).to_contain_text("Conversation 3")
    accessible(page)
    no_sideways_scroll(page)
    send(page)
    expect(page.locator("h1")).to_have_text("Thank you!")
    assert problems == []
    context.close()
    stored = {(c, s, t): value for s, c, value, t in _rows(server)}
    assert stored["why", "zebra", None] == '=HYPERLINK("x")\nand more'
    assert {key: value for key, value in stored.items() if key[0] == "fault"} == {
        ("fault", "zebra", 1): "rude"
    }
    assert [stored["liking", s, None] for s in ("zebra", "quagga", "okapi")] == ["0", "-1", "1"]
    assert [stored["order", s, None] for s in ("zebra", "quagga", "okapi")] == ["0", "2", "1"]


def _rows(server: Any) -> list[tuple[Any, ...]]:
    c = answer.c
    with server.database.reading() as connection:
        return [tuple(row) for row in connection.execute(select(c.system, c.criterion, c.value, c.turn))]


# --- in the database ----------------------------------------------------------------------------------------


def come(study_state: StudyState) -> tuple[str, Task]:
    rater = study_state.enter()
    study_state.begin(rater)
    task = study_state.visit(rater).task
    assert task is not None
    return rater, task


def give(criterion: str, value: object, place: int = 0, turn: int | None = None) -> RawAnswer:
    return RawAnswer(str(uuid.uuid4()), criterion, place, value, turn=turn)  # type: ignore[arg-type]


def all_of_first_screen(quality: int = 5, fits: int = 1) -> list[RawAnswer]:
    turns = [give("fits", fits, place, turn) for place in range(3) for turn in (1, 3)]
    return [*(give("quality", quality, place) for place in range(3)), *turns]


def values(database: Database) -> dict[tuple[str, str, int | None], str]:
    c = answer.c
    with database.reading() as connection:
        rows = connection.execute(select(c.criterion, c.system, c.turn, c.value).order_by(c.number))
        return {(criterion, system, turn): value for criterion, system, turn, value in rows}


@pytest.fixture
def study() -> Study:
    return parse_study(STUDY, "study")


@pytest.fixture
def talk(study: Study) -> Study:
    """The questions of the first screen, about two items."""
    items = (study.items[0], study.items[0].model_copy(update={"id": "two"}))
    return study.model_copy(update={"questions": study.questions[:4], "items": items})


@pytest.fixture
def study_state(database: Database, study: Study) -> StudyState:
    return StudyState.create(database, study, "")


def test_what_is_hidden_is_neither_stored_nor_missing(
    database: Database, talk: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    study_state = StudyState.create(database, talk, "")
    stored_at_once: list[bool] = []
    store = shortcuts.store_answers

    def note_and_store(*args: Any) -> bool:
        stored_at_once.append(store(*args))
        return stored_at_once[-1]

    monkeypatch.setattr(shortcuts, "store_answers", note_and_store)
    rater, task = come(study_state)
    for _ in range(2):  # on PostgreSQL the second one goes the short way
        hidden = [give("why", "no reason"), give("fault", ["rude"], 1, 3)]
        assert study_state.submit(rater, task.assignment, [*all_of_first_screen(), *hidden]).finished
        task = study_state.visit(rater).task or task
    assert stored_at_once.count(True) == (0 if database.is_sqlite else 1)
    c = answer.c
    with database.reading() as connection:
        rows = [
            tuple(row) for row in connection.execute(select(c.item, c.criterion, c.system, c.turn, c.value))
        ]
    first, second = ({row[1:] for row in rows if row[0] == item} for item in ("one", "two"))
    assert first == second
    assert len(rows) == 18
    assert {row[1] for row in rows} == {"quality", "fits"}


def test_what_is_shown_is_required_and_a_chain_ends_where_it_is_cut(
    study_state: StudyState, database: Database
) -> None:
    rater, task = come(study_state)
    answers = all_of_first_screen(quality=1, fits=1)
    assert not study_state.submit(rater, task.assignment, answers).finished
    assert not study_state.submit(rater, task.assignment, answers).finished, "sent twice is sent once"
    texts = [give("why", " bad\r\nindeed ", place) for place in range(3)]
    assert study_state.submit(rater, task.assignment, texts).finished
    assert values(database)["why", "zebra", None] == "bad\nindeed"
    assert len(values(database)) == 12


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (give("fits", 1), "fits is not asked about the whole"),
        (give("fits", 1, turn=0), "fits is not asked about turn 0"),
        (give("fits", 1, turn=99), "fits is not asked about turn 99"),
        (give("quality", 1, turn=1), "quality is not asked about turn 1"),
        (give("why", "x"), "why: expected a text of 3 to 100 characters, found 1 characters"),
        (give("why", 5.0), "why: expected a text"),
        (give("why", "x" * 101), "found 101"),
    ],
)
def test_refusals(study: Study, sqlite: Database, wrong: RawAnswer, words: str) -> None:
    study_state = StudyState.create(sqlite, study, "")
    rater, task = come(study_state)
    with pytest.raises(Refusal, match=words):
        study_state.submit(rater, task.assignment, [wrong])


def test_outputs_are_in_one_order_or_refused(study_state: StudyState, database: Database) -> None:
    rater, task = come(study_state)
    study_state.submit(rater, task.assignment, all_of_first_screen())
    liking = study_state.visit(rater).task
    assert liking is not None
    for bad in ([1, 1, -1], [1, 0, 0], [0, 0, 0]):
        with pytest.raises(Refusal, match="liking: expected one best and one worst"):
            study_state.submit(
                rater, liking.assignment, [give("liking", v, place) for place, v in enumerate(bad)]
            )
    good = [give("liking", v, place) for place, v in enumerate((-1, 1, 0))]
    assert study_state.submit(rater, liking.assignment, good).finished
    order = study_state.visit(rater).task
    assert order is not None
    for ranks, words in (([1, 1, 2], "each rank from 1 to 3 once"), ([1, 2, 4], "a rank from 1 to 3")):
        with pytest.raises(Refusal, match=words):
            study_state.submit(
                rater, order.assignment, [give("order", v, place) for place, v in enumerate(ranks)]
            )
    assert study_state.submit(
        rater, order.assignment, [give("order", v, place) for place, v in enumerate((3, 1, 2))]
    ).finished
    stored = values(database)
    systems = ("zebra", "quagga", "okapi")
    assert [stored["liking", system, None] for system in systems] == ["-1", "1", "0"]
    assert [stored["order", system, None] for system in systems] == ["0", "2", "1"]
    shown = study_state.look_back(rater, 0)
    assert shown is not None
    scale = shown[0].questions[0].scale
    assert [scale.show_answer(stored["order", system, None], (0, 1, 2)) for system in systems] == [
        "3",
        "1",
        "2",
    ]


def test_exports_and_analysis(sqlite: Database, talk: Study) -> None:
    study = talk.model_copy(update={"items": talk.items[:1]})
    study_state = StudyState.create(sqlite, study, "")
    written = ["=1+1", "007", "n/a", "+49 30", "a|b", 'quote " and, comma\nline']
    for n in range(2):
        rater, task = come(study_state)
        texts = [give("why", written[3 * n + place], place) for place in range(3)]
        faults = [give("fault", ["false"], place, turn) for place in range(3) for turn in (1, 3)]
        answers = [*all_of_first_screen(2, 0), *texts, *faults]
        assert study_state.submit(rater, task.assignment, answers).finished
    sheet = list(csv.DictReader(io.StringIO(b"".join(stream(sqlite, "csv")).decode())))
    cells = [row["value"] for row in sheet if row["criterion"] == "why"]
    assert sorted(cells) == sorted(["'=1+1", "007", "n/a", "'+49 30", "a|b", written[5]])
    assert {row["turn"] for row in sheet if row["criterion"] == "fits"} == {"1", "3"}
    shared = b"".join(stream(sqlite, "jsonl", Selection(share=True, texts=False)))
    assert b"why" not in shared
    table = read_ratings(read_answers(sqlite), study=study)
    assert sorted(table.texts["text"]) == sorted(written), "texts come back as they were written"
    assert "why" not in table.criteria
    analysis = analyse(table, study=study, n_replicates=10)
    assert [row.text for row in analysis.texts] == [
        row["text"] for row in analysis.to_polars("texts").to_dicts()
    ]
    fits = next(row for row in analysis.criteria if row.criterion == "fits")
    assert (fits.n_ratings, fits.n_outputs) == (12, 6), "two turns of three systems, by two raters"
    assert {(row.criterion, row.n_asked, row.n_not_asked) for row in analysis.reading.conditions} == {
        ("why", 6, 0), ("fault", 12, 0),
    }  # fmt: skip


def test_csv_and_json_lines_come_back_as_they_were(sqlite: Database, study: Study, tmp_path: Any) -> None:
    study_state = StudyState.create(sqlite, study, "")
    rater, task = come(study_state)
    texts = [give("why", text, place) for place, text in enumerate(("=cmd|x", "12,5", "-"))]
    texts[2] = give("why", "---", 2)
    study_state.submit(rater, task.assignment, [*all_of_first_screen(2), *texts])
    for kind in ("csv", "jsonl", "parquet"):
        file = tmp_path / f"answers.{kind}"
        file.write_bytes(b"".join(stream(sqlite, kind)))  # type: ignore[arg-type]
        table = read_ratings(file, study=study)
        assert table.texts.sort("text")["text"].to_list() == ["---", "12,5", "=cmd|x"], kind
        assert table.frame["turn"].drop_nulls().sort().to_list() == [1, 1, 1, 3, 3, 3]


def test_a_changed_answer_hides_what_was_answered_before(sqlite: Database, study: Study) -> None:
    study_state = StudyState.create(sqlite, study, "")
    rater, task = come(study_state)
    texts = [give("why", "because", place) for place in range(3)]
    study_state.submit(rater, task.assignment, [*all_of_first_screen(2), *texts])
    study_state.submit(rater, task.assignment, [give("quality", 5, 1)])
    table = read_ratings(read_answers(sqlite), study=study)
    assert table.texts["system"].to_list() == ["zebra", "okapi"]
    assert ("answers to a question that a changed answer no longer asks", 1) in table.reading.dropped
    why = next(row for row in table.reading.conditions if row.criterion == "why")
    assert (why.n_asked, why.n_answered, why.n_missing, why.n_not_asked) == (2, 2, 0, 1)


def test_a_page_without_scripts_shows_all_questions(sqlite: Database, study: Study) -> None:
    from palaver.server.assets import environment, static_files
    from palaver.server.rating_page import rating_page

    study_state = StudyState.create(sqlite, study, "")
    _, task = come(study_state)
    view = rating_page(study, task)
    page = (
        environment("", static_files())
        .get_template("rate.html.j2")
        .render(
            view=view, study=study, title="t", csrf="c", page="p", rater="r", problem="", is_preview=False
        )
    )
    assert 'name="answer:0.1:fault"' in page
    assert "data-shown-if" in page
    conditional = page[page.index('data-criterion="why"') :]
    assert "required" not in conditional[: conditional.index("</div>")]


def test_a_form_without_scripts_names_the_turn() -> None:
    form = FormData(
        [("page", "p"), ("answer:0:why", " x\r\ny "), ("answer:2.13:fits", "1"), ("answer:0.:a", "1")]
    )
    answers = {(a.criterion, a.position, a.turn): a.value for a in form_answers(form)}
    assert answers == {("why", 0, None): "x\r\ny", ("fits", 2, 13): "1"}
    assert len({a.id for a in form_answers(form)}) == 2


def test_old_databases_get_the_column(database: Database) -> None:
    migrate(database)
    with database.reading() as connection:
        assert connection.execute(select(answer.c.turn)).all() == []


def test_frames_have_the_dialogue_of_a_turn_as_context(sqlite: Database, study: Study) -> None:
    """Intervals are clustered by it: turns of one dialogue are not independent."""
    study_state = StudyState.create(sqlite, study, "")
    rater, task = come(study_state)
    study_state.submit(rater, task.assignment, all_of_first_screen())
    frame = pl.read_csv(b"".join(stream(sqlite, "csv")))
    contexts = frame.filter(pl.col("criterion") == "fits")["context"].unique().to_list()
    assert contexts == ["one"]
