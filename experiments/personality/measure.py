"""Everything that docs/results/personality.md says about models: docs/results/personality.json.

    python experiments/personality/models.py --from carry/characters --out OUT --minutes 9.2      (on a GPU)
    palaver reproduce personality --data DATA/scripts --json > transcripts.json
    python experiments/personality/measure.py --data DATA --responses OUT --transcripts transcripts.json
        --out docs/results/personality.json

and, with the answers of experiments/topical_chat/smollm.py, unguided and guided:

    python experiments/personality/measure.py --data DATA --responses OUT
        --models smollm-speaker,smollm-speaker-guided-1,smollm-personality,smollm-personality-guided-1
        --requested smollm-personality,smollm-personality-guided-1 --earlier earlier.json
        --out docs/results/personality-smollm.json

Transcripts have the whole protocol. Models are measured with its short form (`--quick`: 100 samples, 3
repetitions, 20 resampled pools), and so are the transcripts that they are tested against: with the same
recogniser, characters and settings, on the contexts that all models have answered. Trait fidelity is measured
by two recognisers: the one that made the labels, and one that did not. `--earlier` takes over the figures of
a results file that this one replaces, with the training and the contexts that were behind them.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from palaver.files import sha256_of
from palaver.personality.classifiers import NAMES
from palaver.personality.comparison import compare_pools
from palaver.personality.fidelity import Fidelity, measure_fidelity
from palaver.personality.plan import QUICK, Settings
from palaver.personality.pools import Choice, Pools
from palaver.personality.protocol import run_protocol
from palaver.personality.recogniser import load_recogniser
from palaver.personality.results import Distinguishability
from palaver.personality.sources import read_pools
from palaver.reproduce.personality import DROPPED, EXTREMES, SHOWS

MODELS = (
    "xing-speaker",
    "modern-speaker",
    "xing-personality",
    "xing-personality-wide",
    "modern-personality",
)
REQUESTED = tuple(name for name in MODELS if "personality" in name)
TRIED = ("transcripts", "modern-speaker", "modern-personality")
"""What the other classifiers are tried on."""
SETTINGS = Settings(**QUICK)
FEWER = {"samples": 50, "repetitions": 2, "replicates": 0}
"""For the other classifiers: a perceptron takes its time."""
DIGITS = 4
OF_EARLIER = ("command", "date", "contexts", "data", "models", "training")
"""What is kept of a results file that is replaced."""


def number(value: float) -> float | None:
    return None if value is None or not np.isfinite(value) else round(float(value), DIGITS)


def summary(result: Distinguishability) -> dict[str, Any]:
    """The figures of a row."""
    names = {
        "f1": "characters",
        "pseudo": "pseudo-characters",
        "by_group": "characters by group",
        "pseudo_by_group": "pseudo-characters by group",
    }
    found = {key: result.condition(name) for key, name in names.items()}
    verdict = result.verdict
    return {
        **{key: number(condition.f1) for key, condition in found.items() if condition is not None},
        "answer": verdict.answer,
        "difference": number(verdict.difference),
        "low": number(verdict.low),
        "high": number(verdict.high),
        "smallest_pool": min(who.n_utterances for who in result.characters),
    }


def common_contexts(folder: Path, models: Sequence[str]) -> int:
    """How many contexts all models have answered; their numbers begin with 1."""
    answered = []
    for name in models:
        with gzip.open(folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
            answered.append(max(int(json.loads(line)["id"]) for line in file))
    return min(answered)


def cut(source: Path, target: Path, n_contexts: int) -> Path:
    """The responses to the first contexts only."""
    with gzip.open(source, "rt", encoding="utf-8") as rows, target.open("w", encoding="utf-8") as file:
        file.writelines(line for line in rows if int(json.loads(line)["id"]) <= n_contexts)
    return target


def tests(pools: dict[str, Pools]) -> tuple[list[dict[str, Any]], dict[str, Any], tuple[str, ...]]:
    """All sources of a show against each other; the row of each source; what they do not share."""
    named = [replace(p, source=name) for name, p in pools.items()]
    comparison = compare_pools(named, SETTINGS)
    rows = [
        {
            "a": test.a,
            "b": test.b,
            "difference": number(test.difference),
            "low": number(test.low),
            "high": number(test.high),
            "p": test.p,
            "p_holm": test.p_holm,
            "p_of_the_papers_test": test.repetitions.p if test.repetitions is not None else None,
        }
        for test in comparison.tests
    ]
    return rows, {r.title: summary(r) for r in comparison.results}, comparison.notes


def classifiers(pools: dict[str, Pools]) -> dict[str, Any]:
    """F1 with each classifier, on samples of one pool and split by group."""
    found: dict[str, Any] = {}
    for classifier in NAMES:
        settings = Settings(**FEWER, classifier=classifier)
        results = {name: run_protocol(pools[name], settings) for name in TRIED}
        rows = {name: summary(result) for name, result in results.items()}
        keys = ("f1", "pseudo", "by_group", "pseudo_by_group")
        found[classifier] = {name: {key: row[key] for key in keys} for name, row in rows.items()}
        print(classifier, found[classifier], flush=True)
    return found


def extreme_types(folder: Path, systems: Sequence[str], n_contexts: int, work: Path) -> dict[str, Any]:
    """Table 2, and the traits that both recognisers see in each type."""
    path = cut(folder / "extremes.jsonl.gz", work / "extremes.jsonl", n_contexts)
    found: dict[str, Any] = {}
    for system in systems:
        choice = Choice(system=system, drop_common=DROPPED)
        traits = {}
        for name in ("default", "self-report"):
            pools = read_pools(path, load_recogniser(name), choice, n_words=0)
            if name == "default":
                result = run_protocol(pools, SETTINGS)
            traits[name] = {
                who: [number(v) for v in pools.traits.of([rows], 1, rows.size, [0])[0]]
                for who, rows in zip(pools.characters, pools.members, strict=True)
            }
        characters = result.condition("characters")
        assert characters is not None
        each = {score.character: number(score.f1) for score in characters.characters}
        found[system] = {
            **summary(result),
            "types": {name: each[name] for name in EXTREMES},
            "traits": traits,
        }
        print(system, found[system], flush=True)
    return found


def fidelity(folder: Path, systems: Sequence[str]) -> dict[str, Any]:
    """Requested against measured traits of each Personality Model, by both recognisers."""
    path = folder / "requests.jsonl.gz"
    return {
        system: {
            name: fidelity_row(measure_fidelity(path, measured_by=name, choice=Choice(system=system)))
            for name in ("self-report", "default")
        }
        for system in systems
    }


def fidelity_row(result: Fidelity) -> dict[str, Any]:
    cells: dict[str, dict[str, Any]] = {}
    for cell in result.matrix:
        row = {"r": number(cell.r), "low": number(cell.low), "high": number(cell.high)}
        cells.setdefault(cell.requested, {})[cell.measured] = row
    return {
        "requests": result.n_requests,
        "responses": result.n_responses,
        "matrix": cells,
        "p_holm": {row.trait: row.p_holm for row in result.diagonal},
        "slope": {row.trait: number(row.slope) for row in result.diagonal},
        "follow": [row.trait for row in result.diagonal if row.answers],
        "mean_r": number(result.mean_r),
        "mean_other": number(result.mean_other),
        "shuffled_mean_r": number(result.control.mean_r),
        "shuffled_high": number(result.control.high),
    }


def transcript_rows(path: Path) -> Iterator[tuple[str, Any]]:
    """Of the whole protocol on the transcripts: F1 of every condition, and the verdict."""
    content = json.loads(path.read_text(encoding="utf-8"))
    for title in SHOWS.values():
        result = content["results"][title]
        verdict = result["verdict"]
        yield (
            title,
            {
                "conditions": {c["name"]: number(c["f1"]) for c in result["conditions"]},
                "verdict": {key: number(verdict[key]) for key in ("difference", "low", "high")},
                "signature": result["signature"],
            },
        )


def listed(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.split(",") if part)


def command(given: argparse.Namespace) -> list[str]:
    """What was typed, without the places of this machine."""
    words = ["--data DATA --responses OUT"]
    if given.transcripts is not None:
        words.append("--transcripts transcripts.json")
    if given.models != MODELS:
        words.append(f"--models {','.join(given.models)}")
    if given.requested != REQUESTED:
        words.append(f"--requested '{','.join(given.requested)}'")
    if given.earlier is not None:
        words.append("--earlier earlier.json")
    return [*words, f"--out docs/results/{given.out.name}"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--responses", type=Path, required=True)
    parser.add_argument("--transcripts", type=Path, help="of the whole protocol")
    parser.add_argument("--earlier", type=Path, help="the results file that is replaced")
    parser.add_argument("--models", type=listed, default=MODELS)
    parser.add_argument("--requested", type=listed, default=REQUESTED, help="with extremes and requests")
    parser.add_argument("--work", type=Path, default=Path("runs/measure"))
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    n_contexts = common_contexts(given.responses, given.models)
    print(f"{n_contexts:,} contexts", flush=True)
    content: dict[str, Any] = {
        "command": " ".join(["python experiments/personality/measure.py", *command(given)]),
        "date": datetime.now(UTC).date().isoformat(),
        "seed": 0,
        "recogniser": "default",
        "settings": dict(QUICK) | {"size": SETTINGS.size, "folds": SETTINGS.folds},
        "settings_of_classifiers": FEWER,
        "contexts": n_contexts,
        "dropped_common_responses": DROPPED,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "data": {
            f"{name}.jsonl.gz": sha256_of(given.responses / f"{name}.jsonl.gz")
            for name in (*given.models, *(("extremes", "requests") if given.requested else ()))
        },
        "training": json.loads((given.responses / "training.json").read_text(encoding="utf-8")),
        "fidelity": fidelity(given.responses, given.requested),
    }
    if given.transcripts is not None:
        content["transcripts"] = dict(transcript_rows(given.transcripts))
    if given.earlier is not None:
        before = json.loads(given.earlier.read_text(encoding="utf-8"))
        content["earlier"] = {key: before[key] for key in OF_EARLIER}

    def save() -> None:
        text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
        given.out.write_text(text + "\n", encoding="utf-8")

    save()
    recogniser = load_recogniser()
    choice = Choice(drop_common=DROPPED)
    everybody = {}
    for name in given.models:
        path = cut(given.responses / f"{name}.jsonl.gz", given.work / f"{name}.jsonl", n_contexts)
        everybody[name] = read_pools(path, recogniser, choice, n_words=0)
    content |= {"models": {}, "tests": {}, "notes": {}, "classifiers": {}}
    of_shows = {}
    for show, title in SHOWS.items():
        gold = read_pools(show, recogniser, Choice(), root=given.data, n_words=0)
        pools = {"transcripts": gold}
        pools |= {name: everybody[name].only(gold.characters) for name in given.models}
        content["tests"][title], content["models"][title], content["notes"][title] = tests(pools)
        of_shows[title] = pools
        print(title, content["models"][title], flush=True)
        save()
    if given.requested:
        content["extremes"] = extreme_types(given.responses, given.requested, n_contexts, given.work)
        save()
    if given.transcripts is not None:
        for title, pools in of_shows.items():
            content["classifiers"][title] = classifiers(pools)
            save()


if __name__ == "__main__":
    main()
