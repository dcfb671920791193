"""Language models as raters of a study: the same screens, orders, scales and checks that people have."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from palaver import __version__
from palaver.artefacts import digest
from palaver.engine import Failures, RowError
from palaver.errors import UserError, count_of
from palaver.files import cache_home
from palaver.judges.llm_models import Answer, LanguageModel
from palaver.judges.llm_prompts import VERSION, Prompt, Slot, prompts_of
from palaver.progress import Progress, no_progress
from palaver.readers.rating_files import ratings_frame, with_numbers
from palaver.schema import Expected, Item, Rating, Response, Study
from palaver.schema.rating import pair_context, value_text
from palaver.schema.scale import Value
from palaver.studies.screens import plan_screens, question_groups, shown_order, side_by_side
from palaver.tabular import Tabular

LETTERS_PER_TOKEN = 4
"""About, in English."""
_VALUE_LETTERS = 10
"""About what a value and its marks take in an answer."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What a judge may spend; prices are in money for a million tokens. None: no limit."""

    tokens: int | None = None
    money: float | None = None
    token_prices: tuple[float, float] = (0.0, 0.0)
    """Of what is read, and of what is written."""

    def __post_init__(self) -> None:
        if self.money is not None and not any(self.token_prices):
            raise UserError(
                "a limit in money needs the prices",
                "give them for a million tokens: --token-prices IN,OUT",
            )

    def cost(self, tokens_in: float, tokens_out: float) -> float:
        price_in, price_out = self.token_prices
        return (tokens_in * price_in + tokens_out * price_out) / 1e6


@dataclass(frozen=True, kw_only=True)
class Tally:
    """What became of the questions. Everything that was planned is counted somewhere."""

    planned: int
    asked: int
    answered: int
    unparsed: int
    refused: int
    failed: int
    from_cache: int
    not_asked: int
    """Because the budget was spent, or the server was gone."""
    flagged: int
    """Pages with an output that seems to talk to the judge."""
    checks: int
    checks_met: int
    tokens_in: int
    tokens_out: int
    cost: float
    seconds: float


@dataclass(frozen=True, repr=False)
class LlmRatings(Tabular):
    """A model's ratings of a study, and what became of all that it was asked. Tables: ratings, tally."""

    study: Study
    judge: str
    frame: pl.DataFrame
    tally: Tally
    notes: tuple[str, ...]

    def _headline(self) -> str:
        asked = f"{self.tally.answered:,} of {self.tally.asked:,} questions answered"
        return f"{count_of(self.frame.height, 'rating')} of {self.study.name!r} by {self.judge}; {asked}"

    def _tables(self) -> dict[str, Any]:
        tally = dataclasses.asdict(self.tally)
        return {
            "ratings": with_numbers(self.frame),
            "tally": {"what": list(tally), "value": [float(value) for value in tally.values()]},
        }


