"""What other tools write is read as it stands: small files of their shapes, and the numbers in them."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from palaver.csv_tables import read_header
from palaver.errors import DataError
from palaver.readers import is_responses, read_dialogues, read_responses
from palaver.readers.dialogue_exports import NO_QUESTIONS
from palaver.readers.rating_files import iter_ratings
from palaver.readers.rating_options import RatingOptions
from palaver.readers.ratings import RatingFrame, read_rating_frame
from palaver.studies import read_ratings


def lines(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def read(path: Path, **options: Any) -> RatingFrame:
    return read_rating_frame(path, RatingOptions(**options))


def judgements(ratings: RatingFrame, *fields: str) -> list[tuple[Any, ...]]:
    frame = ratings.frame.with_columns(
        pl.coalesce(pl.col("text"), pl.col("value").cast(pl.String)).alias("value")
    )
    return frame.select(pl.col(fields).cast(pl.String)).rows()


def said(path: Path) -> list[tuple[Any, list[str]]]:
    """System and texts of each dialogue."""
    return [(d.labels.get("system"), [turn.text for turn in d.turns]) for d in read_dialogues(path)]


def messages(*texts: str) -> list[dict[str, str]]:
    return [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(texts)]


# --- comparisons --------------------------------------------------------------------------------------------

WINNERS = ["model_a", "model_b", "tie", "tie (bothbad)", "both_bad"]
OUTCOMES = ["win", "loss", "tie", "tie", "tie"]


def battle(n: int, winner: str) -> dict[str, Any]:
    talks = {f"conversation_{side}": messages("Hi.", f"{side} says {n}") for side in "ab"}
    about = {"judge": f"arena_user_{n}", "turn": 1, "language": "English", "tstamp": 1682351591.13}
    return {"question_id": f"q{n}", "model_a": "alpha", "model_b": "beta", "winner": winner, **talks, **about}


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_battles_of_an_arena(ending: str, tmp_path: Path) -> None:
    rows = [battle(n, winner) for n, winner in enumerate(WINNERS)]
    path = tmp_path / f"battles.{ending}"
    if ending == "jsonl":
        lines(path, *rows)
    else:
        pl.DataFrame(rows).write_parquet(path)
    ratings = read(path)
    fields = ("item", "system", "against", "rater", "criterion", "value")
    assert judgements(ratings, *fields) == [
        (f"q{n}", "alpha", "beta", f"arena_user_{n}", "preference", outcome)
        for n, outcome in enumerate(OUTCOMES)
    ]
    assert any("'conversation_a', 'conversation_b', 'language'" in note for note in ratings.notes)
    assert said(path)[:2] == [("alpha", ["Hi.", "a says 0"]), ("beta", ["Hi.", "b says 0"])]
    assert len(list(read_dialogues(path))) == 10
    assert {d.labels["group"] for d in read_dialogues(path)} == {f"q{n}" for n in range(5)}


def test_the_outcomes_of_an_arena_in_three_columns(tmp_path: Path) -> None:
    path = tmp_path / "train.csv"
    path.write_text(
        "id,model_a,model_b,prompt,response_a,response_b,winner_model_a,winner_model_b,winner_tie\n"
        '1,alpha,beta,"[""Hi."", ""Bye.""]","[""a1"", ""a2""]","[""b1"", ""b2""]",1,0,0\n'
        '2,alpha,beta,"[""Hi.""]","[""a""]","[""b""]",0,1,0\n'
        '3,beta,alpha,"[""Hi.""]","[""b""]","[""a""]",0,0,1\n',
        encoding="utf-8",
    )
    rows = [("1", "alpha", "row 2", "win"), ("2", "alpha", "row 3", "loss"), ("3", "beta", "row 4", "tie")]
    ratings = read(path)
    assert judgements(ratings, "item", "system", "rater", "value") == rows
    assert "each row is a rater of its own" in ratings.layouts[0].describe()
    assert not is_responses(path)
    assert said(path)[0] == ("alpha", ["Hi.", "a1", "Bye.", "a2"])


def test_both_games_of_a_judge_of_pairs(tmp_path: Path) -> None:
    asked = {"g1_user_prompt": "…", "g1_judgment": "…", "judge": ["gpt-4", "pair-v2"], "turn": 1}
    rows = [
        {
            "question_id": 81,
            "model_1": "alpha",
            "model_2": "beta",
            "g1_winner": one,
            "g2_winner": two,
            **asked,
        }
        for one, two in [("model_1", "tie"), ("model_2", "error")]
    ]
    ratings = read(lines(tmp_path / "gpt-4_pair.jsonl", *rows), criteria=["quality"])
    assert judgements(ratings, "rater", "kind", "criterion", "value", "repeat", "turn") == [
        ("gpt-4", "llm", "quality", "win", "0", "1"),
        ("gpt-4", "llm", "quality", "tie", "1", "1"),
        ("gpt-4", "llm", "quality", "loss", "0", "1"),
    ]
    assert ratings.n_missing == 1  # the answer that could not be read


def test_scores_of_a_judge(tmp_path: Path) -> None:
    asked = {
        "user_prompt": "…",
        "judgment": "x" * 200,
        "judge": ["gpt-4", "single-v1"],
        "tstamp": 1687222719.8,
    }
    rows = [
        {"question_id": 81, "model": "alpha", "score": score, "turn": turn, **asked}
        for turn, score in [(1, 7), (2, -1)]
    ]
    ratings = read(lines(tmp_path / "gpt-4_single.jsonl", *rows))
    assert judgements(ratings, "rater", "kind", "criterion", "value", "turn") == [
        ("gpt-4", "llm", "score", "7.0", "1")
    ]
    assert ratings.n_missing == 1
    assert max(map(len, ratings.notes)) < 250  # a long judgement is cut short


def test_scores_of_people_beside_a_prompt_and_a_judgment(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("item,model,rater,user_prompt,judgment,score\n1,x,Ann|Lee,Hi.,Bad.,-1\n")
    assert judgements(read(path), "rater", "value", "kind") == [("Ann|Lee", "-1.0", "human")]


def test_preferences_that_name_models(tmp_path: Path) -> None:
    row = {"prompt": "Hi.", "chosen": "Hello.", "rejected": "No."}
    path = lines(tmp_path / "named.jsonl", {**row, "chosen-model": "alpha", "rejected-model": "beta"})
    assert judgements(read(path), "system", "against", "value") == [("alpha", "beta", "win")]
    with pytest.raises(DataError) as caught:
        read(lines(tmp_path / "plain.jsonl", row))
    assert "preferences without names of systems" in (caught.value.hint or "")
    assert [r.system for r in read_responses(path)] == ["chosen", "rejected"]  # and no column of names


def test_the_winner_may_be_named_in_any_way(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("item,a,b,who,verdict_of\n1,x,y,ann,x\n2,x,y,ann,B\n3,x,y,ann,both\n", encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read(path)
    assert "--column value=NAME" in (caught.value.hint or "")
    ratings = read(path, columns={"value": "verdict_of", "rater": "who"})
    assert judgements(ratings, "value") == [("win",), ("loss",), ("tie",)]
    with pytest.raises(DataError, match="no column says who won"):
        read(path, shape="pairs", columns={"rater": "who"})


def test_letters_of_places_are_not_taken_for_systems(tmp_path: Path) -> None:
    row = {"question": 1, "a": "alpha", "b": "beta", "judge": "j", "a_first": "A", "b_first": "A"}
    with pytest.raises(DataError):
        read(lines(tmp_path / "orders.jsonl", row))


def pairs(path: Path, columns: str, *rows: str) -> Path:
    path.write_text("\n".join([columns, *rows]) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("winners", ["01", "10", "0 0.5 1", "-1 0 1"])
def test_a_winner_by_a_number_may_be_a_place_or_a_score(winners: str, tmp_path: Path) -> None:
    given = winners.split() if " " in winners else list(winners)
    rows = [f"{n},x,y,{winner}" for n, winner in enumerate(given)]
    ratings = read(pairs(tmp_path / "p.csv", "item,model_a,model_b,winner", *rows))
    assert ratings.frame.is_empty()
    assert ratings.bad["value"].to_list() == given  # the ones as well: where 0 counts, they are no places
    assert "model_a, model_b or tie" in ratings.bad["problem"][0]
    with pytest.raises(DataError, match=f"row 2: expected the system that won.*found '{given[0]}'"):
        list(iter_ratings(tmp_path / "p.csv"))


def test_places_from_1_and_other_words(tmp_path: Path) -> None:
    path = pairs(tmp_path / "p.csv", "item,model_a,model_b,winner", "1,x,y,1", "2,x,y,2", "3,x,y,X")
    ratings = read(path)
    assert judgements(ratings, "value") == [("win",), ("loss",)]
    assert ratings.bad["value"].to_list() == ["X"]


def test_a_system_called_as_the_place_of_the_other(tmp_path: Path) -> None:
    path = pairs(tmp_path / "p.csv", "item,model_1,model_2,winner", "1,A,B,A", "2,A,B,b", "3,B,A,A")
    ratings = read(path)
    assert judgements(ratings, "value") == [("win",), ("loss",)]
    assert ratings.bad["value"].to_list() == ["A (the name of one, the place of the other)"]


def test_who_won_as_true_and_false(tmp_path: Path) -> None:
    names = ("winner_model_a", "winner_model_b", "winner_tie")
    won = [(True, False, False), (False, True, False), (False, False, True), (False, False, False)]
    rows = [{"model_a": "x", "model_b": "y", **dict(zip(names, one, strict=True))} for one in won]
    ratings = read(lines(tmp_path / "p.jsonl", *rows))
    assert judgements(ratings, "value") == [("win",), ("loss",), ("tie",)]
    assert ratings.n_missing == 1  # nobody said


def test_screens_stay_screens_beside_a_winner(tmp_path: Path) -> None:
    columns = "item,rater,team1,team2,quality1,quality2,winner"
    ratings = read(pairs(tmp_path / "two.csv", columns, "i,r,x,y,3,5,team2"))
    assert judgements(ratings, "system", "criterion", "value") == [
        ("x", "quality", "3.0"),
        ("y", "quality", "5.0"),
    ]
    assert any("'winner'" in note for note in ratings.notes)
    assert read(tmp_path / "two.csv", shape="pairs").layouts[0].kind == "pairs"
    three = "item,rater,team1,team2,team3,quality1,quality2,quality3,choice"
    assert len(read(pairs(tmp_path / "three.csv", three, "i,r,x,y,z,3,5,4,2")).frame) == 3
    replies = "item,rater,model1,model2,response1,response2,winner"
    ratings = read(pairs(tmp_path / "replies.csv", replies, "i,r,x,y,Hi.,Hello.,model2"))
    assert judgements(ratings, "system", "against", "value") == [("x", "y", "loss")]


def test_criteria_called_a_and_b_are_no_systems(tmp_path: Path) -> None:
    path = pairs(tmp_path / "c.csv", "item,model,rater,a,b,preference", "i,x,r,1,2,3", "i,y,r,4,5,1")
    assert set(read(path).frame["criterion"]) == {"a", "b", "preference"}


def test_compared_dialogues_are_told_from_compared_systems(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        read(pairs(tmp_path / "dev.csv", "a,b,better,rater", "d1,d2,a,x"))
    assert "compare train --dev-pairs" in (caught.value.hint or "")


# --- tools that collect ratings -----------------------------------------------------------------------------


def annotation(who: Any, *results: tuple[str, str, Any], **more: Any) -> dict[str, Any]:
    kinds = {"choices": "choices", "rating": "rating", "selected": "pairwise"}
    result = [{"from_name": name, "type": kinds[key], "value": {key: value}} for name, key, value in results]
    return {"id": 1, "completed_by": who, "result": result, "was_cancelled": False, "lead_time": 8.5, **more}


def test_tasks_of_label_studio(tmp_path: Path) -> None:
    tasks = [
        {
            "id": 7,
            "data": {"model": "alpha", "dialogue": [{"author": "user", "text": "Hi."}]},
            "annotations": [
                annotation(
                    {"id": 1, "email": "ann@x.org"}, ("fluency", "rating", 4), ("tone", "choices", ["Good"])
                ),
                annotation(2, was_cancelled=True),
            ],
        }
    ]
    path = tmp_path / "export.json"
    path.write_text(json.dumps(tasks, indent=1), encoding="utf-8")
    ratings = read(path)
    fields = ("item", "system", "rater", "criterion", "value", "seconds")
    assert judgements(ratings, *fields) == [("7", "alpha", "ann@x.org", "fluency", "4.0", "8.5")]
    assert any("skipped in Label Studio, left out: 1" in note for note in ratings.notes)
    assert any("'tone': words ('Good')" in note for note in ratings.notes)


def test_pairs_of_label_studio(tmp_path: Path) -> None:
    data = {"prompt": "Hi.", "model_a": "alpha", "model_b": "beta"}
    marks = [annotation(1, ("better", "selected", "left")), annotation(2, ("better", "selected", "right"))]
    task = {"id": 7, "data": data, "annotations": [*marks, annotation(3)]}
    ratings = read(lines(tmp_path / "pairs.json", task))
    assert judgements(ratings, "item", "rater", "criterion", "value") == [
        ("7", "1", "better", "win"),
        ("7", "2", "better", "loss"),
    ]
    assert ratings.n_missing == 1
    flat = [{**data, "id": 7, "better": "left", "annotator": 1, "annotation_id": 3}]
    assert judgements(read(lines(tmp_path / "min.json", *flat)), "item", "value") == [("7", "win")]


def test_a_batch_of_mechanical_turk(tmp_path: Path) -> None:
    path = tmp_path / "Batch_1_batch_results.csv"
    path.write_text(
        '"HITId","MaxAssignments","WorkerId","AssignmentStatus","WorkTimeInSeconds","Input.dialogue_id",'
        '"Input.system","Answer.fluency","Answer.comment"\n'
        '"H1","3","W1","Approved","31","d1","alpha","4","fine"\n'
        '"H1","3","W2","Approved","45","d1","alpha","5",""\n',
        encoding="utf-8",
    )
    ratings = read(path)
    fields = ("item", "system", "rater", "criterion", "value", "seconds")
    assert judgements(ratings, *fields) == [
        ("d1", "alpha", "W1", "fluency", "4.0", "31.0"),
        ("d1", "alpha", "W2", "fluency", "5.0", "45.0"),
    ]
    assert any("'MaxAssignments', 'AssignmentStatus': no 'Answer.'" in note for note in ratings.notes)


def test_a_dot_in_a_name_is_no_mark_of_mechanical_turk(tmp_path: Path) -> None:
    path = pairs(tmp_path / "dots.csv", "item,system,rater,Answer.fit,fit", "i,x,r,1,2", "j,x,r,3,3")
    assert sorted(set(read(path).frame["criterion"])) == ["Answer.fit", "fit"]


QUALTRICS = (
    "StartDate,ResponseId,RecordedDate,{}\n"
    'Start Date,Response ID,Recorded Date,{}\n"{{""ImportId"":""startDate""}}","{{}}","{{}}","{{}}","{{}}"\n'
    "2024-03-01 10:00:00,R_1,2024-03-01 10:09:01,5,3\n2024-03-01 11:00:00,R_2,2024-03-01 11:09:01,4,2\n"
)


@pytest.mark.parametrize(
    "headings", [("D1 [alpha],D1 [beta]", "How good?,And this?"), ("Q1_1,Q1_2", "D1 [alpha],D1 [beta]")]
)
def test_the_three_headings_of_qualtrics(headings: tuple[str, str], tmp_path: Path) -> None:
    path = tmp_path / "survey.csv"
    path.write_text(QUALTRICS.format(*headings), encoding="utf-16")
    ratings = read(path)
    assert judgements(ratings, "item", "system", "rater", "value", "row") == [
        ("D1", "alpha", "R_1", "5.0", "4"),
        ("D1", "beta", "R_1", "3.0", "4"),
        ("D1", "alpha", "R_2", "4.0", "5"),
        ("D1", "beta", "R_2", "2.0", "5"),
    ]
    assert any("left the second and the third row" in note for note in ratings.notes)


def test_questions_of_qualtrics_that_name_no_system(tmp_path: Path) -> None:
    path = tmp_path / "survey.csv"
    path.write_text(QUALTRICS.format("Q1_1,Q1_2", "How good?,And this?"), encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read(path)
    assert "'Q01 [system]', in its first or second row" in (caught.value.hint or "")


def test_examples_of_prodigy(tmp_path: Path) -> None:
    about = {
        "_input_hash": 5,
        "_annotator_id": "db-ann",
        "meta": {"model": "alpha", "item": "d1"},
        "text": "Hi.",
    }
    rows = [{**about, "accept": [3], "answer": "accept"}, {**about, "accept": [], "answer": "ignore"}]
    ratings = read(lines(tmp_path / "prodigy.jsonl", *rows))
    assert judgements(ratings, "item", "system", "rater", "value") == [("d1", "alpha", "db-ann", "3.0")]
    assert any("ignored in Prodigy, left out: 1" in note for note in ratings.notes)


# --- logs of evaluations ------------------------------------------------------------------------------------


def inspect_log() -> dict[str, Any]:
    def sample(id: int, epoch: int, grade: Any) -> dict[str, Any]:
        talk = [{"role": "system", "content": "Be kind."}, *messages(f"Q{id}", f"A{id}")]
        scores = {"model_graded_qa": {"value": grade}, "includes": {"value": True}} if grade else {}
        return {"id": id, "epoch": epoch, "messages": talk, "scores": scores}

    samples = [sample(1, 1, "C"), sample(1, 2, "I"), sample(2, 1, "P"), sample(2, 2, None)]
    return {"version": 2, "eval": {"model": "openai/alpha"}, "plan": {}, "stats": {}, "samples": samples}


@pytest.mark.parametrize("indent", [None, 2])
def test_a_log_of_inspect(indent: int | None, tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text(json.dumps(inspect_log(), indent=indent), encoding="utf-8")
    ratings = read(path)
    graded = [
        row for row in judgements(ratings, "criterion", "item", "repeat", "value", "kind") if row[4] == "llm"
    ]
    assert [(*row[1:3], float(row[3])) for row in graded] == [("1", "0", 1), ("1", "1", 0), ("2", "0", 0.5)]
    assert Counter(ratings.frame["kind"]) == {"llm": 3, "metric": 3}
    assert any("samples without a score, left out: 1" in note for note in ratings.notes)
    first, again, *_ = read_dialogues(path)
    assert [turn.text for turn in first.turns] == ["Q1", "A1"]
    assert (first.id, again.id) == ("1", "1#2")
    assert first.labels["group"] == again.labels["group"] == "1"
    assert first.labels["model_graded_qa"] == "C"


def test_a_log_of_inspect_without_samples(tmp_path: Path) -> None:
    log = inspect_log()
    del log["samples"]
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log, indent=2), encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read(path)
    assert "without its samples" in (caught.value.hint or "")


def test_a_packed_log_of_inspect_says_how_to_unpack_it(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    path.write_bytes(b"PK\x03\x04" + bytes(40))
    with pytest.raises(DataError) as caught:
        read(path)
    assert "inspect log convert" in (caught.value.hint or "")


def test_samples_of_lm_eval(tmp_path: Path) -> None:
    sample = {"doc_id": 0, "filtered_resps": ["4"], "metrics": ["exact_match"], "exact_match": 1.0}
    rows = [{**sample, "filter": "none"}, {**sample, "filter": "strict-match", "exact_match": 0.0}]
    folder = tmp_path / "org__alpha"
    folder.mkdir()
    path = lines(folder / "samples_gsm8k_2024-05-01T10-00-00.123.jsonl", *rows)
    fields = ("item", "system", "criterion", "value", "kind")
    assert judgements(read(path), *fields) == [
        ("0", "org__alpha", "gsm8k exact_match", "1.0", "metric"),
        ("0", "org__alpha", "gsm8k exact_match (strict-match)", "0.0", "metric"),
    ]
    renamed = lines(tmp_path / "samples_beta.jsonl", rows[0])
    assert judgements(read(renamed), "system", "criterion") == [("beta", "exact_match")]
    means = tmp_path / "results.json"
    means.write_text(json.dumps({"results": {}, "n-shot": {}, "configs": {}}, indent=2), encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read(means)
    assert "--log_samples" in (caught.value.hint or "")


def test_several_raters_in_a_list(tmp_path: Path) -> None:
    row = {"context": "User: Hi.", "system": "alpha", "annotations": {"Overall": [3, 4]}}
    ratings = read(lines(tmp_path / "fed.json", row, row))
    raters = [("row 1", "row 1, 1"), ("row 1", "row 1, 2"), ("row 2", "row 2, 1"), ("row 2", "row 2, 2")]
    assert judgements(ratings, "item", "rater") == raters


def test_several_raters_of_one_item(tmp_path: Path) -> None:
    row = {"id": "d1", "context": "Hi.", "annotations": {"Overall": [3, 4]}}
    path = lines(tmp_path / "fed.json", {**row, "system": "alpha"}, {**row, "system": "beta"})
    raters = [f"row {n}, {place}" for n in (1, 2) for place in (1, 2)]
    assert judgements(read(path), "item", "rater") == [("d1", rater) for rater in raters]


@pytest.mark.parametrize("annotations", [{}, {"quality": "10"}, {"quality": {"v": 4}}, {"spans": [1, 2]}])
def test_annotations_beside_what_one_rater_said(annotations: Any, tmp_path: Path) -> None:
    row = {"item": "i", "system": "s", "rater": "r", "context": "Hi.", "quality": 4}
    ratings = read(lines(tmp_path / "own.jsonl", {**row, "annotations": annotations}))
    assert judgements(ratings, "item", "rater", "criterion", "value") == [("i", "r", "quality", "4.0")]


def test_an_entry_unlike_the_first_is_an_error(tmp_path: Path) -> None:
    path = lines(tmp_path / "export.json", {"id": 1, "data": {}, "annotations": []}, {"id": 2})
    with pytest.raises(DataError) as caught:
        read(path)
    assert caught.value.problems == ("line 2: it is not like the first one",)


# --- dialogues ----------------------------------------------------------------------------------------------

HUMAN = "\n\nHuman: Hi.\n\nAssistant: {}"
ANSWER = {"model": "alpha", "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello."}}]}
TREE = {
    "message_id": "1",
    "role": "prompter",
    "text": "Hi.",
    "replies": [
        {"message_id": "2", "role": "assistant", "text": "Hello.", "rank": 0, "replies": []},
        {"message_id": "3", "role": "assistant", "text": "No.", "rank": 1},
    ],
}
PAIR = [("chosen", ["Hi.", "Hello."]), ("rejected", ["Hi.", "No."])]
DIALOGUES: dict[str, tuple[Any, list[tuple[Any, list[str]]]]] = {
    "messages": (
        {"prompt": "Hi.", "chosen": messages("Hi.", "Hello."), "rejected": messages("Hi.", "No.")},
        PAIR,
    ),
    "prompt": (
        {
            "prompt": messages("Hi."),
            "chosen": [{"role": "assistant", "content": "Hello."}],
            "rejected": [{"role": "assistant", "content": "No."}],
        },
        PAIR,
    ),
    "prompt as a text": (
        {"prompt": "Hi.", "chosen": messages("", "Hello.")[1:], "rejected": messages("", "No.")[1:]},
        PAIR,
    ),
    "messages before": (
        {
            "messages": messages("Hi."),
            "chosen": messages("", "Hello.")[1:],
            "rejected": messages("", "No.")[1:],
        },
        PAIR,
    ),
    "messages of the chosen": (
        {
            "prompt": "Hi.",
            "messages": messages("Hi.", "Hello."),
            "chosen": messages("Hi.", "Hello."),
            "rejected": messages("Hi.", "No."),
        },
        PAIR,
    ),
    "answers alone": (
        {
            "conversations": [{"from": "human", "value": "Hi."}],
            "chosen": {"from": "gpt", "value": "Hello."},
            "rejected": {"from": "gpt", "value": "No."},
        },
        PAIR,
    ),
    "transcripts": ({"chosen": HUMAN.format("Hello."), "rejected": HUMAN.format("No.")}, PAIR),
    "completion": ({"messages": messages("Hi."), **ANSWER}, [("alpha", ["Hi.", "Hello."])]),
    "completion taken over": (
        {"messages": messages("Hi.", "Hello."), **ANSWER},
        [("alpha", ["Hi.", "Hello."])],
    ),
    "logged": (
        {"request": {"messages": messages("Hi.")}, "response": ANSWER},
        [("alpha", ["Hi.", "Hello."])],
    ),
    "batch": ({"custom_id": "1", "response": {"status_code": 200, "body": ANSWER}}, [("alpha", ["Hello."])]),
    "bench": (
        {"question_id": 81, "model_id": "alpha", "choices": [{"index": 0, "turns": ["One.", "Two."]}]},
        [("alpha", ["One.", "Two."])],
    ),
    "tracker": (
        {
            "sender_id": "u",
            "events": [
                {"event": "action"},
                {"event": "user", "text": "Hi."},
                {"event": "bot", "text": "Hello."},
            ],
        },
        [(None, ["Hi.", "Hello."])],
    ),
    "tree": ({"message_tree_id": "1", "prompt": TREE}, [(None, ["Hi.", "Hello."]), (None, ["Hi.", "No."])]),
}


@pytest.mark.parametrize("name", DIALOGUES)
def test_dialogues_of_other_tools(name: str, tmp_path: Path) -> None:
    row, expected = DIALOGUES[name]
    path = lines(tmp_path / "log.jsonl", row)
    assert not is_responses(path)
    assert said(path) == expected


def test_answers_without_questions_are_counted(tmp_path: Path) -> None:
    reader = read_dialogues(lines(tmp_path / "alpha.jsonl", DIALOGUES["bench"][0]))
    assert len(list(reader)) == 1
    assert reader.tally[NO_QUESTIONS] == 1


def test_scores_of_preferences_are_ratings(tmp_path: Path) -> None:
    row = {**DIALOGUES["messages"][0], "score_chosen": 8.5, "score_rejected": 6.0}
    assert [d.labels["rating"] for d in read_dialogues(lines(tmp_path / "p.jsonl", row))] == [8.5, 6.0]


def test_names_of_sides_with_a_hyphen(tmp_path: Path) -> None:
    row = {**DIALOGUES["messages"][0], "chosen-model": "alpha", "chosen-rating": 5.0}
    row |= {"rejected-model": "beta", "rejected-rating": 3.0}
    read = read_dialogues(lines(tmp_path / "p.jsonl", row))
    assert [(d.labels["system"], d.labels["rating"]) for d in read] == [("alpha", 5.0), ("beta", 3.0)]


def test_battles_about_one_question_are_told_apart(tmp_path: Path) -> None:
    """MT-Bench's judgements by people: eighty questions, thousands of battles."""
    rows = [{**battle(0, winner), "judge": f"author_{n}"} for n, winner in enumerate(WINNERS[:2])]
    read = list(read_dialogues(lines(tmp_path / "human.jsonl", *rows)))
    assert [dialogue.id for dialogue in read] == ["q0:a", "q0:b", "human:2:a", "human:2:b"]
    assert {dialogue.labels["group"] for dialogue in read} == {"q0"}


