"""What is asked for again after a change, and what is not: replies and judgements, cell by cell."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palaver.engine import GIVE_UP
from palaver.evaluation.judging import ask_judge, judge_keys
from palaver.evaluation.replies import (
    TestSet,
    ask_system,
    read_test_set,
    response_lines,
    write_responses,
)
from palaver.evaluation.store import Store
from palaver.generation.contexts import Contexts
from palaver.judges.function import FunctionJudge
from palaver.schema import Response

Bots = Callable[..., Any]


def no_news(done: int, total: int) -> None:
    pass


def a_set(folder: Path, *questions: str, knowledge: str | None = None) -> TestSet:
    path = folder / "questions.txt"
    path.write_text("\n".join(questions) + "\n")
    contexts = Contexts(path)
    if knowledge is None:
        return read_test_set(contexts, None)

    class OneSentence:
        def choose_for(self, contexts: Any) -> list[str | None]:
            return [knowledge for _ in contexts]

    return read_test_set(contexts, OneSentence())


TEN = [f"question {n}" for n in range(10)]


def test_only_what_is_missing_is_asked(tmp_path: Path, bot: Bots) -> None:
    with Store(tmp_path) as store:
        first = bot()
        outcome = ask_system(first, a_set(tmp_path, *TEN), store, no_news)
        assert (outcome.n_replies, outcome.n_there, outcome.error) == (10, 0, "")
        assert first.asked == TEN
        again = bot()
        assert ask_system(again, a_set(tmp_path, *TEN), store, no_news).n_there == 10
        assert again.asked == []
        more = bot()
        ask_system(more, a_set(tmp_path, *TEN, "new 1", "new 2"), store, no_news)
        assert more.asked == ["new 1", "new 2"], "new items cost new items"
        changed = bot(settings={"version": 2})
        ask_system(changed, a_set(tmp_path, *TEN), store, no_news)
        assert changed.asked == TEN, "another version of the system is another system"
        renamed = bot(name="other")
        ask_system(renamed, a_set(tmp_path, *TEN), store, no_news)
        assert renamed.asked == [], "a name is no setting"
        informed = bot()
        ask_system(informed, a_set(tmp_path, *TEN, knowledge="Rome is old."), store, no_news)
        assert informed.asked == TEN, "knowledge is part of the request"


def test_one_bad_row_costs_one_row_and_is_not_kept(tmp_path: Path, bot: Bots) -> None:
    with Store(tmp_path) as store:
        outcome = ask_system(bot(fails_on="question 5"), a_set(tmp_path, *TEN), store, no_news)
        assert outcome.n_replies == 9
        assert outcome.failures.rows == {"6": "cannot say 'question 5'"}
        assert outcome.error == "1 of 10 replies are missing: cannot say 'question 5'"
        mended = bot()
        outcome = ask_system(mended, a_set(tmp_path, *TEN), store, no_news)
        assert mended.asked == ["question 5"], "an error is never kept"
        assert outcome.error == ""


def test_a_system_that_is_gone_is_given_up(tmp_path: Path, bot: Bots) -> None:
    questions = [f"fine {n}" for n in range(8)] + [f"bad {n}" for n in range(40)]
    with Store(tmp_path) as store:
        gone = bot(fails_on="bad")
        outcome = ask_system(gone, a_set(tmp_path, *questions), store, no_news)
        assert outcome.n_replies == 8, "what it said before is kept"
        assert outcome.failures.count == GIVE_UP
        assert outcome.error.startswith("40 of 48 replies are missing")
        assert len(gone.asked) < 25


def test_a_system_may_raise_or_return_anything(tmp_path: Path, bot: Bots) -> None:
    def explode(text: str) -> str:
        raise ZeroDivisionError("oh")

    for say, words in (
        (explode, "ZeroDivisionError: oh"),
        (lambda text: "\ud800", "half of a surrogate pair"),
    ):
        with Store(tmp_path, fresh=True) as store:
            outcome = ask_system(bot(say=say), a_set(tmp_path, "a", "b"), store, no_news)
            assert words in outcome.error


class _Counting:
    """A function judge that counts, and fails on some."""

    def __init__(self, fails_on: str = "no such") -> None:
        self.asked = 0
        self.fails_on = fails_on

    def __call__(self, response: Response) -> float | None:
        self.asked += 1
        if self.fails_on in (response.response or ""):
            raise ValueError("cannot")
        return float(len(response.response or "")) if "9" not in (response.response or "") else None


def make_judge(function: Any, signature: str = "one") -> FunctionJudge:
    judge = FunctionJudge(function, "length")
    judge.signature = signature
    return judge


def test_judgements_are_kept_by_row(tmp_path: Path, bot: Bots) -> None:
    with Store(tmp_path) as store:
        systems = {"a": bot(name="a"), "b": bot(name="b", say=str.title, settings={"b": 1})}
        test_set = a_set(tmp_path, *TEN)
        for system in systems.values():
            ask_system(system, test_set, store, no_news)
        path = tmp_path / "responses.jsonl"
        rows = write_responses(systems, test_set, store, path)
        assert path.read_bytes() == b"".join(line for line, _ in response_lines(systems, test_set, store))
        count = _Counting()
        first = ask_judge(make_judge(count), path, rows, store, no_news)
        assert count.asked == 20
        assert first.frame.height == 18, "a judge may have no opinion"
        count = _Counting()
        again = ask_judge(make_judge(count), path, rows, store, no_news)
        assert count.asked == 0
        assert again.frame.equals(first.frame)
        count = _Counting()
        ask_judge(make_judge(count, "two"), path, rows, store, no_news)
        assert count.asked == 20, "another signature is another judge"
        systems["b"] = bot(name="b", say=str.lower, settings={"b": 2})
        ask_system(systems["b"], test_set, store, no_news)
        rows = write_responses(systems, test_set, store, path)
        count = _Counting()
        ask_judge(make_judge(count), path, rows, store, no_news)
        assert count.asked == 10, "only the changed system is judged again"


def test_a_judge_that_fails_on_one_row(tmp_path: Path, bot: Bots) -> None:
    with Store(tmp_path) as store:
        test_set = a_set(tmp_path, *TEN)
        systems = {"a": bot(name="a")}
        ask_system(systems["a"], test_set, store, no_news)
        path = tmp_path / "responses.jsonl"
        rows = write_responses(systems, test_set, store, path)
        outcome = ask_judge(make_judge(_Counting("3")), path, rows, store, no_news)
        assert outcome.frame.height == 8
        assert outcome.error.startswith(
            "ratings of 1 of 10 responses are missing: length (response '4') failed"
        )
        outcome = ask_judge(make_judge(_Counting()), path, rows, store, no_news)
        assert outcome.error == ""


def test_a_judge_of_whole_systems_has_one_cell(tmp_path: Path, bot: Bots) -> None:
    from palaver.judges import open_judge

    with Store(tmp_path) as store:
        test_set = a_set(tmp_path, *TEN)
        systems = {"a": bot(name="a"), "b": bot(name="b", say=lambda text: "Yes.", settings={"b": 1})}
        for system in systems.values():
            ask_system(system, test_set, store, no_news)
        path = tmp_path / "responses.jsonl"
        rows = write_responses(systems, test_set, store, path)
        judge = open_judge("distinct_1")
        outcome = ask_judge(judge, path, rows, store, no_news)
        assert outcome.frame.height == 2
        assert outcome.n_cells == 1
        [key] = judge_keys(judge, path.read_bytes().splitlines(keepends=True))
        assert store.count("judgement", [key]) == 1


def test_what_a_judge_cannot_rate_is_counted(tmp_path: Path, bot: Bots) -> None:
    from palaver.judges import open_judge

    with Store(tmp_path) as store:
        test_set = a_set(tmp_path, *TEN)
        systems = {"a": bot(name="a")}
        ask_system(systems["a"], test_set, store, no_news)
        path = tmp_path / "responses.jsonl"
        rows = write_responses(systems, test_set, store, path)
        outcome = ask_judge(open_judge("unigram_f1"), path, rows, store, no_news)
        assert outcome.left_out == {"responses without a reference": 10}
        assert outcome.frame.height == 0


def test_what_is_the_reference_is_not_judged_against_it(tmp_path: Path, bot: Bots) -> None:
    rows = [
        {"id": str(n), "system": "person", "context": f"question {n}", "response": f"QUESTION {n}"}
        for n in range(3)
    ]
    rows.append(
        {**rows[0], "system": "bot", "response": "x", "reference": "QUESTION 0", "knowledge": "Fact."}
    )
    rows += [{**row, "system": "bot", "response": "y", "reference": row["response"]} for row in rows[1:3]]
    (tmp_path / "said.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with Store(tmp_path) as store:
        test_set = read_test_set(Contexts(tmp_path / "said.jsonl"), None)
        assert [context.reference for context in test_set.contexts] == [
            "QUESTION 0",
            "QUESTION 1",
            "QUESTION 2",
        ]
        assert test_set.knowledge == ["Fact.", None, None], "a later response may say it"
        systems = {"person": bot(name="person"), "bot": bot(name="bot", say=str.title, settings={"b": 1})}
        for system in systems.values():
            ask_system(system, test_set, store, no_news)
        lines = [json.loads(line) for line, _ in response_lines(systems, test_set, store)]
        assert ["reference" in line for line in lines] == [False] * 3 + [True] * 3


@pytest.mark.parametrize("chunk", [1, 3, 100])
def test_batches_do_not_matter(chunk: int, tmp_path: Path, bot: Bots) -> None:
    with Store(tmp_path) as store:
        test_set = a_set(tmp_path, *TEN)
        system = bot(chunk=chunk)
        ask_system(system, test_set, store, no_news)
        write_responses({"bot": system}, test_set, store, tmp_path / "responses.jsonl")
    lines = (tmp_path / "responses.jsonl").read_text().splitlines()
    assert len(lines) == 10
    assert lines[0] == (
        '{"id": "1", "system": "bot", "context": [{"speaker": "user", "text": "question 0"}], '
        '"response": "QUESTION 0"}'
    )