def rate_study(
    study: Study,
    model: LanguageModel,
    *,
    repeats: int = 1,
    both_orders: bool = True,
    budget: Budget | None = None,
    cache: Path | None = None,
    use_cache: bool = True,
    progress: Progress = no_progress,
) -> LlmRatings:
    """Let a model answer every screen of a study `repeats` times.

    Outputs side by side are asked about in `both_orders`; otherwise in the order that the study gives its
    next rater. Answers are kept in `cache` and not asked for again; what failed is never kept.
    """
    if repeats < 1:
        raise UserError(f"repeats: expected 1 or more, found {repeats}")
    budget = budget or Budget()
    prompts = list(_prompts(study, repeats, both_orders))
    if not prompts:
        raise UserError("the study asks for free text only, which a language model is not asked for")
    checks = list(_check_prompts(study))
    known = _Cache(model, cache) if use_cache else None
    run = _Run(model, budget, known)
    answers = run.ask([*(prompt for prompt, _ in checks), *prompts], progress)
    met = total = 0
    for (prompt, expected), answer in zip(checks, answers, strict=False):
        values = prompt.read(answer.text) if answer.outcome == "answered" else None
        if prompt.shows_media:
            continue
        for check in expected:
            total += 1
            met += values is not None and check.met_by(_said(values, prompt, check))
    signature = _signature(study, model)
    ratings: list[Rating] = []
    counts: Counter[str] = Counter()
    for prompt, answer in zip(prompts, answers[len(checks) :], strict=True):
        counts["flagged"] += prompt.flagged
        if answer.outcome != "answered":
            continue
        values = prompt.read(answer.text)
        if values is None:
            counts["unparsed"] += 1
            continue
        ratings += _ratings(study, model.name, prompt, values, answer, signature)
    tally = Tally(
        planned=len(answers),
        asked=run.counts["asked"] + run.counts["from_cache"] + run.counts["shows_media"],
        answered=run.counts["answered"] - counts["unparsed"],
        unparsed=counts["unparsed"],
        refused=run.counts["refused"],
        failed=run.counts["failed"],
        from_cache=run.counts["from_cache"],
        not_asked=run.counts["not_asked"],
        flagged=counts["flagged"],
        checks=total,
        checks_met=met,
        tokens_in=run.tokens_in,
        tokens_out=run.tokens_out,
        cost=budget.cost(run.tokens_in, run.tokens_out),
        seconds=run.seconds,
    )
    return LlmRatings(study, model.name, ratings_frame(ratings), tally, tuple(_notes(tally, run, study)))


@dataclass(frozen=True, kw_only=True)
class QuestionCount:
    """How often a model would be asked, and about how many tokens that takes."""

    planned: int
    kept: int
    """Of these, answered before."""
    tokens_in: float
    tokens_out: float


def count_questions(
    study: Study,
    *,
    repeats: int = 1,
    both_orders: bool = True,
    model: LanguageModel | None = None,
    cache: Path | None = None,
) -> QuestionCount:
    """What `rate_study` would ask, without asking; what is kept is known where the `model` is given."""
    prompts = [prompt for prompt, _ in _check_prompts(study)]
    prompts += _prompts(study, repeats, both_orders)
    known = _Cache(model, cache) if model is not None and cache is not None and cache.is_dir() else None
    to_ask = [prompt for prompt in prompts if known is None or known.get(prompt) is None]
    letters_in = sum(len(prompt.text) for prompt in to_ask)
    letters_out = sum(len(slot.name) + _VALUE_LETTERS for prompt in to_ask for slot in prompt.slots)
    return QuestionCount(
        planned=len(prompts),
        kept=len(prompts) - len(to_ask),
        tokens_in=letters_in / LETTERS_PER_TOKEN,
        tokens_out=letters_out / LETTERS_PER_TOKEN,
    )


def outputs_of(study: Study) -> list[Response]:
    """The texts of a study's outputs, under the context that a pair's item names."""
    return [
        Response(
            id=pair_context(item.id, *_pair(item)) or item.id, system=output.system, response=output.text
        )
        for item in study.items
        for output in item.outputs
        if output.text is not None
    ]


def _pair(item: Item) -> tuple[str, str | None]:
    systems = [output.system for output in item.outputs]
    return systems[0], systems[1] if len(systems) == 2 else None


def _prompts(study: Study, repeats: int, both_orders: bool) -> Iterator[Prompt]:
    """Every page, as often as it is asked; a repeat of both orders has two numbers."""
    items = {item.id: item for item in study.items}
    groups = question_groups(study)
    for screen in plan_screens(study):
        item, questions = items[screen.item], groups[screen.group]
        n = len(item.outputs)
        turned = both_orders and side_by_side(questions) and n > 1
        for repeat in range(repeats):
            order = shown_order(study, screen, n, repeat, "judge")
            orders = [order, tuple(reversed(order))] if turned else [order]
            for number, one in enumerate(orders):
                yield from prompts_of(study, item, questions, one, repeat * len(orders) + number)


