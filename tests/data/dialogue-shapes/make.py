"""Writes the files of this folder: the same dialogues and responses in the shapes people have.

Run it after a change of what is said here: `python tests/data/dialogue-shapes/make.py`.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import polars as pl

HERE = Path(__file__).parent

DIALOGUES: list[dict[str, Any]] = [
    {
        "id": "101", "system": "alpha", "rating": 5, "rater": "ann", "group": "s1",
        "texts": [
            "Where can I swim in the lake?",
            "The north beach is open all day, and the water is clean.",
            "Is there a bus to it?",
            "Yes, line 4 leaves every hour from the old bridge.",
            "Great, thank you!",
            "You are welcome, enjoy the water.",
        ],
    },
    {
        "id": "102", "system": "beta", "rating": 2, "rater": "ann", "group": "s1",
        "texts": [
            "My train was cancelled this morning.",
            "",
            "Are you there?",
            "I like trains. Do you like trains?",
            "I asked you about my ticket.",
            "I do not know.",
        ],
    },
    {
        "id": "103", "system": "alpha", "rating": 4, "rater": "bob", "group": "s2",
        "texts": [
            "Which soup do you recommend for a cold day?",
            "A lentil soup with lemon and cumin warms you up quickly.",
            "I have no cumin at home.",
            "Then take a little smoked paprika, it works just as well.",
        ],
    },
    {
        "id": "104", "system": "beta", "rating": 1, "rater": "bob", "group": "s2",
        "texts": [
            "The children saw a fox in the garden, Zoë says.",
            "Foxes are animals.",
            "What do foxes eat?",
            "Foxes are animals.",
        ],
    },
    {
        "id": "105", "system": "alpha", "rating": 4, "rater": "cyd", "group": "s3",
        "texts": [
            'Who wrote the line "all happy families are alike"?',
            "Leo Tolstoy wrote it; it opens Anna Karenina.",
            "Should I read the book?",
            "Yes, if you like long novels about love, duty and society.",
            "How long is it?",
            "About 800 pages; a patient reader needs a month.",
        ],
    },
    {
        "id": "106", "system": "beta", "rating": 3, "rater": "cyd", "group": "s3",
        "texts": [
            "The teacher read the letter to the class.",
            "That sounds nice, what was in the letter?",
            "A pupil wrote it from the hospital.",
            "I hope that the pupil is well again.",
        ],
    },
]  # fmt: skip
LABELS = ("system", "rating", "rater", "group")

CONTEXTS = [
    ("c1", "Where can I swim?", "The north beach is open and clean."),
    ("c2", "Is there a bus?", "Yes, line 4 leaves every hour."),
    ("c3", "Which soup is good?", "A lentil soup warms you up."),
    ("c4", "What do foxes eat?", "Foxes eat mice, berries and eggs."),
    ("c5", "How long is the book?", "It has about 800 pages."),
    ("c6", "What was in the letter?", "A pupil wrote it from the hospital."),
]
REPLIES = {
    "alpha": [
        "The north beach is open all day.",
        "Line 4 leaves every hour from the bridge.",
        "A lentil soup with lemon is good.",
        "They eat mice and berries.",
        "About 800 pages.",
        "A pupil wrote it.",
    ],
    "beta": [
        "Swimming.",
        "I like trains.",
        "Soup is food.",
        "Foxes are animals.",
        "Books.",
        "I do not know.",
    ],
}


def speakers(texts: list[str], names: tuple[str, str]) -> list[tuple[str, str]]:
    """Each text with who said it; the user begins."""
    return [(names[i % 2], text) for i, text in enumerate(texts)]


def labels(dialogue: dict[str, Any]) -> dict[str, Any]:
    return {name: dialogue[name] for name in LABELS}


def turn_list(dialogue: dict[str, Any], who: str, what: str, names: tuple[str, str]) -> list[dict[str, Any]]:
    return [{who: name, what: text} for name, text in speakers(dialogue["texts"], names)]


def write_lines(name: str, rows: list[Any]) -> None:
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    (HERE / name).write_text("".join(lines), encoding="utf-8")


def write_table(
    name: str, columns: tuple[str, ...], rows: list[tuple[Any, ...]], delimiter: str = ","
) -> None:
    with (HERE / name).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


def write_dialogues() -> None:
    ours, chat = ("user", "system"), ("user", "assistant")
    write_lines(
        "turns.jsonl",
        [
            {"id": d["id"], "turns": turn_list(d, "speaker", "text", ours), "labels": labels(d)}
            for d in DIALOGUES
        ],
    )
    write_lines(
        "messages.jsonl",
        [{"id": d["id"], "messages": turn_list(d, "role", "content", chat), **labels(d)} for d in DIALOGUES],
    )
    parts = []
    for d in DIALOGUES:
        said = [
            {"role": who, "content": [{"type": "text", "text": text}]}
            for who, text in speakers(d["texts"], chat)
        ]
        parts.append({"conversation_id": d["id"], "messages": said, **labels(d)})
    write_lines("parts.jsonl", parts)
    write_lines("nameless.jsonl", [{"turns": turn_list(d, "speaker", "text", ours)} for d in DIALOGUES])
    bare = [turn_list(d, "role", "content", chat) for d in DIALOGUES]
    (HERE / "bare.json").write_text(json.dumps(bare, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    sharegpt = [
        {
            "id": int(d["id"]),
            "conversations": turn_list(d, "from", "value", ("human", "gpt")),
            "model": d["system"], "score": d["rating"], "worker": d["rater"], "sitting": d["group"],
        }
        for d in DIALOGUES
    ]  # fmt: skip
    (HERE / "sharegpt.json").write_text(json.dumps(sharegpt, ensure_ascii=False) + "\n", encoding="utf-8")
    write_lines(
        "history.jsonl",
        [
            {"id": d["id"], "history": d["texts"][:-1], "response": d["texts"][-1], **labels(d)}
            for d in DIALOGUES
        ],
    )
    exchanges = []
    for d in DIALOGUES:
        texts = d["texts"]
        for i in range(0, len(texts), 2):
            is_last = i + 2 == len(texts)
            row = {"text": texts[i], "labels": [texts[i + 1]], "episode_done": is_last}
            exchanges.append({**row, **labels(d)} if i == 0 else row)
    write_lines("parlai.jsonl", exchanges)
    write_lines(
        "short-keys.jsonl",
        [{"id": d["id"], "log": turn_list(d, "s", "t", ours), **labels(d)} for d in DIALOGUES],
    )
    by_turn = [
        (d["id"], who, text, *labels(d).values())
        for d in DIALOGUES
        for who, text in speakers(d["texts"], ours)
    ]
    write_table("own-columns.csv", ("chat", "who", "said", *LABELS), by_turn)
    write_table("semicolon.csv", ("dialogue", "speaker", "text", *LABELS), by_turn, ";")
    write_table("tabs.tsv", ("conversation_id", "spk", "text", *LABELS), by_turn, "\t")
    whole = [
        (d["id"], json.dumps(turn_list(d, "speaker", "text", ours), ensure_ascii=False), *labels(d).values())
        for d in DIALOGUES
    ]
    write_table("json-cells.csv", ("id", "dialog", *LABELS), whole)
    rows = [{"id": d["id"], "turns": turn_list(d, "speaker", "text", ours), **labels(d)} for d in DIALOGUES]
    pl.DataFrame(rows).write_parquet(HERE / "dialogues.parquet")
    columns = ("dialogue", "speaker", "text", *LABELS)
    pl.DataFrame([dict(zip(columns, row, strict=True)) for row in by_turn]).write_parquet(
        HERE / "turns.parquet"
    )


def write_responses() -> None:
    rows = []
    for system, replies in REPLIES.items():
        for (id, context, reference), reply in zip(CONTEXTS, replies, strict=True):
            rows.append(
                {"id": id, "system": system, "context": context, "response": reply, "reference": reference}
            )
    write_lines(
        "responses.jsonl",
        [
            {
                "id": row["id"], "system": row["system"], "speaker": None, "ocean": None,
                "context": [{"speaker": "user", "text": row["context"]}],
                "response": row["response"], "logprob": None, "reference": row["reference"],
            }
            for row in rows
        ],
    )  # fmt: skip
    names = ("system", "context", "response", "reference")
    write_table("responses.csv", names, [tuple(row[name] for name in names) for row in rows])
    write_table(
        "model-prompt-output.csv",
        ("model", "prompt", "output", "target"),
        [tuple(row[name] for name in names) for row in rows],
        ";",
    )
    pl.DataFrame(rows).write_parquet(HERE / "responses.parquet")
    write_table(
        "one-column-a-system.csv",
        ("prompt", "reference", *REPLIES),
        [(c, ref, *(REPLIES[s][i] for s in REPLIES)) for i, (_, c, ref) in enumerate(CONTEXTS)],
    )


if __name__ == "__main__":
    write_dialogues()
    write_responses()
