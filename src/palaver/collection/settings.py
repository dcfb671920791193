"""A collection file (TOML) into a `Collection`, with every mistake named at once and in its line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.resources import files
from itertools import permutations
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, ValidationError, model_validator

from palaver.collection.records import KNOWLEDGE_SOURCE, SOURCES
from palaver.collection.rules import Lineup, Rules
from palaver.config import Lines, Location, config_error, parse_toml, read_toml
from palaver.errors import UserError, explain_mistake, nearest
from palaver.schema import Checkboxes, Completion, Item, Output, Question, Study, SurveyQuestion
from palaver.schema.base import FrozenDict, Name, Noun, Text
from palaver.schema.translation import Translation, Translations, read_words, translation_problems

PRESETS = {
    "topical-chat": "two people talk about what they have read, and annotate every turn (as Topical-Chat)",
    "talk-and-rate": "people talk with your bot and rate it, turn by turn and at the end",
    "arena": "people talk with two bots at once, blind, and say which is better",
}
_BOT = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\s|]([^|\n]*[^\s|])?$")]


class Partners(Noun):
    """Whom people talk with."""

    bots: tuple[_BOT, ...] = ()
    """Names of systems, as `palaver chat` takes them; without any, people talk with each other."""
    compare: Literal["in turn", "side by side"] | None = None
    """With two or more bots, how each person meets two of them; otherwise each person meets one."""
    substitute: _BOT | None = None
    """The bot that somebody whose partner left may go on with."""
    meetings: tuple[tuple[Name, Name], ...] = ()
    """Which groups of people may meet; a link says its group (`?group=NAME`). Without any, anybody."""
    same_language: bool = Field(default=True, strict=True)
    """Whether only people who read the pages in the same language meet."""
    disclosed: bool = Field(default=True, strict=True)
    """Whether people are told that a bot is one."""
    reveal: bool = Field(default=False, strict=True)
    """Whether people who have rated a conversation with bots are told their names."""
    characters_per_second: float = Field(default=25, gt=0)
    """How fast a bot seems to type; what it says comes no sooner."""

    @model_validator(mode="after")
    def _check(self) -> Partners:
        if len(set(self.bots)) != len(self.bots):
            raise ValueError(f"bots: one is named twice: {list(self.bots)}")
        if self.compare is not None and len(self.bots) < 2:
            raise ValueError(f"compare: to compare bots takes two, found {len(self.bots)}")
        if self.meetings and self.bots:
            raise ValueError("meetings: this is for conversations between people, and bots are named")
        if self.reveal and not self.bots:
            raise ValueError("reveal: there are no bots whose names could be told")
        if self.substitute is not None and self.bots:
            raise ValueError("substitute: this is for conversations between people, and bots are named")
        return self


class Course(Noun):
    """How a conversation goes. Times are in the unit of their name."""

    fewest_turns: int = Field(default=20, ge=1, le=1000, strict=True)
    alternating: bool = Field(default=True, strict=True)
    per_person: int = Field(default=1, ge=1, strict=True)
    wanted: int | None = Field(default=None, ge=1, strict=True)
    """How many conversations; without it as many as the articles allow, or without knowledge any number."""
    longest_message: int = Field(default=2000, ge=1, le=20_000, strict=True)
    wait_minutes: float = Field(default=5, gt=0)
    grace_seconds: float = Field(default=60, ge=0)
    idle_minutes: float = Field(default=10, gt=0)
    bot_seconds: float = Field(default=60, gt=0)
    count_pasted: bool = Field(default=False, strict=True)
    """Whether pages count pasted characters; the consent says so then."""


class Knowledge(Noun):
    """What people read."""

    base: Name = "sample"
    """`sample`, which ships, or a file that `palaver knowledge build` wrote."""
    configurations: Text | None = None
    """A file of configurations; without one, A to D of the paper."""
    most_uses: int = Field(default=4, ge=1, strict=True)
    """Conversations about one article."""


class Collection(Noun):
    """A whole collection, as its file says it."""

    name: Name
    title: Text = ""
    instructions: Text = ""
    language: Name = "en"
    translations: Translations = Field(default_factory=dict, validate_default=True)
    """Both as of a study."""
    consent: Text = ""
    contact: Text = ""
    seed: int = Field(default=0, ge=0, strict=True)
    partners: Partners = Partners()
    conversation: Course = Course()
    knowledge: Knowledge | None = None
    about_own: tuple[Question, ...] = ()
    about_partner: tuple[Question, ...] = ()
    about_replies: tuple[Question, ...] = ()
    about_whole: tuple[Question, ...] = ()
    about_pair: tuple[Question, ...] = ()
    survey: tuple[SurveyQuestion, ...] = ()
    completion: Completion = Completion()
    quality: Mapping[str, Any] = Field(default_factory=dict)
    qualification: Mapping[str, Any] = Field(default_factory=dict)
    pay: Mapping[str, Any] = Field(default_factory=dict)
    bonus: Mapping[str, Any] = Field(default_factory=dict)
    """These four are `standards`: `palaver collect check` reads them, and they may change at any time."""

    @model_validator(mode="after")
    def _check(self) -> Collection:
        problems = [text for _, text in collection_problems(self)]
        if problems:
            raise ValueError("; ".join(problems))
        return self

    @property
    def lineups(self) -> tuple[Lineup, ...]:
        """Whom people may talk with, each as often as the others."""
        bots, compare = self.partners.bots, self.partners.compare
        if compare is None:
            return tuple(((bot,),) for bot in bots)
        pairs = list(permutations(bots, 2))
        if compare == "side by side":
            return tuple((pair,) for pair in pairs)
        return tuple(((first,), (second,)) for first, second in pairs)

    def rules(self, n_plans: int | None) -> Rules:
        """What the host goes by. `n_plans`: how many conversations are planned."""
        course = self.conversation
        return Rules(
            lineups=self.lineups,
            substitute=self.partners.substitute,
            meetings=self.partners.meetings,
            same_language=self.partners.same_language,
            fewest_turns=course.fewest_turns,
            alternating=course.alternating,
            most_conversations=course.per_person,
            n_plans=n_plans,
            longest_message=course.longest_message,
            wait_seconds=60 * course.wait_minutes,
            grace_seconds=course.grace_seconds,
            idle_seconds=60 * course.idle_minutes,
            bot_seconds=course.bot_seconds,
            about_own=self.about_own,
            about_partner=self.about_partner,
            about_replies=self.about_replies,
            about_whole=self.about_whole,
            about_pair=self.about_pair,
            reveal=self.partners.reveal,
            seed=self.seed,
        )

    def frame(self) -> Study:
        """What people meet around a conversation, as the study that the server knows: consent, instructions,
        survey and the way out. Its one item stands for the conversation."""
        stand_in = Question.model_validate({"criterion": "held", "text": "?", "scale": {"kind": "binary"}})
        return Study(
            name=self.name,
            title=self.title,
            instructions=self.instructions,
            language=self.language,
            translations={
                language: translation.model_copy(update={"questions": FrozenDict()})
                for language, translation in self.translations.items()
            },
            consent=self.consent,
            contact=self.contact,
            seed=self.seed,
            survey=self.survey,
            completion=self.completion,
            questions=(stand_in,),
            items=(Item(id="conversation", outputs=(Output(system="partner", text="conversation"),)),),
        )

    @property
    def questions(self) -> tuple[Question, ...]:
        """Everything that is asked about messages and conversations."""
        return (*self.about_own, *self.about_partner, *self.about_whole, *self.about_pair)


ASKED = ("about_own", "about_partner", "about_replies", "about_whole", "about_pair")
"""The tables of questions."""
_ABOUT_TWO = ("about_replies", "about_pair")


def collection_problems(collection: Collection) -> Iterator[tuple[Location, str]]:
    """Every way in which sound parts do not fit together, with the place of each."""
    compares = collection.partners.compare is not None
    seen: dict[str, str] = {}
    for key in ASKED:
        questions: tuple[Question, ...] = getattr(collection, key)
        for place, question in enumerate(questions):
            where = (key, place, "criterion")
            if question.criterion in seen:
                yield where, f"criterion {question.criterion!r} is asked twice"
            seen[question.criterion] = key
            is_pair = question.scale.form == "pair"
            if is_pair and key not in _ABOUT_TWO:
                yield (key, place, "scale"), "a pairwise question belongs under [[about_pair]]"
            elif not is_pair and key in _ABOUT_TWO:
                yield (key, place, "scale"), 'expected a pairwise question: { kind = "pairwise" }'
            elif question.scale.side_by_side and not is_pair:
                yield (key, place, "scale"), f"{question.scale.kind!r} needs several outputs on one screen"
            elif question.scale.form == "text":
                yield (key, place, "scale"), "free text is asked for in studies, not in collections"
            if question.shown_if is not None:
                yield (key, place, "shown_if"), "conditions are for studies, not for collections"
            if question.per == "turn":
                yield (key, place, "per"), "questions about each message stand under [[about_partner]]"
    yield from translation_problems(collection.translations, collection.questions, collection.survey)
    if collection.about_pair and not compares:
        yield ("about_pair",), "nothing is compared: say how under [partners] compare"
    if collection.about_replies and collection.partners.compare != "side by side":
        yield ("about_replies",), 'two replies need bots with compare = "side by side" under [partners]'
    source = next((q for q in collection.about_own if q.criterion == KNOWLEDGE_SOURCE), None)
    if source is not None and collection.knowledge is not None:
        options = source.scale.options if isinstance(source.scale, Checkboxes) else ()
        unknown = [option for option in options if option not in SOURCES]
        if not options or unknown:
            text = f"expected checkboxes among {', '.join(SOURCES)}"
            yield ("about_own", collection.about_own.index(source), "scale"), text


def load_collection(path: str | Path) -> Collection:
    """The collection described by a TOML file. All mistakes are reported together."""
    data, lines = read_toml(path)
    return _build(Path(path), data, lines, Path(path).parent)


def parse_collection(text: str, name: str) -> Collection:
    """The same from a text; errors call it `name`."""
    data, lines = parse_toml(text, name)
    return _build(Path(name), data, lines)


def preset_text(name: str) -> str:
    """The collection file of a preset."""
    if name not in PRESETS:
        raise UserError(
            f"there is no preset {name!r}{nearest(name, list(PRESETS))}", f"known: {', '.join(PRESETS)}"
        )
    return (files("palaver.collection") / "presets" / f"{name}.toml").read_text(encoding="utf-8")


def _build(path: Path, data: dict[str, Any], lines: Lines, folder: Path | None = None) -> Collection:
    data, mistakes = read_words(data, folder)
    try:
        collection = Collection.model_validate(data)
        if not mistakes:
            return collection
    except ValidationError as error:
        mistakes += _explain(error, data)
    raise config_error(path, lines, mistakes)


def _explain(error: ValidationError, data: dict[str, Any]) -> Iterator[tuple[Location, str]]:
    for mistake in error.errors():
        place = tuple(part for part in mistake["loc"] if part != "function-plain")
        if mistake["type"] == "scale_kind":
            yield place, str(mistake["ctx"]["text"])
        elif mistake["type"] == "value_error" and not place:  # parts that do not fit: with their places
            whole = Collection.model_construct(**_parts(data))
            yield from collection_problems(whole)
        else:
            yield place, explain_mistake(mistake, _fields_at(place))


def _parts(data: dict[str, Any]) -> dict[str, Any]:
    """The parts, of which each is sound, as nouns."""
    kinds: dict[str, type[Noun]] = {"partners": Partners, "conversation": Course, "knowledge": Knowledge}
    parts = {key: kind.model_validate(data[key]) for key, kind in kinds.items() if key in data}
    asked = {key: tuple(map(Question.model_validate, data.get(key, ()))) for key in ASKED}
    survey = tuple(map(SurveyQuestion.model_validate, data.get("survey", ())))
    translations = {key: Translation.model_validate(t) for key, t in data.get("translations", {}).items()}
    return {**parts, **asked, "survey": survey, "translations": translations}


def _fields_at(place: Location) -> list[str]:
    tables: dict[str | int, type[Noun]] = {
        "partners": Partners,
        "conversation": Course,
        "knowledge": Knowledge,
        "survey": SurveyQuestion,
        "completion": Completion,
        "translations": Translation,
        **dict.fromkeys(ASKED, Question),
    }
    noun = tables.get(place[0], Collection) if len(place) > 1 else Collection
    return list(noun.model_fields)
