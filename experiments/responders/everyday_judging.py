"""Are the replies of `palaver chat` acceptable? Replies, a sheet for a judge without names, and results.

    python experiments/responders/everyday_judging.py reply --out replies.json
    python experiments/responders/everyday_judging.py sheet replies.json --out sheet.csv --key key.json
    python experiments/responders/everyday_judging.py results sheet.csv --key key.json --judge "who judged" \\
        --out docs/results/everyday-judged.json

`reply` asks the ten conversations of the page (everyday.py), the twenty held-out ones of
everyday-prompts.jsonl and the thirty of everyday-unseen.jsonl, whose writer had seen neither systems nor
exchanges; `--prompts FILE` asks those of another file of that shape. Three systems are asked:
`everyday`; `default-chat`, which was there before it; and `everyday` without its written lines, which gives a
general reply to everything. `sheet` shuffles the conversations and leaves the systems' names out; the judge
writes yes or no into the column "accepted", by everyday-rule.md. Replies that several systems gave are judged
once. `results` counts, and writes the section of docs/results/everyday.md anew.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from everyday_examples import sign_test

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs/results/everyday.md"
TITLE = "## Judged without the systems' names"
NEW, OLD, GENERAL = "everyday", "default-chat", "general replies only"
SHUFFLED = 17
COLUMNS = ("number", "turn", "said", "reply", "accepted")


def prompts(file: Path | None) -> list[dict[str, Any]]:
    """Conversations to ask: the part each belongs to, and what is said in it."""
    if file is not None:
        return [{"part": file.stem} | json.loads(line) for line in file.read_text("utf-8").splitlines()]
    from everyday import PROMPTS

    page = [{"part": "page", "lines": [first, second]} for first, second in PROMPTS.items()]
    rows = map(json.loads, (HERE / "everyday-prompts.jsonl").read_text("utf-8").splitlines())
    held_out = [row for row in rows if row["part"] == "held-out"]
    unseen = map(json.loads, (HERE / "everyday-unseen.jsonl").read_text("utf-8").splitlines())
    return page + held_out + [{"part": "unseen"} | row for row in unseen]


def reply(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What each system says to each line, whatever it said before."""
    from palaver.cli.chat import DEFAULTS
    from palaver.generation.conversation import Conversation
    from palaver.generation.options import WrittenOptions
    from palaver.generation.systems_file import SystemSpec, open_system

    systems = {
        NEW: open_system(NEW),
        OLD: open_system(OLD, device="cpu", defaults=DEFAULTS),
        GENERAL: SystemSpec(GENERAL, WrittenOptions(kind="written", near=1.0))(),
    }
    for row in rows:
        row["replies"] = {}
        for name, system in systems.items():
            conversation = Conversation([system], seed=0)
            row["replies"][name] = [conversation.say(line)[0].reply.text for line in row["lines"]]
    return rows


