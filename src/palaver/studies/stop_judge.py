"""The judge of a study that stops by itself: its ratings become part of the study when the file is read.

So a server that is started again, or another process, needs no file but the database.
"""

from __future__ import annotations

from pathlib import Path

from palaver.errors import DataError
from palaver.schema import Item, Study
from palaver.schema.delivery import StopJudge, Verdict
from palaver.studies.ratings import read_ratings
from palaver.studies.trust import Verdicts, no_overlap, read_verdicts
from palaver.studies.trust_plan import dialogue_of, dialogues_of


def with_verdicts(study: Study, folder: Path) -> Study:
    """The study with the scores of the file that its `stop_judge` names, seen from `folder`."""
    judge = study.stop_judge
    if judge is None or judge.file is None or study.deciding_criterion is None:
        return study
    path = folder / judge.file
    if not path.exists():
        raise DataError(f"there is no file {judge.file}")
    asked = study.question(study.deciding_criterion)
    is_pair = asked.scale.form == "pair"
    verdicts = read_verdicts(
        read_ratings(path), asked.criterion, is_pair=is_pair, judge=judge.judge, criterion=judge.criterion
    )
    names = dialogues_of(study)
    if not {key[0] for key in verdicts.scores} & set(names):
        raise no_overlap(verdicts, names, study.systems, "the study")
    missing = [
        name for item in study.items for name in _outputs(item, is_pair) if name not in verdicts.scores
    ]
    if missing:
        raise DataError(
            f"{judge.file}: {verdicts.judge} did not rate {len(missing)} of the study's outputs, such as "
            f"{' of '.join(missing[0][::-1])}",
            "a judge helps only where it rated everything that people are asked about",
        )
    rows = tuple(
        Verdict(dialogue=dialogue, systems=systems, score=score)
        for (dialogue, *systems), score in sorted(verdicts.scores.items())
    )
    named = judge.model_copy(
        update={"judge": verdicts.judge, "criterion": verdicts.criterion, "verdicts": rows}
    )
    return study.model_copy(update={"stop_judge": named})


def _outputs(item: Item, is_pair: bool) -> list[tuple[str, ...]]:
    """What a judge must have rated of an item, by its dialogue and systems."""
    systems = [output.system for output in item.outputs]
    dialogue = dialogue_of(item)
    return [(dialogue, *sorted(systems))] if is_pair else [(dialogue, system) for system in systems]


def verdicts_in(judge: StopJudge) -> Verdicts:
    """The scores that a study carries."""
    scores = {(row.dialogue, *row.systems): row.score for row in judge.verdicts}
    return Verdicts(judge.judge or "judge", judge.criterion or "", scores)