def _check_prompts(study: Study) -> Iterator[tuple[Prompt, list[Expected]]]:
    """Training and attention checks: items whose answers are known."""
    known = [*(study.training.items if study.training else ()), *study.checks.items]
    for one in known:
        asked = {expected.criterion for expected in one.expected}
        for questions in question_groups(study):
            if not asked & {question.criterion for question in questions}:
                continue
            order = tuple(range(len(one.item.outputs)))
            for prompt in prompts_of(study, one.item, questions, order, 0):
                about = {_about(slot, prompt) for slot in prompt.slots}
                expected = [e for e in one.expected if (e.criterion, e.system, e.turn) in about]
                if expected:
                    yield prompt, expected


def _about(slot: Slot, prompt: Prompt) -> tuple[str, str, int | None]:
    return slot.question.criterion, prompt.item.outputs[slot.output].system, slot.turn


def _said(values: dict[Slot, Value], prompt: Prompt, check: Expected) -> str:
    for slot, value in values.items():
        if _about(slot, prompt) == (check.criterion, check.system, check.turn):
            return value_text(value)
    return ""


def _ratings(
    study: Study, judge: str, prompt: Prompt, values: dict[Slot, Value], answer: Answer, signature: str
) -> Iterator[Rating]:
    for slot, value in values.items():
        output = prompt.item.outputs[slot.output]
        against = prompt.item.outputs[1].system if slot.question.scale.form == "pair" else None
        yield Rating(
            study=study.name, item=prompt.item.id, system=output.system, against=against, output=output.id,
            rater=judge, criterion=slot.question.criterion, value=value, kind="llm", signature=signature,
            given_at=datetime.now(UTC).replace(microsecond=0), seconds=answer.seconds,
            shown_position=prompt.order.index(slot.output), repeat=prompt.repeat,
            probability=answer.probability if len(prompt.slots) == 1 else None,
            context=prompt.item.id if slot.turn is not None
            else pair_context(prompt.item.id, output.system, against),
            turn=slot.turn,
        )  # fmt: skip


def _signature(study: Study, model: LanguageModel) -> str:
    """Whatever changes the answers: the study's words, the model and its settings, the prompts' version."""
    design = study.model_dump_json(exclude={"items", "completion", "survey"})
    return f"llm|{model.name}|{digest(design, model.settings, VERSION)[:10]}|palaver:{__version__}"


def _notes(tally: Tally, run: _Run, study: Study) -> Iterator[str]:
    texts = [question.criterion for question in study.questions if question.scale.form == "text"]
    if texts:
        yield f"{', '.join(texts)}: free text is not asked of a language model"
    if tally.failed:
        yield f"{tally.failed:,} questions failed; the last: {run.failures.last}"
    if tally.not_asked:
        why = "too many failed, one after the other" if run.failures.given_up else "the budget was spent"
        yield f"{tally.not_asked:,} questions were not asked: {why}"
    if tally.flagged:
        yield f"{tally.flagged:,} pages show an output that seems to talk to the judge: read them"
    if tally.checks and tally.checks_met < tally.checks:
        yield f"{tally.checks_met} of {tally.checks} answers to training and attention checks were right"
    if run.counts["shows_media"]:
        n = count_of(run.counts["shows_media"], "question")
        yield f"{n} about images or sounds, which the model cannot see or hear: counted as refused"
    if len(run.models) > 1:
        yield f"several revisions of the model answered: {', '.join(sorted(run.models))}"


