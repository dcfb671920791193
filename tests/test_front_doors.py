"""Palaver for people who write Python: signatures that tell, results that show themselves, helpful errors."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import polars as pl
import pytest

import palaver
from palaver import Item, Output, Question, Rating, Study, UserError, analyse, judge
from palaver.errors import in_python
from palaver.schema import Likert
from palaver.statistics.ranking import as_comparisons
from palaver.tabular import Tabular

SOURCE = Path(palaver.__file__).parent
FUNCTIONS = [name for name in palaver.__all__ if isinstance(getattr(palaver, name), FunctionType)]

RATINGS = [
    Rating(item=f"i{item}", system=system, rater=rater, criterion="quality", value=value + item % 2)
    for item in range(6)
    for system, value in (("a", 4.0), ("b", 2.0))
    for rater in ("ann", "bob")
]
TABLE = np.array([[4, 5, 4], [2, 1, 2], [5, 5, 4], [3, 3, 2], [1, 2, 1.0]])
GAMES = as_comparisons([0, 1, 0, 0], [1, 0, 1, 1], [1, 1, 1, 1])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_signature_tells_what_can_be_said(name: str) -> None:
    function = getattr(palaver, name)
    assert inspect.getdoc(function)
    hints = typing.get_type_hints(function)
    assert "return" in hints
    for parameter in inspect.signature(function).parameters.values():
        assert parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL), parameter
        assert parameter.name in hints, f"{parameter.name} has no type"


def test_every_class_says_what_it_is() -> None:
    for name in set(palaver.__all__) - set(FUNCTIONS) - {"__version__"}:
        assert inspect.getdoc(getattr(palaver, name)), name


def a_study() -> Study:
    outputs = (Output(system="a", text="Hello!"), Output(system="b", text="<b>no</b>"))
    return Study(
        name="mine",
        questions=(Question(criterion="quality", text="How good?", scale=Likert()),),
        items=tuple(Item(id=f"i{i}", context="Hi", outputs=outputs) for i in range(4)),
    )


def shout(text: str) -> str:
    """A system."""
    return text.upper()


def length(response: palaver.Response) -> int:
    """A judge."""
    return len(response.response or "")


RESULTS: dict[str, Callable[[], Any]] = {
    "analyse": lambda: analyse(RATINGS, n_replicates=50),
    "compare_agreement": lambda: palaver.compare_agreement(RATINGS, RATINGS, n_replicates=50),
    "ratings_from_frame": lambda: palaver.ratings_from_frame(palaver.simulate(a_study()).to_polars()),
    "simulate": lambda: palaver.simulate(a_study(), n_raters=5),
    "judge": lambda: judge(palaver.generate(shout, ["hello", "bye"]), length),
    "generate": lambda: palaver.generate(shout, ["hello", "bye"]),
    "evaluate": lambda: palaver.evaluate(["a b", "c"], ["a b", "d"], n_replicates=50),
    "score_texts": lambda: palaver.score_texts(palaver.load_recogniser(), ["I love parties!"]),
    "study": a_study,
    "record": lambda: analyse(RATINGS, n_replicates=50).run,
    "icc": lambda: palaver.icc(TABLE),
    "icc form": lambda: palaver.icc(TABLE)["ICC(2,k)"],
    "krippendorff_alpha": lambda: palaver.krippendorff_alpha(TABLE),
    "cohen_kappa": lambda: palaver.cohen_kappa([1, 0, 1, 1], [1, 0, 1, 0]),
    "fleiss_kappa": lambda: palaver.fleiss_kappa(np.array([[3, 0], [0, 3], [2, 1]])),
    "correlate": lambda: palaver.correlate(TABLE[:, 0], TABLE[:, 1]),
    "undefined": lambda: palaver.correlate([1, 1, 1], [1, 2, 3]),
    "normalise": lambda: palaver.normalise([50.0, 100.0], None, "log"),
    "paired_bootstrap": lambda: palaver.paired_bootstrap(TABLE, list("abc"), n_replicates=50, rng=0),
    "trueskill": lambda: palaver.trueskill(GAMES, 2),
    "bradley_terry": lambda: palaver.bradley_terry(GAMES, systems=["a", "b"]),
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_shows_itself(name: str) -> None:
    result = RESULTS[name]()
    assert isinstance(result, Tabular)
    assert re.fullmatch(r"\w+\([^\n]{5,200}\)", repr(result))
    shown = result._repr_html_()
    assert shown.startswith(f"<table><caption>{type(result).__name__}: ")
    assert "<td>" in shown
    assert "<b>" not in shown
    for table in result._tables():
        assert isinstance(result.to_polars(table), pl.DataFrame)
    assert result.to_polars().height > 0


def test_every_result_of_statistics_and_more_is_a_table() -> None:
    """What a front door gives is one of these: a table, a noun, a reader, a tool, a path or a number."""
    others = {"CorpusReader", "DialogueReader", "Encoder", "Judge", "Path", "ResponseReader", "Scorer"}
    others |= {"Selector", "StudyDraft", "System", "int"}
    for name in FUNCTIONS:
        given = typing.get_type_hints(getattr(palaver, name))["return"]
        if typing.get_origin(given) is None and given.__name__ not in others:
            assert issubclass(given, Tabular), name


def test_what_an_analysis_tells() -> None:
    analysis = analyse(RATINGS, n_replicates=50)
    ranking = analysis.to_polars()
    assert ranking.select("criterion", "system", "place", "score").rows() == [
        ("quality", "a", "1.", 4.5),
        ("quality", "b", "2.", 2.5),
    ]
    assert set(analysis.to_polars("methods")["method"]) > {"bootstrap"}
    agreement = analysis.to_polars("agreement")
    assert agreement.filter(pl.col("headline"))["value"].to_list() == [1.0]
    assert analysis.to_polars("correlation").columns[:2] == ["a", "b"]
    with pytest.raises(UserError, match="did you mean 'agreement'"):
        analysis.to_polars("agreements")


def test_a_ranking_puts_the_best_first() -> None:
    ahead = palaver.paired_bootstrap(TABLE[:, ::-1] * [0, 5, 1], ["x", "y", "z"], n_replicates=50, rng=0)
    assert ahead.to_polars()["system"].to_list() == ["y", "z", "x"]
    assert ahead.to_polars()["score"].to_list() == sorted(ahead.means, reverse=True)


def test_analyse_takes_ratings_however_they_come(tmp_path: Path) -> None:
    palaver.write_ratings(RATINGS, tmp_path / "ratings.csv")
    frame = pl.read_csv(tmp_path / "ratings.csv")
    whole = analyse(palaver.read_ratings(tmp_path / "ratings.csv"), n_replicates=50).ranking
    sources: list[Any] = [tmp_path / "ratings.csv", str(tmp_path / "ratings.csv"), frame, RATINGS]
    for source in sources:
        assert analyse(source, n_replicates=50).ranking == whole
    pytest.importorskip("pandas")
    assert analyse(frame.to_pandas(), n_replicates=50).ranking == whole


def test_a_simulation_and_a_judge_know_their_scales(tmp_path: Path) -> None:
    study = a_study()
    analysis = analyse(palaver.simulate(study), n_replicates=50)
    assert analysis.title == "mine"
    assert "guess" not in analysis.criteria[0].treated_as
    judged = judge(palaver.generate(shout, ["hello", "bye"]), [length, "words"])
    assert judged.to_polars()["value"].to_list() == [5.0, 3.0, 1.0, 1.0]
    assert {c.criterion: c.direction for c in analyse(judged, n_replicates=50).criteria} == {
        "length": "higher",
        "words": "neither",
    }


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: analyse([{"item": 1}]), "expected ratings, found list of dict"),
        (lambda: analyse(3), "expected ratings, found int"),
        (lambda: analyse(palaver.icc(TABLE)), "IccResult has no table 'ratings'"),
        (lambda: palaver.read_dialogues([{"turns": []}]), "expected the path of a file, found list"),
        (lambda: palaver.read_responses({"id": 1}), "expected the path of a file, found dict"),
        (lambda: palaver.read_ratings([{"id": 1}]), "expected the path of a file, found dict"),
        (lambda: palaver.load_study({"name": 1}), "expected the path of a file, found dict"),
        (lambda: judge([{"id": 1}], "words"), "expected a file, or Responses or Dialogues, found dict"),
        (lambda: judge([], "words"), "found nothing"),
        (lambda: judge([], 3), "int is neither a judge nor a function"),
        (lambda: palaver.evaluate("one text"), "predictions: expected a list, found the text 'one text'"),
        (lambda: palaver.score_texts(palaver.load_recogniser(), "me"), "texts: expected a list"),
        (lambda: palaver.probe("wordllama"), "encoders: expected a list"),
        (lambda: palaver.make_selector("tfidf", "one"), "sentences: expected a list"),
        (lambda: palaver.make_selector("tfidf", k1=3), "the selector tfidf takes no k1"),
        (lambda: list(palaver.generate(shout, [3])), "context 1: expected a text or a Dialogue, found 3"),
        (lambda: palaver.write_report("x", "x.html"), "analysis: expected Analysis, found 'x'"),
        (lambda: palaver.write_ratings([{}], "x.csv"), "ratings: expected Rating, found {}"),
        (lambda: palaver.write_dialogues([{}], "x.csv"), "dialogues: expected Dialogue, found {}"),
        (lambda: palaver.simulate({}), "expected the path of a file, found dict"),
    ],
)  # fmt: skip
def test_a_wrong_type_is_said_in_a_sentence(
    call: Callable[[], Any], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=re.escape(words)):
        call()


def test_tools_are_printed_by_their_name() -> None:
    tools = [
        palaver.open_judge("unigram_f1"),
        palaver.make_selector("bm25", ["a"]),
        palaver.load_recogniser(),
    ]
    assert [repr(tool) for tool in tools] == [
        "MetricJudge('unigram_f1')",
        "Bm25Selector('bm25')",
        "LinearRecogniser('default')",
    ]


def test_a_file_that_cannot_be_analysed_says_who_takes_the_arguments(tmp_path: Path) -> None:
    path = tmp_path / "pilot.csv"
    path.write_text("item,system,rater,criterion,value\n1,a,x,q,3\n1,b,,q,3\n")
    with pytest.raises(UserError) as caught:
        analyse(path)
    assert str(caught.value).startswith(f"{path}: 1 row of 2 cannot be used")
    assert "skip_bad=True" in str(caught.value)
    assert "give this to `read_ratings`" in str(caught.value)


def test_without_torch_the_comparator_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(UserError, match="pip install"):
        palaver.score([])


def test_readers_name_their_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    palaver.write_dialogues([r.as_dialogue() for r in palaver.generate(shout, ["hi"])], "chats.jsonl")
    assert repr(palaver.read_dialogues("chats.jsonl")) == "DialogueReader('chats.jsonl')"
    assert repr(palaver.read_corpus("chats.jsonl")) == "CorpusReader('chats.jsonl': 0 dialogues so far)"


def test_errors_of_frames_call_them_what_they_are() -> None:
    frame = pl.DataFrame({"thing": ["x"], "quality": ["1"], "rater": ["r"], "system": ["s"]})
    with pytest.raises(UserError) as caught:
        palaver.ratings_from_frame(frame, name="pilot")
    assert "pilot" in str(caught.value)
    assert 'columns={"item": "NAME"}' in str(caught.value)
    assert "--" not in str(caught.value)


@pytest.mark.parametrize(
    ("said", "in_words"),
    [
        ("choose another place with --out, or add --force to begin anew",
         "choose another place, or add fresh=True to begin anew"),
        ("add --force to replace it", "add force=True to replace it"),
        ("say which one it is: --column item=NAME", 'say which one it is: columns={"item": "NAME"}'),
        ("add --rename 'Ann Lee'='Ann'", 'add rename={"Ann Lee": "Ann"}'),
        ("mend them, or add --skip-bad", "mend them, or add skip_bad=True"),
        ("add --skip-bad to `study analyse` to leave them out; "
         "other commands take the ratings.parquet that it writes",
         "add skip_bad=True to leave them out"),
        ("use --device cpu", 'use device="cpu"'),
        ("with --scale LOW HIGH", "with scale=(LOW, HIGH)"),
        ("name them: --speakers A,B", 'name them: speakers=["A", "B"]'),
        ('say it: --criteria "age"', 'say it: criteria=["age"]'),
        ("add --criteria fun,age to take it", 'add criteria=["fun", "age"] to take it'),
        ('--labels "Poor=1,Good=4" or --labels "fun:Bad,Good"',
         'labels={"Poor": 1, "Good": 4} or labels={"fun": ["Bad", "Good"]}'),
        ("fewer with --min-utterances (and --size)", "fewer with min_utterances= (and size=)"),
        ("use --cache FOLDER or --no-cache", 'use cache="FOLDER" or cache=None'),
        ("try: --set optimiser.batch=16", 'try: assignments=["optimiser.batch=16"]'),
        ("palaver corpus get x --from PATH, or --data", "palaver corpus get x --from PATH, or data="),
        ("with: pip install --force-reinstall x", "with: pip install --force-reinstall x"),
        ("expected a number, found '--good' or \"--out\"", "expected a number, found '--good' or \"--out\""),
        ("a -- b --- c", "a -- b --- c"),
    ],
)  # fmt: skip
def test_python_reads_python(said: str, in_words: str) -> None:
    assert in_python(said) == in_words
    error = UserError(said, said, [said])
    assert str(error) == f"{in_words}\n  - {in_words}\n{in_words}"
    assert (error.message, error.hint, error.problems) == (said, said, (said,)), "for the command line"


ONLY_COMMANDS = {"cli", "server", "reproduce"}
"""Rooms that nobody enters but by a command."""


OPTION = re.compile(r"(?<![\w'\"-])(?<!var\()--[a-z]")
"""Not a variable of a style sheet."""


def texts(tree: ast.AST) -> Iterator[str]:
    """Every text that is not a docstring; what an f-string puts in is called `x`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "x" for part in node.values]
            yield "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        else:
            yield from texts(node)