def test_a_battle_that_is_there_again_keeps_its_ids(tmp_path: Path) -> None:
    read = read_dialogues(lines(tmp_path / "human.jsonl", *[battle(0, WINNERS[0])] * 2))
    assert [dialogue.id for dialogue in read] == ["q0:a", "q0:b"] * 2


HELP_DESK = "Ticket ID,Created at,Author,Author role,Comment\n"


def test_messages_of_a_help_desk(tmp_path: Path) -> None:
    path = tmp_path / "tickets.csv"
    path.write_text(
        HELP_DESK + "7,10:00,Mary,end-user,Hi.\n7,10:01,Al,agent,Hello.\n8,10:02,Joe,end-user,Help!\n"
    )
    first, second = read_dialogues(path)
    assert (first.id, [(turn.speaker, turn.text) for turn in first.turns]) == (
        "7",
        [("end-user", "Hi."), ("agent", "Hello.")],
    )
    assert second.id == "8"


@pytest.mark.parametrize(
    ("column", "inside", "outside"), [("Public", "False", "True"), ("internal", "true", "")]
)
def test_notes_that_a_help_desk_keeps_to_itself(
    column: str, inside: str, outside: str, tmp_path: Path
) -> None:
    path = tmp_path / "tickets.csv"
    path.write_text(
        f"Ticket ID,Author role,{column},Comment\n7,end-user,{outside},Hi.\n7,agent,{inside},Rude again.\n"
        f"7,agent,{outside},Hello.\n"
    )
    reader = read_dialogues(path)
    (dialogue,) = reader
    assert [turn.text for turn in dialogue.turns] == ["Hi.", "Hello."]
    assert reader.tally["internal notes of a help desk, left out"] == 1


