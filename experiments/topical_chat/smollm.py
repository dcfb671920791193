"""SmolLM2 on Topical-Chat and on the scripts: trained and tested on a GPU, measured here.

    python experiments/topical_chat/smollm.py prepare --data DATA --out carry/smollm \
        --selectors tfidf,bm25,trained,trained-encoder --characters
    python experiments/topical_chat/smollm.py run --from carry/smollm --base BASE --minutes 22 --out OUT
    python experiments/topical_chat/smollm.py report OUT --from carry/smollm --out results.json

To be carried: carry/smollm (6 MB), src, this folder, and BASE, a folder of `transformers` (config.json,
model.safetensors in fp16: 270 MB, tokenizer.json, tokenizer_config.json, chat_template.jinja). `run` needs
torch, transformers, accelerate, tokenizers, safetensors, numpy and pydantic; the adapter needs peft. Folders
of packages that are missing may stand on PYTHONPATH.

`run` works through parts, the most valuable first, or in the order of --parts:

- knowledge: `tf-knowledge` (the oracle's sentence), a training for each seed; how the replies of the first
  are decoded best on validation data, and the complete test sets with that;
- selected: that of the first seed with sentences that are chosen from the history alone, and without any;
- tf: without knowledge, the first seed;
- untrained: SmolLM2 as published, with the sentence;
- characters: Speaker and Personality Models (`experiments/personality/measure.py` reads their answers);
- lora: an adapter of `tf-knowledge`, kept in half precision;
- tf-seeds: `tf` with the other seeds.

OUT gets a .tar for every part, rewritten every half minute, and training.json: every epoch of every run, how
each step ended, and the machine. `run` may be called again: what is done is not done anew, and a test goes on
where it was stopped. On an H200 two trainings side by side take 200 s and their start 40 s; four tests and a
training side by side take 310 s. A process takes at most 60 GB of a GPU. A decoding.json among what is
carried is the decoding that an earlier run chose. `report --earlier` keeps the other runs and
seeds of a results file.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

PARTS = ("knowledge", "selected", "tf", "untrained", "characters", "lora", "tf-seeds")


def listed(text: str) -> list[str]:
    return [part for part in text.split(",") if part]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    first = verbs.add_parser("prepare")
    first.add_argument("--data", type=Path, required=True)
    first.add_argument("--out", type=Path, required=True)
    first.add_argument(
        "--selectors", type=listed, default=[], help="others than the oracle, on the test sets"
    )
    first.add_argument("--characters", action="store_true", help="also the scripts")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--from", type=Path, required=True, dest="source")
    common.add_argument("--base", required=True)
    common.add_argument("--parts", type=listed, default=list(PARTS), help=",".join(PARTS))
    common.add_argument("--seeds", type=lambda text: list(map(int, listed(text))), default=[1, 2, 3])
    common.add_argument(
        "--selectors",
        type=listed,
        default=["tfidf", "bm25", "trained", "trained-encoder", "no-sentence"],
        help="of the part `selected`",
    )
    common.add_argument("--epochs", type=int, help="others than the preset's")
    common.add_argument("--minutes", type=float, default=22)
    common.add_argument("--processes", type=int, default=3, help="steps side by side")
    common.add_argument("--out", type=Path, required=True)
    common.add_argument("--compile", action="store_true", help="torch.compile for the layers")
    common.add_argument("--limit", type=int, default=0, help="try it out on so few examples")
    common.add_argument("--set", action="append", default=[], dest="settings", metavar="KEY=VALUE")
    verbs.add_parser("run", parents=[common])
    step = verbs.add_parser("step", parents=[common], help="what `run` calls")
    step.add_argument("kind")
    step.add_argument("name")
    step.add_argument("seed", type=int)
    step.add_argument("selector")
    last = verbs.add_parser("report")
    last.add_argument("folders", type=Path, nargs="+")
    last.add_argument("--from", type=Path, required=True, dest="source")
    last.add_argument("--out", type=Path, required=True)
    last.add_argument("--earlier", type=Path, help="a results file whose other runs are taken over")
    last.add_argument("--responses", type=Path, help="also write the replies, for palaver metrics")
    return parser.parse_args()


def main() -> None:
    given = parse()
    if given.verb == "prepare":
        from smollm_prepare import prepare  # type: ignore[import-not-found]

        prepare(given.data, given.out, given.selectors, given.characters)
    elif given.verb == "report":
        from smollm_report import report  # type: ignore[import-not-found]

        report(given.folders, given.source, given.out, given.earlier, given.responses)
    else:
        from smollm_queue import Queue, Step, run_step  # type: ignore[import-not-found]

        if given.verb == "step":
            run_step(Step(given.kind, given.name, given.seed, given.selector), given)
        else:
            Queue(given, sys.argv[2:]).work()


if __name__ == "__main__":
    main()
