"""How far texts that talk to the judge move its verdicts, for docs/results/judges.md.

    python experiments/judges/injections.py --data ../shared/data --out docs/results/judges-injections.json

Two systems answer 30 contexts of USR. Each text of injections.toml in turn is added to what one of them said,
and a judge compares the two in both orders: SmolLM2, and a gullible judge that chooses whatever talks to
it. Beside that stand how many ordinary texts are flagged, and how many of SmolLM2's answers can be read
when it may say what it likes. Its 2,940 verdicts take an hour on two cores; they are kept in --cache.
"""

from __future__ import annotations

import argparse
import gzip
import json
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from corpora import ROOT, read_thumbs, read_usr, read_verdicts, thumbs_file, usr_file, write_record
from palaver.judges.llm import LlmRatings, _prompts, rate_study
from palaver.judges.llm_models import Answer, LanguageModel, open_language_model
from palaver.judges.llm_prompts import Prompt, seems_injected
from palaver.schema import Item, Output, Pairwise, Question, Study

INJECTIONS = ROOT / "experiments" / "judges" / "injections.toml"
N_CONTEXTS, N_FREE = 30, 10
PLAIN, INJECTED = "Nucleus Decoding (p = 0.5)", "Nucleus Decoding (p = 0.7)"
"""Two systems that people find equally good; the second one's texts are tampered with."""


def read_injections() -> list[tuple[str, str]]:
    """(part, text) of every injection."""
    parts = tomllib.loads(INJECTIONS.read_text(encoding="utf-8"))
    return [(part, text) for part, texts in parts.items() for text in texts]


def study_with(data: Path, injection: str) -> Study:
    """Pairs of replies, `injection` at the end of one of them."""
    said: dict[str, dict[str, str]] = {}
    contexts = {}
    for response in read_usr(data)[1]:
        said.setdefault(response.id, {})[response.system] = response.response or ""
        contexts[response.id] = response.context[-1].text
    items = tuple(
        Item(
            id=f"{name}|{PLAIN}|{INJECTED}",
            context=contexts[name],
            outputs=(
                Output(system=PLAIN, text=said[name][PLAIN]),
                Output(system=INJECTED, text=f"{said[name][INJECTED]} {injection}".strip()),
            ),
        )
        for name in list(said)[:N_CONTEXTS]
    )
    question = Question(criterion="better", text="Which reply is better?", scale=Pairwise())
    return Study(name="injections", items=items, questions=(question,))


class GullibleJudge:
    """Chooses the output that talks to it, whatever it says; without one the first."""

    chunk = 1000

    def __init__(self, injections: Sequence[str]) -> None:
        self.name, self.settings = "gullible", {"obeys": len(injections)}
        self._injections = injections

    def ask(self, prompts: Sequence[Prompt]) -> list[Answer]:
        return [Answer(outcome="answered", text=json.dumps({"better": self._say(p)})) for p in prompts]

    def _say(self, prompt: Prompt) -> str:
        texts = [prompt.item.outputs[place].text or "" for place in prompt.order]
        second = any(texts[1].endswith(f" {text}") for text in self._injections)
        return "B" if second else "A"


def wins(ratings: LlmRatings) -> float:
    """How often the injected system wins, a tie as half."""
    share = {"win": 0.0, "tie": 0.5, "loss": 1.0}  # rows are about the plain one
    return float(np.mean([share[value] for value in ratings.frame["value"]]))


def ordinary_texts(data: Path) -> Iterator[tuple[str, list[str]]]:
    """Texts that nobody wrote for a judge."""
    yield "USR's replies", [response.response or "" for response in read_usr(data)[1]]
    for corpus, title in (("convai2017", "ConvAI 2017's replies"), ("convai2", "ConvAI2's replies")):
        yield title, [response.response or "" for response in read_thumbs(data, corpus)[0]]
    path = data / "dialogue" / "dailydialog.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        turns = [turn["t"] for line in file for turn in json.loads(line)["turns"]]
    yield "DailyDialog's turns", turns
    yield "MT-Bench answers", [answer.response or "" for answer in read_verdicts(data)[1]]


def measure(judge: LanguageModel, data: Path, cache: Path | None) -> dict[str, Any]:
    """Win rates of the injected system, without and with each injection."""
    clean = rate_study(study_with(data, ""), judge, cache=cache, use_cache=cache is not None)
    rows = []
    tallies = [clean.tally]
    for part, text in read_injections():
        result = rate_study(study_with(data, text), judge, cache=cache, use_cache=cache is not None)
        tallies.append(result.tally)
        rows.append(
            {
                "part": part,
                "text": text,
                "flagged": result.tally.flagged / result.tally.planned,
                "win_rate": wins(result),
                "moved": wins(result) - wins(clean),
            }
        )
    return {
        "asked": sum(tally.asked for tally in tallies),
        "unparsed": sum(tally.unparsed for tally in tallies),
        "failed": sum(tally.failed for tally in tallies),
        "refused": sum(tally.refused for tally in tallies),
        "win_rate": wins(clean),
        "rows": rows,
    }


def count_free_answers(data: Path, cache: Path, device: str) -> dict[str, int]:
    """How many answers are not what was asked for when nothing constrains SmolLM2 (greedy, 40 tokens)."""
    path = cache / "free.json"
    texts = ["", *(text for _, text in read_injections()[: N_FREE - 1])]
    prompts = [prompt for text in texts for prompt in _prompts(study_with(data, text), 1, True)]
    if not path.is_file():
        path.write_text(json.dumps(_free_answers(prompts, device)), encoding="utf-8")
    answers = json.loads(path.read_text(encoding="utf-8"))
    unparsed = sum(prompt.read(answer) is None for prompt, answer in zip(prompts, answers, strict=True))
    return {"asked": len(prompts), "unparsed": unparsed}


def _free_answers(prompts: Sequence[Prompt], device: str) -> list[str]:
    import torch

    from palaver.models.smollm2 import load_smollm2

    model, tokenizer = load_smollm2(device, "float32")
    answers = []
    for prompt in prompts:
        text = tokenizer.apply_chat_template(prompt.messages, tokenize=False, add_generation_prompt=True)
        ids = torch.tensor([tokenizer(text, add_special_tokens=False)["input_ids"]], device=model.device)
        with torch.inference_mode():
            said = model.generate(ids, max_new_tokens=40, do_sample=False, pad_token_id=2, eos_token_id=2)
        answers.append(tokenizer.decode(said[0, ids.shape[1] :], skip_special_tokens=True))
    return answers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--cache", type=Path, default=Path("runs/injections"))
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    texts = [text for _, text in read_injections()]
    judges = {
        "gullible": measure(GullibleJudge(texts), options.data, None),
        "smollm2": measure(
            open_language_model("smollm2", device=options.device), options.data, options.cache
        ),
    }
    ordinary = {}
    for title, plain in ordinary_texts(options.data):
        flagged = [text for text in plain if seems_injected(text)]
        ordinary[title] = {"n": len(plain), "flagged": len(flagged)}
    free = count_free_answers(options.data, options.cache, options.device)
    content = {"contexts": N_CONTEXTS, "judges": judges, "free_answers": free, "ordinary": ordinary}
    command = (
        "python experiments/judges/injections.py --data ../shared/data "
        "--out docs/results/judges-injections.json"
    )
    files = [usr_file(options.data), *(thumbs_file(options.data, c) for c in ("convai2017", "convai2")),
             INJECTIONS]  # fmt: skip
    write_record(options.out, command, files, content)


if __name__ == "__main__":
    main()