def test_messages_of_mixed_dialogues_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "tickets.csv"
    path.write_text(
        HELP_DESK + "7,10:00,Mary,end-user,Hi.\n8,10:01,Joe,end-user,Help!\n7,10:02,Al,agent,Hello.\n"
    )
    with pytest.raises(DataError) as caught:
        list(read_dialogues(path))
    assert "row 4: dialogue '7' goes on here, after another one" in caught.value.problems[0]


def test_capitals_of_a_table_of_turns(tmp_path: Path) -> None:
    path = tmp_path / "chats.csv"
    path.write_text("Conversation ID,Role,Message,Model,Rating\n7,user,Hi.,,\n7,assistant,Hello.,alpha,4\n")
    (dialogue,) = read_dialogues(path)
    assert dialogue.labels == {"system": "alpha", "rating": 4}


@pytest.mark.parametrize("who", ["Agent", "From", "Author"])
def test_who_has_the_ticket_is_not_who_speaks(who: str, tmp_path: Path) -> None:
    path = tmp_path / "tickets.csv"
    path.write_text(f"Ticket ID,{who},Author role,Comment\n7,Mary,end-user,Hi.\n7,Mary,agent,Hello.\n")
    (dialogue,) = read_dialogues(path)
    assert [turn.speaker for turn in dialogue.turns] == ["end-user", "agent"]