def arguments(tree: ast.Module) -> Iterator[str]:
    """The parameters of public functions and the fields of public classes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and (node.name == "__init__" or node.name[0] != "_"):
            yield from (one.arg for one in (*node.args.args, *node.args.kwonlyargs))
        elif isinstance(node, ast.ClassDef) and node.name[0] != "_":
            fields = [part.target for part in node.body if isinstance(part, ast.AnnAssign)]
            yield from (field.id for field in fields if isinstance(field, ast.Name))


def test_every_option_in_a_message_has_its_argument() -> None:
    known: set[str] = set()
    messages: list[str] = []
    for path in SOURCE.rglob("*.py"):
        if path.relative_to(SOURCE).parts[0] in ONLY_COMMANDS:
            continue
        source = path.read_text(encoding="utf-8")
        tree = ast.parse(source)
        known.update(arguments(tree))
        if path.name != "errors.py" and OPTION.search(source):
            messages += [text for text in texts(tree) if OPTION.search(text)]
    assert len(messages) > 40
    for text in messages:
        told = in_python(text)
        assert not OPTION.search(re.sub(r"(palaver|pip|ray|inspect log) [a-z][^`(,;\n]*", "", told)), text
        for name in re.findall(r"\b([a-z_]+)=", told):
            assert name in known or f"{name}=" in text, f"no function takes {name}=: {text}"


def test_what_tab_shows() -> None:
    assert dir(palaver) == sorted(palaver.__all__)
    text = inspect.getdoc(analyse) or ""
    assert text.startswith("Which system is better")
    assert all(name in text for name in ("ratings", "normalise", "directions", "study", "seed"))
