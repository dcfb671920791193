"""What needs no model: the oracle's sentence itself as the reply, on Topical-Chat's test sets."""

from __future__ import annotations

from pathlib import Path

from palaver.corpora.catalogue import read_corpus
from palaver.knowledge.candidates import reading_sentences
from palaver.knowledge.corpus import select_for
from palaver.knowledge.selector import OracleSelector
from palaver.metrics.evaluate import evaluate
from palaver.progress import Progress, no_progress
from palaver.reproduce.topical_chat_runs import COLUMNS, SPLITS, Figure, Run

CORPUS = "topical-chat"


def score_sentences(data: Path, progress: Progress = no_progress) -> Run:
    """Its F1 with what was said, and its diversity; every turn but the first of each conversation."""
    progress("reading sets", 0, len(SPLITS) + 1)
    oracle = OracleSelector(reading_sentences(read_corpus(CORPUS, root=data)))
    figures, counts = {}, {}
    for done, split in enumerate(SPLITS, start=1):
        progress(split, done, len(SPLITS) + 1)
        sentences, replies = [], []
        for dialogue, chosen in select_for(read_corpus(CORPUS, root=data, split=split), oracle):
            texts = [turn.text.strip() for turn in dialogue.turns]
            for i in range(1, len(texts)):
                if texts[i] and any(texts[:i]):
                    selection = chosen[i]
                    sentences.append(selection.sentence if selection is not None else "")
                    replies.append(texts[i])
        metrics = {name: column for column, name in COLUMNS.items() if column != "ppl"}
        scores = evaluate(sentences, replies, metrics=list(metrics))
        figures[split] = {metrics[row.name]: Figure(row.value, row.low, row.high) for row in scores}
        counts[split] = len(replies)
    return Run(name="the sentence itself", seed=0, figures=figures, n=counts)