def test_rated_responses_need_an_item_only(tmp_path: Path) -> None:
    """They are responses as well, but who rated them is named."""
    path = tmp_path / "rated.csv"
    path.write_text("prompt,response,model,rating,annotator\nHi.,Hello.,alpha,4,ann\nHi.,Oh.,beta,2,ann\n")
    with pytest.raises(DataError) as caught:
        read(path)
    assert "--column item=NAME" in str(caught.value.hint)
    ratings = read(path, columns={"item": "prompt"})
    assert judgements(ratings, "item", "system", "value") == [("Hi.", "alpha", "4.0"), ("Hi.", "beta", "2.0")]


# --- tables as people keep them -----------------------------------------------------------------------------

TABLE = "item;system;rater;criterion;value\n1;alpha;ann;quality;3,5\n"


@pytest.mark.parametrize(
    ("above", "row"),
    [
        ("sep=;\n", 3),
        ("Study of March;;;;\n;;;;\n", 4),
        ("Study of March\n", 3),
        ("Study of March\n\n", 4),
        (";;;Scores;\n", 3),
        ("", 2),
    ],
)
def test_what_stands_above_a_heading(above: str, row: int, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(above + TABLE, encoding="utf-8")
    ratings = read(path)
    assert judgements(ratings, "item", "value", "row") == [("1", "3.5", str(row))]
    title = above.strip(";\n")
    named = any(f"left what stands above the heading: {title!r}" in note for note in ratings.notes)
    assert named is (title in ("Study of March", "Scores"))


@pytest.mark.parametrize("text", ["text\nHi; you\nOh; me\n", "text\nHi; you; there\n", "text\nHi.\nOh.\n"])
def test_a_column_of_texts_has_no_title(text: str, tmp_path: Path) -> None:
    (tmp_path / "texts.csv").write_text(text)
    header = read_header(tmp_path / "texts.csv")
    assert (header.names, header.notes) == (["text"], ())


def test_a_title_above_names_that_could_be_numbers(tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    path.write_text("My study,,,,\nitem,team,judge,inf,nat\n1,x,r,4,5\n")
    assert judgements(read(path), "criterion", "value") == [
        ("informativeness", "4.0"),
        ("naturalness", "5.0"),
    ]


def test_titles_above_dialogues_are_named(tmp_path: Path) -> None:
    path = tmp_path / "chats.csv"
    path.write_text("All chats,,\ndialogue,speaker,text\n1,user,Hi.\n")
    reader = read_dialogues(path)
    assert [turn.text for dialogue in reader for turn in dialogue.turns] == ["Hi."]
    assert "left what stands above the heading: 'All chats'" in reader.notes


def test_a_title_above_a_message_of_many_lines(tmp_path: Path) -> None:
    said = "\n".join(map(str, range(100)))
    path = tmp_path / "chats.csv"
    path.write_text(f'All chats,,\ndialogue,speaker,text\n1,user,"{said}"\n')
    (dialogue,) = read_dialogues(path)
    assert dialogue.turns[0].text == said
    path.write_text(f'item,system,rater,criterion,value\n1,alpha,"{said}",quality,3\n')
    assert len(read(path).frame) == 1  # and it is not cut off as well


def test_a_title_above_a_sheet(tmp_path: Path) -> None:
    xlsxwriter = pytest.importorskip("xlsxwriter")
    path = tmp_path / "ratings.xlsx"
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet()
        sheet.merge_range(0, 0, 0, 3, "Study of March")
        sheet.write_row(2, 0, ["Dialogue", "Model", "Rater", "Quality"])
        sheet.write_row(3, 0, ["d1", "alpha", "ann", 4])
    ratings = read(path)
    assert judgements(ratings, "item", "value", "row") == [("d1", "4.0", "4")]
    assert any("'Study of March'" in note for note in ratings.notes)


def test_a_row_of_totals_is_an_error_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(TABLE + "Total;;;;3,5\n", encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read_ratings(path)
    assert caught.value.problems[0] == "row 3: no system given"


def test_people_without_ratings(tmp_path: Path) -> None:
    path = tmp_path / "prolific.csv"
    path.write_text("Submission id,Participant id,Status,Age\n1,2,APPROVED,31\n", encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read(path)
    assert "Prolific's list of people" in (caught.value.hint or "")


# --- files that share only names with those of a tool -------------------------------------------------------

TURNS = messages("Hi.", "Hello!")


@pytest.mark.parametrize(
    "row",
    [
        {"choices": ["A", "B"]},
        {"choices": [{"text": "A"}]},
        {"response": {"choices": ["A"]}},
        {"question_id": 1, "model_id": "m", "choices": ["A"]},
        {"samples": [1, 2], "eval": {"model": "m"}},
        {"samples": [{"epoch": 1}], "eval": {}},
        {"message_tree_id": "t", "prompt": {"text": "Hi."}},
        {"message_tree_id": "t", "prompt": {"role": "prompter", "text": "Hi.", "replies": [3]}},
        {"events": []},
        {"events": [{"event": "click", "text": "x"}]},
        {"events": ["login"]},
        {"chosen": True, "rejected": False},
    ],
)
def test_dialogues_beside_fields_of_another_tool(row: dict[str, Any], tmp_path: Path) -> None:
    if "response" not in row and "prompt" not in row:
        path = lines(tmp_path / "messages.jsonl", {"id": "d1", "messages": TURNS, **row})
        assert [(d.id, len(d.turns)) for d in read_dialogues(path)] == [("d1", 2)]
        assert not is_responses(path)
    with contextlib.suppress(DataError):  # and no other error
        list(read_dialogues(lines(tmp_path / "alone.jsonl", row)))
    turns = [{"speaker": "user", "text": "Hi."}, {"speaker": "system", "text": "Hello!"}]
    path = lines(tmp_path / "turns.jsonl", {"id": "d1", "turns": turns, **row})
    (dialogue,) = read_dialogues(path)
    assert (dialogue.id, [turn.text for turn in dialogue.turns][:2]) == ("d1", ["Hi.", "Hello!"])


@pytest.mark.parametrize(
    "further", [{"annotations": "none", "data": "2024"}, {"annotations": [{"q": 1}], "context": "Hi."}]
)
def test_ratings_beside_fields_of_another_tool(further: dict[str, Any], tmp_path: Path) -> None:
    rating = {"item": "i", "system": "s", "rater": "r", "criterion": "q", "value": 3}
    ratings = read(lines(tmp_path / "long.jsonl", {**rating, **further}))
    assert judgements(ratings, "item", "value") == [("i", "3.0")]


@pytest.mark.parametrize("name", ["conversation", "messages", "turns"])
def test_a_comment_beside_a_whole_dialogue_is_no_turn(name: str, tmp_path: Path) -> None:
    path = tmp_path / "rated.csv"
    frame = {"dialogue_id": ["d1"], name: [json.dumps(TURNS)], "agent": ["gpt"], "comment": ["Nice."]}
    pl.DataFrame(frame).write_csv(path)
    (dialogue,) = read_dialogues(path)
    assert [turn.text for turn in dialogue.turns] == ["Hi.", "Hello!"]
    assert dialogue.labels["comment"] == "Nice."


def test_a_comment_beside_an_answer_is_no_turn(tmp_path: Path) -> None:
    path = tmp_path / "rated.csv"
    path.write_text(
        "conversation_id,agent,prompt,response,comment\n1,gpt,Hi.,Hello!,Nice.\n2,gpt,Hi.,No.,Bad.\n"
    )
    first, second = read_dialogues(path)
    assert [turn.text for turn in first.turns] == ["Hi.", "Hello!"]
    assert second.labels["comment"] == "Bad."


def test_a_comment_beside_turns_that_name_no_speaker_is_no_turn(tmp_path: Path) -> None:
    path = tmp_path / "rated.csv"
    frame = {"dialogue_id": ["d1"], "turns": ['["Hi.", "Hello!"]'], "sender": ["gpt"], "comment": ["Nice."]}
    pl.DataFrame(frame).write_csv(path)
    (dialogue,) = read_dialogues(path)
    assert [turn.text for turn in dialogue.turns] == ["Hi.", "Hello!"]


def test_tags_beside_a_comment_are_no_dialogue(tmp_path: Path) -> None:
    path = tmp_path / "tickets.csv"
    frame = {"Ticket ID": [7, 7], "Author": ["Mary", "Al"], "Comment": ["Hi.", "Hello."]}
    pl.DataFrame({**frame, "Tags": ['["billing"]'] * 2}).write_csv(path)
    assert said(path) == [(None, ["Hi.", "Hello."])]


HELLOS = [("alpha", ["Hi.", "Hello."]), ("beta", ["Hi.", "No."])]


@pytest.mark.parametrize(
    ("asked", "first", "second", "expected"),
    [
        ({"question": "Hi."}, "Hello.", "No.", HELLOS),
        ({"context": messages("Hi.")}, "Hello.", "No.", HELLOS),
        ({"prompt": ["Hi."]}, ["Hello."], ["No."], HELLOS),
        ({"prompt": "Hi."}, messages("", "Hello.")[1:], messages("", "No.")[1:], HELLOS),
        ({"prompt": "Hi."}, messages("Hi.", "Hello."), messages("Hi.", "No."), HELLOS),
        ({"context": ["1", "2", "3"]}, "4", "5", [("alpha", list("1234")), ("beta", list("1235"))]),
        ({"prompt": ["1", "3"]}, ["2", "4"], ["5", "6"], [("alpha", list("1234")), ("beta", list("1536"))]),
    ],
)
def test_what_a_battle_was_about(
    asked: dict[str, Any], first: Any, second: Any, expected: Any, tmp_path: Path
) -> None:
    row = {"id": 3, "model_a": "alpha", "model_b": "beta", "response_a": first, "response_b": second, **asked}
    assert said(lines(tmp_path / "battles.jsonl", row)) == expected


def test_events_of_another_tool_are_no_dialogue(tmp_path: Path) -> None:
    path = lines(tmp_path / "log.jsonl", {"id": "s1", "events": [{"event": "message", "text": "Hi."}]})
    with pytest.raises(DataError) as caught:
        list(read_dialogues(path))
    assert "there are no turns" in caught.value.problems[0]


def test_what_stands_beside_the_events_of_a_tracker_is_kept(tmp_path: Path) -> None:
    row = {"id": "s1", "rating": 4, "events": [{"event": "user", "text": "Hi."}]}
    (dialogue,) = read_dialogues(lines(tmp_path / "tracker.jsonl", row))
    assert (dialogue.id, dialogue.labels["rating"]) == ("s1", 4)


@pytest.mark.parametrize("name", ["text", "dialogue"])
def test_reviews_of_a_text_are_no_turns(name: str, tmp_path: Path) -> None:
    row = {"id": "1", name: "Hi. Hello.", "reviews": [{"author": "r", "comment": "Nice."}]}
    with pytest.raises(DataError):
        list(read_dialogues(lines(tmp_path / "texts.jsonl", row)))


def test_comments_of_a_ticket_are_turns(tmp_path: Path) -> None:
    row = {"id": 7, "comments": [{"author": "Mary", "body": "Hi."}, {"author": "Al", "body": "Hello."}]}
    assert said(lines(tmp_path / "tickets.jsonl", row)) == [(None, ["Hi.", "Hello."])]