def entries(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each distinct conversation once, with the systems that had it; in random order."""
    distinct: dict[tuple[int, tuple[str, ...]], list[str]] = {}
    for place, row in enumerate(rows):
        for name, replies in row["replies"].items():
            distinct.setdefault((place, tuple(replies)), []).append(name)
    shuffled = [
        {"row": place, "systems": names, "replies": list(replies)}
        for (place, replies), names in distinct.items()
    ]
    random.Random(SHUFFLED).shuffle(shuffled)
    return shuffled


def write_sheet(rows: Sequence[dict[str, Any]], sheet: Path, key: Path) -> None:
    """The sheet for the judge, and which systems each number stands for."""
    shuffled = entries(rows)
    with sheet.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for number, entry in enumerate(shuffled, start=1):
            lines = rows[entry["row"]]["lines"]
            for turn, (said, text) in enumerate(zip(lines, entry["replies"], strict=True), start=1):
                writer.writerow([number, turn, said, text, ""])
    key.write_text(
        json.dumps({"conversations": rows, "entries": shuffled}, indent=1, ensure_ascii=False) + "\n",
        encoding="utf-8",
    )


def read_verdicts(sheet: Path) -> dict[tuple[int, int], bool]:
    """(number, turn) -> accepted; every cell must hold yes or no."""
    verdicts = {}
    with sheet.open(encoding="utf-8", newline="") as file:
        for line, row in enumerate(csv.DictReader(file), start=2):
            verdict = row["accepted"].strip().lower()
            if verdict not in ("yes", "no"):
                raise SystemExit(f"{sheet}, line {line}: expected yes or no, found {row['accepted']!r}")
            verdicts[int(row["number"]), int(row["turn"])] = verdict == "yes"
    return verdicts


def results(key: dict[str, Any], verdicts: dict[tuple[int, int], bool], judge: str) -> dict[str, Any]:
    """Every reply with its verdict; how many of each system were accepted, part by part."""
    rows = key["conversations"]
    for number, entry in enumerate(key["entries"], start=1):
        row = rows[entry["row"]]
        of_entry = [verdicts[number, turn] for turn in range(1, len(row["lines"]) + 1)]
        for name in entry["systems"]:
            row.setdefault("accepted", {})[name] = of_entry
    accepted: dict[str, dict[str, Any]] = {}
    for part in dict.fromkeys(row["part"] for row in rows):
        of_part = [row["accepted"] for row in rows if row["part"] == part]
        accepted[part] = {}
        for name in (NEW, OLD, GENERAL):
            first = [verdicts[name][0] for verdicts in of_part]
            every = [verdict for verdicts in of_part for verdict in verdicts[name]]
            against = [verdicts[OLD][0] for verdicts in of_part]
            accepted[part][name] = {"first": sum(first), "n_first": len(first), "all": sum(every)}
            accepted[part][name] |= {"n_all": len(every), "p": sign_test(first, against)}
    return {
        "command": "experiments/responders/everyday_judging.py",
        "judge": judge,
        "shuffled_with": SHUFFLED,
        "accepted": accepted,
        "conversations": rows,
    }


def section(content: dict[str, Any]) -> str:
    """What the page says about the verdicts."""
    table = [
        f"| {part} | {name} | {one['first']} of {one['n_first']} | {one['all']} of {one['n_all']} | "
        + ("|" if name == OLD else "< 0.01 |" if one["p"] < 0.01 else f"{one['p']:.2f} |")
        for part, systems in content["accepted"].items()
        for name, one in systems.items()
    ]
    return f"""{TITLE}

The replies were shuffled and shown without names (`{content["command"]}`,
[everyday-judged.json](everyday-judged.json)).
Judge: {content["judge"]}.
The rule is `experiments/responders/everyday-rule.md`; p is that of a sign test against `{OLD}` on the first
replies.

| prompts | system | first replies accepted | all replies accepted | p |
|---|---|---|---|---|
{chr(10).join(table)}

Those who wrote the replies of `{NEW}` knew the prompts of "page" and had read those of "held-out". No written
line is near one of the latter (a test compares trigrams), but they are no blind test. Those of "unseen" were
written by somebody who had seen neither systems nor exchanges, and nobody who wrote exchanges had seen them:
**these are the rows to believe.**
{later_replies(content)}
"""


def later_replies(content: dict[str, Any]) -> str:
    """What the table does not show at once; empty where the unseen prompts were not asked."""
    unseen = content["accepted"].get("unseen")
    if unseen is None:
        return ""
    n_later = unseen[NEW]["n_all"] - unseen[NEW]["n_first"]
    new, general = (unseen[name]["all"] - unseen[name]["first"] for name in (NEW, GENERAL))
    return f"""Later replies are its weak side: of {n_later} second replies to the unseen prompts {new} were
accepted, of general ones {general}. On the held-out prompts, which are harder, general replies do better than
those that were found by similarity: what is near is not always right.
"""


def write_section(content: dict[str, Any]) -> None:
    """Put the section into the page, in place of what stands there."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(TITLE)
    after = rest[rest.index("\n## ") + 1 :]
    PAGE.write_text(before + section(content) + after, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["reply", "sheet", "results"])
    parser.add_argument("file", type=Path, nargs="?", help="replies.json, or the sheet that was filled in")
    parser.add_argument("--prompts", type=Path, help='JSON lines such as {"lines": ["Hi!", "Fine."]}')
    parser.add_argument("--key", type=Path)
    parser.add_argument("--judge", default="")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    if given.what == "sheet":
        write_sheet(json.loads(given.file.read_text("utf-8")), given.out, given.key)
        return
    content: Any
    if given.what == "reply":
        content = reply(prompts(given.prompts))
    else:
        content = results(json.loads(given.key.read_text("utf-8")), read_verdicts(given.file), given.judge)
        write_section(content)
    given.out.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