class _Run:
    """Asks in chunks, stops at the budget, keeps answers."""

    def __init__(self, model: LanguageModel, budget: Budget, cache: _Cache | None) -> None:
        self._model, self._budget, self._cache = model, budget, cache
        self.counts: Counter[str] = Counter()
        self.models: set[str] = set()
        self.tokens_in = self.tokens_out = 0
        self.seconds = 0.0
        self.failures = Failures()

    def ask(self, prompts: Sequence[Prompt], progress: Progress) -> list[Answer]:
        answers: dict[int, Answer] = {}
        waiting = []
        for place, prompt in enumerate(prompts):
            if prompt.shows_media:
                answers[place] = Answer(outcome="refused", why="it cannot see images or hear sounds")
                self.counts["refused"] += 1
                self.counts["shows_media"] += 1
                continue
            kept = self._cache.get(prompt) if self._cache else None
            if kept is None:
                waiting.append(place)
            else:
                answers[place] = kept
                self.counts["from_cache"] += 1
                self.counts[kept.outcome] += 1
                self.models.add(kept.model)
        n_waiting = len(waiting)
        while waiting and not self.failures.given_up:
            progress(f"{self._model.name}: asking", n_waiting - len(waiting), n_waiting)
            size = self._affordable(min(max(1, self._model.chunk), len(waiting)))
            places, waiting = waiting[:size], waiting[size:]
            for place, answer in zip(places, self._model.ask([prompts[p] for p in places]), strict=True):
                answers[place] = answer
                self._count(f"{prompts[place].item.id} {place}", answer)
                if self._cache and answer.outcome != "failed":
                    self._cache.put(prompts[place], answer)
            if not places:
                break
        if not self.counts["answered"]:
            self.failures.check()
        missing = Answer(outcome="failed", why="it was not asked")
        self.counts["not_asked"] = len(prompts) - len(answers)
        return [answers.get(place, missing) for place in range(len(prompts))]

    def _count(self, question: str, answer: Answer) -> None:
        self.counts["asked"] += 1
        self.counts[answer.outcome] += 1
        self.tokens_in += answer.tokens_in
        self.tokens_out += answer.tokens_out
        self.seconds += answer.seconds
        if answer.outcome != "failed":
            self.models.add(answer.model)
            self.failures.in_a_row = 0
        else:
            hint = "is the server there? what was answered before is kept"
            self.failures.note(question, RowError(answer.why, hint))

    def _affordable(self, n: int) -> int:
        """How many more questions the budget allows, by what those before took."""
        asked = self.counts["asked"]
        budget = self._budget
        if budget.tokens is None and budget.money is None:
            return n
        if not asked:
            return 1  # the first tells what one takes
        tokens = (self.tokens_in + self.tokens_out) / asked
        cost = budget.cost(self.tokens_in, self.tokens_out) / asked
        allowed = float(n)
        if budget.tokens is not None and tokens:
            allowed = min(allowed, (budget.tokens - self.tokens_in - self.tokens_out) / tokens)
        if budget.money is not None and cost:
            allowed = min(allowed, (budget.money - cost * asked) / cost)
        return max(0, int(allowed))


class _Cache:
    """Answers by everything that may change them, one a line; only ever added to."""

    def __init__(self, model: LanguageModel, folder: Path | None) -> None:
        self._settings = model.settings
        folder = folder or cache_home() / "judgements"
        self._path = folder / f"{digest(model.name, model.settings)}.jsonl"
        self._held: dict[str, Answer] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lines = self._path.read_text(encoding="utf-8").splitlines() if self._path.is_file() else []
        except OSError as error:
            raise UserError(f"answers cannot be kept in {folder}: {error.strerror or error}") from None
        for line in lines:
            try:
                fields = json.loads(line)
                key = fields.pop("key")
                self._held[key] = Answer(**fields)
            except (ValueError, KeyError, TypeError):
                continue  # a line that was cut short is asked for again

    def _key(self, prompt: Prompt) -> str:
        """Without our own version: a new one must not pay again for answers to the same question."""
        return digest(prompt.text, prompt.schema(), self._settings, prompt.repeat, VERSION)

    def get(self, prompt: Prompt) -> Answer | None:
        return self._held.get(self._key(prompt))

    def put(self, prompt: Prompt, answer: Answer) -> None:
        key = self._key(prompt)
        self._held[key] = answer
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"key": key, **dataclasses.asdict(answer)}) + "\n")
