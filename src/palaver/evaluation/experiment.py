"""`experiment.toml`: systems, test contexts and judges in one file. Every mistake is named with its line.

Paths are relative to the file. Nothing is opened here but what a mistake in the file can be seen by.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from pydantic import Field, ValidationError, field_validator, model_validator

from palaver.config import Location, config_error, read_toml
from palaver.corpora.catalogue import CORPORA
from palaver.engine import parse_engine
from palaver.errors import NO_FIELD, ConfigError, UserError, nearest
from palaver.generation.options import PythonOptions, Strict, explain
from palaver.generation.systems_file import SystemSpec, find_system, parse_systems
from palaver.judges.catalogue import JUDGES, judge_names
from palaver.judges.llm import Budget
from palaver.metrics.metric import METRICS
from palaver.registry import is_object_name

Mistake = tuple[Location, str]
Table = TypeVar("Table", bound=Strict)


class ContextOptions(Strict):
    """[test]: what the systems answer."""

    contexts: str = Field(min_length=1, description="dialogues, responses, a .txt, or a corpus by name")
    split: str | None = Field(None, description="only this split of a corpus")
    every_turn: bool = Field(False, description="every turn but the first is a reference to its history")
    limit: int | None = Field(None, ge=1, description="only the first so many")
    knowledge: str | None = Field(None, description="a text file; the sentence that fits best is used")
    selector: str | None = Field(None, description="chooses each reply's sentence from its reading set")
    columns: dict[str, str] = Field({}, description="field -> its name in the file")

    @model_validator(mode="after")
    def _one_source_of_knowledge(self) -> Self:
        if self.knowledge is not None and self.selector is not None:
            raise ValueError("knowledge and selector were both given; give one of them")
        return self


class StudyPlan(Strict):
    """How a study is made of the responses."""

    preset: Literal["likert", "rankme", "pairwise", "snippet"] = Field("likert", description="what is asked")
    sample: int | None = Field(None, ge=1, description="so many contexts, drawn by the seed")
    pairs: int | None = Field(None, ge=1, description="of pairwise: so many pairs of systems a context")
    distinct_by: str | None = Field(None, description="at most one context of each, such as conversation")
    layout: Literal["joint", "separate"] | None = Field(None, description="criteria on one screen, or each")


class LlmJudge(StudyPlan):
    """[[judges.llm]]: a language model that answers a study as a person would."""

    name: str = Field(min_length=1, description="smollm2, a folder, or a system of kind openai")
    repeats: int = Field(1, ge=1, description="how often it is asked each question")
    both_orders: bool = Field(True, description="outputs side by side are asked about in both orders")
    token_limit: int | None = Field(None, ge=1, description="most tokens that it may take and give")
    cost_limit: float | None = Field(None, ge=0, description="most money that it may cost")
    token_prices: list[float] = Field(
        [0.0, 0.0], min_length=2, max_length=2, description="of a million tokens read and written"
    )

    @model_validator(mode="after")
    def _limit_has_prices(self) -> Self:
        if self.cost_limit is not None and not any(self.token_prices):
            raise ValueError("cost_limit needs token_prices = [IN, OUT], of a million tokens")
        return self

    def budget(self) -> Budget:
        price_in, price_out = self.token_prices
        return Budget(tokens=self.token_limit, money=self.cost_limit, token_prices=(price_in, price_out))


class Judges(Strict):
    """[judges]: who rates besides people."""

    by: list[str] = Field([], description="names as `palaver judge --by` takes them")


class SimulatedPeople(StudyPlan):
    """[people.simulate]: raters with known truth, to try out an experiment."""

    raters: int = Field(20, ge=1, description="how many there are")
    truth: dict[str, float] | None = Field(None, description="each system's quality")
    gap: float = Field(0.4, ge=0, description="between systems, the first one best, where truth is not given")
    noise: float = Field(0.7, ge=0, description="from one judgement of a rater to the next")
    bias: float = Field(0.5, ge=0, description="between raters")
    careless: float = Field(0.05, ge=0, le=1, description="share of raters who do not read")


class People(Strict):
    """[people]: one of imported ratings, a study to serve, simulated raters."""

    ratings: str | list[str] | None = Field(None, description="rating files in any usual shape")
    columns: dict[str, str] = Field({}, description="field -> its name in the rating files")
    study: StudyPlan | None = Field(None, description="a study to serve")
    simulate: SimulatedPeople | None = Field(None, description="simulated raters")

    @model_validator(mode="after")
    def _one_of_three(self) -> Self:
        given = [name for name in ("ratings", "study", "simulate") if getattr(self, name) is not None]
        if len(given) != 1:
            named = " and ".join(given) or "none"
            raise ValueError(f"expected one of ratings, study and simulate, found {named}")
        return self

    @property
    def files(self) -> list[str]:
        if self.ratings is None:
            return []
        return [self.ratings] if isinstance(self.ratings, str) else self.ratings


class ReportOptions(Strict):
    """[report]: how the answer is told."""

    reference: str | None = Field(None, description="the system that the others are compared with")
    confidence: float = Field(0.95, gt=0.5, lt=1, description="of intervals and groups")
    examples: int = Field(30, ge=0, le=500, description="how many are shown")


class _Head(Strict):
    title: str = ""
    seed: int | None = Field(None, ge=0)
    engine: str | None = None

    @field_validator("engine")
    @classmethod
    def _engine_is_known(cls, said: str | None) -> str | None:
        if said is not None:
            try:
                parse_engine(said)
            except UserError as error:
                raise ValueError(f"{error.message}; {error.hint}") from None
        return said


TABLES = ("systems", "test", "judges", "people", "report")


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """What is compared, on what, by whom."""

    path: Path
    title: str
    seed: int | None
    """Of the replies of systems whose tables name none, of samples and of statistics."""
    test: ContextOptions
    systems: Mapping[str, SystemSpec]
    judges: tuple[str, ...]
    llm_judges: tuple[LlmJudge, ...]
    people: People | None
    report: ReportOptions
    engine: str | None = None
    """Where replies and ratings are made, as `--engine` says it; nothing depends on it."""

    @property
    def folder(self) -> Path:
        return self.path.parent

    @property
    def contexts_source(self) -> str:
        """The file of contexts, or the name of a corpus."""
        beside = self.folder / self.test.contexts
        return str(beside) if beside.is_file() else self.test.contexts

    @property
    def rating_files(self) -> list[Path]:
        return [self.folder / name for name in (self.people.files if self.people else ())]

    def settings(self) -> dict[str, Any]:
        """Everything that the file says, for the record of the run."""
        return {
            "title": self.title,
            "test": self.test.model_dump(exclude_defaults=True),
            "systems": {
                name: spec.options.model_dump(exclude_defaults=True) for name, spec in self.systems.items()
            },
            "judges": list(self.judges),
            "llm_judges": [judge.model_dump(exclude_defaults=True) for judge in self.llm_judges],
            "people": self.people.model_dump(exclude_defaults=True) if self.people else None,
            "report": self.report.model_dump(exclude_defaults=True),
        }


def load_experiment(path: str | Path) -> Experiment:
    """Read an experiment file; all mistakes are reported together."""
    path = Path(path)
    data, lines = read_toml(path)
    reader = _Reader(path.parent, data)
    experiment = reader.read(path)
    if reader.mistakes or experiment is None:
        raise config_error(path, lines, reader.mistakes)
    return experiment


class _Reader:
    """Goes through the tables of a file and collects what is wrong."""

    def __init__(self, folder: Path, data: dict[str, Any]) -> None:
        self.folder = folder
        self.data = data
        self.mistakes: list[Mistake] = []

    def read(self, path: Path) -> Experiment | None:
        known = [*_Head.model_fields, *TABLES]
        for key in self.data:
            if key not in known:
                self.mistakes.append(((key,), f"{NO_FIELD}{nearest(key, known)}"))
        head = self._table(_Head, (), {key: self.data[key] for key in _Head.model_fields if key in self.data})
        systems = self._systems()
        if "test" not in self.data:
            self._wrong(("test",), 'is missing: [test] with contexts = "questions.txt"')
        test = self._table(ContextOptions, ("test",), self.data.get("test", {"contexts": "-"}))
        if test is not None and "test" in self.data:
            self._check_contexts(test.contexts)
            if test.knowledge is not None:
                self._check_file(("test", "knowledge"), test.knowledge)
        elif isinstance(self.data.get("test"), dict) and isinstance(self.data["test"].get("contexts"), str):
            self._check_contexts(self.data["test"]["contexts"])  # something else in the table is wrong
        judges, llm_judges = self._judges()
        people = self._people() if "people" in self.data else None
        if not judges and not llm_judges and "people" not in self.data and "judges" not in self.data:
            self._wrong(("judges",), 'nobody judges: give [judges] by = ["unigram_f1"] or [people]')
        report = self._table(ReportOptions, ("report",), self.data.get("report", {}))
        if report is not None and report.reference is not None and systems:
            self._check_name(("report", "reference"), report.reference, list(systems))
        if head is None or test is None or report is None or self.mistakes:
            return None
        return Experiment(
            path=path,
            title=head.title or path.stem,
            seed=head.seed,
            test=test,
            systems=systems,
            judges=tuple(judges),
            llm_judges=tuple(llm_judges),
            people=people,
            report=report,
            engine=head.engine,
        )

    def _wrong(self, place: Location, text: str) -> None:
        self.mistakes.append((place, text))

    def _table(self, kind: type[Table], place: Location, table: Any) -> Table | None:
        if not isinstance(table, dict):
            self._wrong(place, f"expected a table [{'.'.join(map(str, place))}]")
            return None
        try:
            return kind.model_validate(table)
        except ValidationError as error:
            for inner, text in explain(error, kind):
                self._wrong((*place, *inner), text)
            return None

    def _check_name(self, place: Location, name: str, known: list[str]) -> None:
        if name not in known:
            self._wrong(place, f"there is no system {name!r}{nearest(name, known)}")

    def _check_file(self, place: Location, name: str) -> None:
        path = self.folder / name
        if not path.is_file():
            self._wrong(place, f"there is no file {path}")

    def _systems(self) -> dict[str, SystemSpec]:
        if "systems" not in self.data:
            self._wrong(("systems",), 'is missing: systems = ["default", "mine"], or tables [systems.NAME]')
            return {}
        said = self.data["systems"]
        if not isinstance(said, list):
            specs, mistakes = parse_systems(said, self.folder)
            self.mistakes += mistakes
            return specs
        if not said:
            self._wrong(("systems",), "expected at least one system")
        beside = self.folder / "systems.toml"
        specs = {}
        for place, name in enumerate(said):
            if not isinstance(name, str) or not name:
                self._wrong(("systems", place), f"expected the name of a system, found {name!r}")
                continue
            if name in specs:
                self._wrong(("systems", place), f"{name!r} is there twice")
            try:
                spec = find_system(name, beside if beside.is_file() else None)
            except ConfigError as error:
                self._wrong(("systems", place), f"{error.message} {'; '.join(error.problems)}")
                continue
            except UserError as error:
                self._wrong(("systems", place), error.message)
                continue
            if isinstance(spec.options, PythonOptions):
                spec = replace(spec, folder=self.folder)  # its module may lie beside the file
            specs[name] = spec
        return specs

    def _check_contexts(self, contexts: str) -> None:
        is_corpus = contexts in CORPORA or is_object_name(contexts)
        if not is_corpus and not (self.folder / contexts).is_file():
            known = [*CORPORA, *(path.name for path in self.folder.iterdir() if path.is_file())]
            self._wrong(
                ("test", "contexts"), f"there is no file or corpus {contexts!r}{nearest(contexts, known)}"
            )

    def _judges(self) -> tuple[list[str], list[LlmJudge]]:
        table = self.data.get("judges", {})
        if not isinstance(table, dict):
            self._wrong(("judges",), 'expected a table [judges] with by = ["unigram_f1"]')
            return [], []
        llm_tables = table.get("llm", [])
        judges = self._table(Judges, ("judges",), {key: table[key] for key in table if key != "llm"})
        by = judges.by if judges else []
        known = judge_names()
        for place, name in enumerate(by):
            if name in by[:place]:
                self._wrong(("judges", "by", place), f"{name!r} is there twice")
            first = name.partition("=")[0]
            if first not in JUDGES and first not in METRICS and not is_object_name(name):
                self._wrong(("judges", "by", place), f"there is no judge {name!r}{nearest(first, known)}")
        if not isinstance(llm_tables, list):
            self._wrong(("judges", "llm"), "expected tables [[judges.llm]], each with a name")
            return by, []
        llm_judges = []
        for place, llm in enumerate(llm_tables):
            judge = self._table(LlmJudge, ("judges", "llm", place), llm)
            if judge is not None:
                llm_judges.append(judge)
        names = [judge.name for judge in llm_judges]
        for place, name in enumerate(names):
            if name in names[:place]:
                self._wrong(("judges", "llm", place, "name"), f"{name!r} is there twice")
        if judges is not None and "judges" in self.data and not by and not llm_tables:
            self._wrong(("judges",), 'nobody is named: by = ["unigram_f1"], or a table [[judges.llm]]')
        return by, llm_judges

    def _people(self) -> People | None:
        """[people], its inner tables read on their own, so that a misspelled field is found in each."""
        table = self.data["people"]
        if not isinstance(table, dict):
            self._wrong(("people",), 'expected a table [people] with ratings = "people.csv"')
            return None
        before = len(self.mistakes)
        for name, kind in (("study", StudyPlan), ("simulate", SimulatedPeople)):
            if name in table:
                self._table(kind, ("people", name), table[name])
        if len(self.mistakes) > before:
            return None
        people = self._table(People, ("people",), table)
        if people is None:
            return None
        for place, name in enumerate(people.files):
            where: Location = ("people", "ratings")
            self._check_file(where if isinstance(people.ratings, str) else (*where, place), name)
        simulated = people.simulate
        named = self.data.get("systems", {})
        if simulated is not None and simulated.truth is not None:
            for name in simulated.truth:
                self._check_name(("people", "simulate", "truth", name), name, list(named))
            for name in named:
                if name not in simulated.truth:
                    self._wrong(("people", "simulate", "truth"), f"is missing the quality of {name!r}")
        return people


def fields_of_tables() -> Iterator[tuple[str, str, Any, str]]:
    """Table, field, default and meaning of everything that may stand in the file; for the page about it."""
    tables: dict[str, type[Strict]] = {
        "test": ContextOptions, "judges": Judges, "judges.llm": LlmJudge, "people": People,
        "people.study": StudyPlan, "people.simulate": SimulatedPeople, "report": ReportOptions,
    }  # fmt: skip
    for table, kind in tables.items():
        for name, field in kind.model_fields.items():
            yield table, name, field.default, field.description or ""
