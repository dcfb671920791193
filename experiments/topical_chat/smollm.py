"""SmolLM2 on Topical-Chat and on the scripts: trained and tested on a GPU, measured here.

    python experiments/topical_chat/smollm.py prepare --data DATA --out carry/smollm [--characters]
    python experiments/topical_chat/smollm.py run --from carry/smollm --base BASE --runs tf-knowledge,tf \
        --seeds 1,2,3 --epochs 2 --minutes 9 --processes 3 --out OUT
    python experiments/topical_chat/smollm.py report OUT --from carry/smollm --out results.json

To be carried: carry/smollm (3 MB; with --characters 6 MB), src, this file, and BASE, a folder of
`transformers` (config.json, model.safetensors in fp16: 270 MB, tokenizer.json, tokenizer_config.json,
chat_template.jinja). `run` needs torch, transformers, accelerate, tokenizers, safetensors, numpy and
pydantic; --lora needs peft. Folders of packages that are missing may stand on PYTHONPATH.

Runs: tf-knowledge (the oracle's sentence), tf (no knowledge), untrained (SmolLM2 as published, with the
sentence), speaker and personality (the scripts; `experiments/personality/measure.py` reads their answers).
OUT gets

- `responses.jsonl.gz`: for each run, seed and turn of the complete test sets the reply by greedy decoding,
  and what the true response costs in nats;
- `adapter-NAME-SEED/` with --lora: config.json and model.safetensors, in half precision;
- `smollm-speaker.jsonl.gz`, `smollm-personality.jsonl.gz`, `extremes.jsonl.gz`, `requests.jsonl.gz`;
- `training.json`: every epoch of every run, how it ended, and the machine.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import json
import lzma
import math
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RUNS = Path("runs/smollm")
MADE = RUNS / "made"
SPLITS = ("train", "valid_freq", "test_freq", "test_rare")
TESTS = SPLITS[2:]
PRESETS = {
    "tf-knowledge": "smollm-tf-knowledge",
    "tf": "smollm-tf",
    "untrained": "smollm-tf-knowledge",
    "speaker": "smollm-speaker",
    "personality": "smollm-personality",
}
CHARACTERS = ("speaker", "personality")
SHOWS = ("friends", "big-bang-theory")
MAX_NEW = 60
BATCH_TOKENS = 32_768
"""Of a batch that is scored."""
LORA = ["model.lora_rank=8", "model.lora_alpha=16", "optimiser.learning_rate=1e-3"]
METRICS = ["unigram_f1", "diversity_1", "diversity_2", "distinct_1", "distinct_2", "words"]


# Here: what is carried ------------------------------------------------------------------------------------


def prepare(data: Path, out: Path, characters: bool) -> None:
    """Dialogues, and the oracle's sentence for every turn."""
    from palaver.corpora.catalogue import read_corpus
    from palaver.knowledge.candidates import reading_sentences
    from palaver.knowledge.corpus import select_for
    from palaver.knowledge.selector import make_selector

    out.mkdir(parents=True, exist_ok=True)
    selector = make_selector("oracle", reading_sentences(read_corpus("topical-chat", root=data)))
    for split in SPLITS:
        n = 0
        with (
            lzma.open(out / f"{split}.jsonl.xz", "wt", encoding="utf-8") as talk,
            lzma.open(out / f"{split}.knowledge.jsonl.xz", "wt", encoding="utf-8") as facts,
        ):
            for dialogue, chosen in select_for(read_corpus("topical-chat", root=data, split=split), selector):
                turns = [{"s": turn.speaker, "t": turn.text} for turn in dialogue.turns]
                sentences = [choice.sentence if choice is not None else "" for choice in chosen]
                talk.write(json.dumps({"id": dialogue.id, "turns": turns}, ensure_ascii=False) + "\n")
                facts.write(json.dumps([dialogue.id, sentences], ensure_ascii=False) + "\n")
                n += 1
        print(f"{split}: {n:,} dialogues", flush=True)
    if characters:
        _prepare_characters(data, out)


def _prepare_characters(data: Path, out: Path) -> None:
    sys.path.insert(0, str(ROOT / "experiments/personality"))
    import prepare as scripts  # type: ignore[import-not-found]

    from palaver.corpora.catalogue import read_corpus
    from palaver.corpora.personalities import write_ocean_table
    from palaver.personality.recogniser import load_recogniser
    from palaver.personality.table import estimate_table
    from palaver.reproduce.personality import EXTREMES

    wide = estimate_table(SHOWS, load_recogniser(), root=data).scores(relative=True)
    write_ocean_table(out / "ocean-wide.csv", wide)
    write_ocean_table(out / "extremes.csv", EXTREMES)
    write_ocean_table(out / "requests-wide.csv", scripts.requests(wide))
    texts = scripts.contexts(data, 20_000)
    (out / "contexts.txt").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    for show in SHOWS:
        scripts.write_talk(out / f"{show}.jsonl.xz", read_corpus(show, root=data))


# There: one run -------------------------------------------------------------------------------------------


def label(name: str, given: argparse.Namespace) -> str:
    """What a run is called in the results."""
    return f"{name}-lora" if given.lora else name


def settings(name: str, seed: int, given: argparse.Namespace) -> list[str]:
    """What differs from the preset: data as files, and what the command line says."""
    key = f"{label(name, given)}-{seed}"
    changes = [f"out={RUNS / key}", f"seed={seed}", f"data.prepared={RUNS}/prepared-{key}"]
    changes += [f"model.base={given.base}", "log.checkpoint_every=0", f"optimiser.epochs={given.epochs}"]
    if name in CHARACTERS:
        scripts = ", ".join(f'{{path="{MADE}/{show}.jsonl"}}' for show in SHOWS)
        changes.append(f"data.train=[{scripts}]")
        if name == "personality":
            changes.append(f"data.ocean={MADE}/ocean-wide.csv")
    else:
        changes += [f'data.train=[{{path="{MADE}/train.jsonl"}}]', "data.valid_examples=2000"]
        changes.append(f'data.valid=[{{path="{MADE}/valid_freq.jsonl"}}]')
    if given.lora:
        changes += LORA
    if given.limit:
        changes += [f"data.max_examples={given.limit}", "data.valid=[]", "optimiser.batch_tokens=2048"]
        changes += [f"data.valid_examples={given.limit // 4}", "optimiser.max_steps=4"]
    return [*changes, *given.settings]


class Log:
    """Prints how a run goes."""

    def row(self, row: dict[str, Any], done: float) -> None:
        keys = ("step", "seconds", "ppl_word", "valid_ppl_word", "tokens_per_second", "memory_mb")
        print(row["kind"], {key: round(row[key], 2) for key in keys if key in row}, flush=True)

    def note(self, text: str) -> None:
        print(text, flush=True)


def chosen_sentences(splits: Iterable[str]) -> dict[str, list[str]]:
    """Dialogue -> the sentence of each turn."""
    sentences: dict[str, list[str]] = {}
    for split in splits:
        with (MADE / f"{split}.knowledge.jsonl").open(encoding="utf-8") as file:
            sentences |= dict(map(json.loads, file))
    return sentences


def train_one(name: str, seed: int, given: argparse.Namespace) -> Path:
    """The folder of the best checkpoint."""
    from palaver.training import run
    from palaver.training.experiment_file import preset_experiment

    if importlib.util.find_spec("matplotlib") is None:
        run.draw_curves = lambda folder, title: None
    experiment = preset_experiment(PRESETS[name], settings(name, seed, given))
    known = chosen_sentences(("train", "valid_freq")) if experiment.data.knowledge != "none" else {}

    def select(dialogues: Iterable[Any]) -> Iterator[tuple[Any, list[str]]]:
        for dialogue in dialogues:
            yield dialogue, known[dialogue.id]

    if given.compile:
        _compile_layers(run)
    outcome = run.train(experiment, select=select if known else None, watcher=Log())
    print(f"trained: {outcome.reason}", flush=True)
    best = experiment.folder / "best"
    return best if best.exists() else experiment.folder / "last"


def _compile_layers(run: Any) -> None:
    """One compiled layer serves all of them, since they are alike."""
    make = run.make_model

    def make_model(*given: Any) -> Any:
        model, notes = make(*given)
        for layer in model.language_model.base_model.layers:
            layer.compile(dynamic=True)
        return model, notes

    run.make_model = make_model


def untrained(base: str) -> Path:
    """SmolLM2 as it was published, kept like a checkpoint."""
    from palaver.models.causal import CausalResponder
    from palaver.models.causal_base import read_base
    from palaver.models.pretrained import build, fingerprint
    from palaver.text.vocabulary import Vocabulary

    about = read_base(base)
    vocabulary = Vocabulary.load(about.folder, foreign=True)
    fields = {"architecture": about.architecture, "frame": asdict(about.frame), "end": about.end}
    fields |= {"vocab_size": len(vocabulary), "vocabulary": fingerprint(vocabulary), "knowledge": True}
    limits = {"max_context": 384, "max_knowledge": 128, "max_response": 160}
    model = build({"model": "causal", "base": base, **fields, **limits})
    assert isinstance(model, CausalResponder)
    model.load_base()
    folder = RUNS / "untrained"
    model.save_pretrained(folder)
    vocabulary.save(folder)
    return folder


def test_rows(split: str, limit: int) -> list[dict[str, Any]]:
    """Every turn of a test set but the first of each conversation, with its history and its sentence."""
    sentences = chosen_sentences([split])
    rows = []
    with (MADE / f"{split}.jsonl").open(encoding="utf-8") as file:
        for dialogue in map(json.loads, file):
            texts = [turn["t"].strip() for turn in dialogue["turns"]]
            for i in range(1, len(texts)):
                if texts[i] and any(texts[:i]):
                    fact = sentences[dialogue["id"]][i]
                    row = {"split": split, "dialogue": dialogue["id"], "turn": i, "history": texts[:i]}
                    rows.append({**row, "response": texts[i], "knowledge": fact})
    return rows[: limit or None]


def test_one(folder: Path, name: str, seed: int, split: str, limit: int) -> Iterator[str]:
    """Lines about every turn of a test set: what was said, and what the true response costs."""
    import torch

    from palaver.generation.decode import Decoding, decode, pad
    from palaver.models.pretrained import load
    from palaver.models.turns import encode_knowledge, encode_turns, join_turns
    from palaver.text.vocabulary import EOS

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.set_float32_matmul_precision("high")
    model, vocabulary = load(folder, device=device)
    model.merge()
    c = model.config
    began = time.perf_counter()
    rows = test_rows(split, limit)
    texts = list(dict.fromkeys(text for row in rows for text in (*row["history"], row["response"])))
    ids = dict(zip(texts, encode_turns(vocabulary, texts), strict=True))
    contexts = [
        join_turns([ids[text] for text in row["history"]], c.max_context, c.frame).tokens for row in rows
    ]
    facts = [row["knowledge"] for row in rows]
    knowledge = [fact.tokens for fact in encode_knowledge(vocabulary, facts, c.max_knowledge)]
    if not c.knowledge:
        knowledge = [[] for _ in rows]
    responses = [[*ids[row["response"]], EOS] for row in rows]
    nll = [0.0] * len(rows)
    lengths = [sum(map(len, parts)) for parts in zip(contexts, knowledge, responses, strict=True)]
    model.to(torch.float32)
    with torch.inference_mode():
        for batch in batches(lengths):
            tensors = [pad([part[i] for i in batch], device) for part in (contexts, responses, knowledge)]
            fact = {"knowledge": tensors[2]} if c.knowledge else {}
            costs = model.response_nll(tensors[0], tensors[1], **fact).tolist()  # type: ignore[operator]
            for i, cost in zip(batch, costs, strict=True):
                nll[i] = cost
    scored = time.perf_counter()
    if device.type == "cuda":
        model.to(torch.bfloat16)
    how = Decoding(method="greedy", max_length=MAX_NEW)
    decoded = decode(model, contexts, how, knowledge=knowledge if c.knowledge else None)
    said = vocabulary.decode_batch([one.tokens for one in decoded])
    done = time.perf_counter()
    print(f"{split}: scored in {scored - began:.0f} s, decoded in {done - scored:.0f} s", flush=True)
    for row, text, tokens, cost in zip(rows, said, responses, nll, strict=True):
        about = {"run": name, "seed": seed, "split": split, "id": f"{row['dialogue']}:{row['turn']}"}
        line = {**about, "response": text, "nll": round(cost, 4), "n_tokens": len(tokens)}
        yield json.dumps(line, ensure_ascii=False) + "\n"


def batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Numbers of rows, sorted by length and cut by tokens."""
    batch: list[int] = []
    for i in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if batch and (len(batch) + 1) * lengths[batch[0]] > BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def answer_as_characters(folder: Path, name: str, out: Path, limit: int) -> None:
    """What every character says to the same contexts; requested and extreme personalities, too."""
    import torch

    from palaver.corpora.personalities import read_ocean_table
    from palaver.generation.decode import Decoding, decode
    from palaver.models.pretrained import load
    from palaver.models.turns import encode_turns, join_turns

    device = "cuda" if torch.cuda.is_available() else "cpu"
    model, vocabulary = load(folder, device=device, dtype=torch.bfloat16 if device == "cuda" else None)
    model.merge()
    c = model.config
    texts = (MADE / "contexts.txt").read_text(encoding="utf-8").splitlines()[: limit or None]
    encoded = [join_turns([t], c.max_context, c.frame).tokens for t in encode_turns(vocabulary, texts)]
    how = Decoding(method="stochastic-greedy", k=5, max_length=40, seed=0)
    is_personal = c.conditioning == "personality"

    def write(path: Path, n: int, who: Sequence[str], scores: Sequence[Sequence[float]] | None) -> None:
        with gzip.open(path, "wt", encoding="utf-8", compresslevel=6) as file:
            for begin in range(0, n, 2000):
                jobs = [(i, k) for i in range(begin, min(begin + 2000, n)) for k in range(len(who))]
                options: dict[str, Any] = {"speaker": [k for _, k in jobs]}
                if is_personal:
                    table = scores or [c.ocean[name] for name in who]
                    options = {"ocean": [table[k] for _, k in jobs]}
                keys = [1000 * i + k for i, k in jobs]
                decoded = decode(model, [encoded[i] for i, _ in jobs], how, keys=keys, **options)
                said = vocabulary.decode_batch([one.tokens for one in decoded])
                for (i, k), text in zip(jobs, said, strict=True):
                    row: dict[str, Any] = {"id": str(i + 1), "system": f"smollm-{name}", "speaker": who[k]}
                    if scores is not None:
                        row["ocean"] = [round(score, 3) for score in scores[k]]
                    file.write(json.dumps({**row, "response": text}, ensure_ascii=False) + "\n")
                print(f"{path.name}: {begin + 2000:,} contexts", flush=True)

    write(out / f"smollm-{name}.jsonl.gz", len(texts), [*(c.ocean if is_personal else c.speakers)], None)
    if is_personal:
        requests, extremes = (read_ocean_table(MADE / f"{t}.csv") for t in ("requests-wide", "extremes"))
        write(out / "requests.jsonl.gz", min(500, len(texts)), [*requests], [*requests.values()])
        write(out / "extremes.jsonl.gz", len(texts), [*extremes], [*extremes.values()])


def keep_adapter(folder: Path, target: Path) -> None:
    """In half precision; its base is the model that everybody can get."""
    import torch
    from safetensors.torch import load_file, save_file

    target.mkdir(parents=True, exist_ok=True)
    weights = {name: w.to(torch.float16) for name, w in load_file(folder / "model.safetensors").items()}
    save_file(weights, target / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config["base"] = "smollm2"
    (target / "config.json").write_text(json.dumps(config, indent=1, ensure_ascii=False), encoding="utf-8")


def run_one(name: str, seed: int, given: argparse.Namespace) -> None:
    """In a process of its own: train, test, keep."""
    began = time.perf_counter()
    key = f"{label(name, given)}-{seed}"
    folder = untrained(given.base) if name == "untrained" else train_one(name, seed, given)
    trained = time.perf_counter()
    if name in CHARACTERS:
        answer_as_characters(folder, name, given.out, given.limit)
    else:
        for split in TESTS:  # a file is whole or not there: what is stopped loses one test set
            part = RUNS / f"{key}-{split}.jsonl.gz"
            with gzip.open(part.with_suffix(".part"), "wt", encoding="utf-8") as file:
                file.writelines(test_one(folder, label(name, given), seed, split, given.limit))
            part.with_suffix(".part").rename(part)
    if given.lora:
        keep_adapter(folder, given.out / f"adapter-{key}")
    ended = {"train_seconds": round(trained - began), "test_seconds": round(time.perf_counter() - trained)}
    (RUNS / f"{key}.json").write_text(json.dumps(ended), encoding="utf-8")


# There: all runs ------------------------------------------------------------------------------------------


def run_all(given: argparse.Namespace) -> None:
    began = time.time()
    given.out.mkdir(parents=True, exist_ok=True)
    MADE.mkdir(parents=True, exist_ok=True)
    for path in given.source.iterdir():
        if path.suffix == ".xz":
            with lzma.open(path) as packed, (MADE / path.stem).open("wb") as file:
                shutil.copyfileobj(packed, file)
        else:
            shutil.copy(path, MADE)
    jobs = [(name, seed) for seed in given.seeds for name in given.runs]
    jobs = [(n, s) for n, s in jobs if s == given.seeds[0] or n not in (*CHARACTERS, "untrained")]
    running: dict[tuple[str, int], subprocess.Popen[bytes]] = {}
    ends: dict[str, str] = {}
    waiting = list(jobs)
    paths = [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": ":".join(filter(None, paths)), "PYTHONUNBUFFERED": "1"}
    environment |= {"TOKENIZERS_PARALLELISM": "true", "HF_HUB_OFFLINE": "1"}
    environment["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"  # batches differ in their shapes
    while waiting or running:
        late = time.time() > began + 60 * given.minutes
        while waiting and len(running) < given.processes and not late:
            name, seed = waiting.pop(0)
            command = [sys.executable, str(Path(__file__).resolve()), "one", name, str(seed), *given.words]
            with open(RUNS / f"{label(name, given)}-{seed}.log", "wb") as log:
                running[name, seed] = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
            print(f"{time.time() - began:5.0f} s  {name} {seed}: started", flush=True)
        for job, process in list(running.items()):
            if late:
                process.kill()
                process.wait()
            if process.poll() is not None:
                del running[job]
                key = f"{label(job[0], given)}-{job[1]}"
                ends[key] = "out of time" if late else f"exit {process.returncode}"
                log_text = (RUNS / f"{key}.log").read_text(encoding="utf-8", errors="replace")
                print(f"{time.time() - began:5.0f} s  {key}: {ends[key]}", flush=True)
                print("    " + "\n    ".join(log_text.splitlines()[-6 if ends[key] == "exit 0" else -25 :]))
        if late:
            ends |= {f"{label(n, given)}-{s}": "not started: out of time" for n, s in waiting}
            break
        time.sleep(0.5)
    gather(given, jobs, ends, time.time() - began)


def gather(given: argparse.Namespace, jobs: Sequence[Any], ends: dict[str, str], seconds: float) -> None:
    """Everything that is to be kept, in few files."""
    import torch

    with (given.out / "responses.jsonl.gz").open("wb") as joined:  # gzip files one after another are one
        for name, seed in jobs:
            for part in sorted(RUNS.glob(f"{label(name, given)}-{seed}-test_*.jsonl.gz")):
                joined.write(part.read_bytes())
    runs = {}
    for name, seed in jobs:
        key = f"{label(name, given)}-{seed}"
        metrics, times = RUNS / key / "metrics.jsonl", RUNS / f"{key}.json"
        rows = [json.loads(line) for line in metrics.read_text().splitlines()] if metrics.exists() else []
        keys = ("epoch", "step", "seconds", "ppl_word", "valid_ppl_word", "lr")
        epochs = [{k: round(row[k], 6) for k in keys if k in row} for row in rows if row["kind"] == "epoch"]
        speeds = [row["tokens_per_second"] for row in rows if row["kind"] == "step"]
        runs[key] = {"end": ends.get(key, ""), "epochs": epochs, "settings": settings(name, seed, given)}
        runs[key] |= {"tokens_per_second": max(speeds, default=0)}
        runs[key] |= json.loads(times.read_text()) if times.exists() else {}
    machine = {"gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"}
    machine |= {"cores": os.cpu_count(), "torch": torch.__version__, "python": platform.python_version()}
    command = "experiments/topical_chat/smollm.py run " + " ".join(given.words)
    content = {"command": command, "seconds": round(seconds), "machine": machine, "runs": runs}
    (given.out / "training.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


# Here: the table ------------------------------------------------------------------------------------------


def report(folders: Sequence[Path], source: Path, out: Path, responses: Path | None) -> None:
    """Perplexity per word, F1 and diversity on the complete test sets, all of a row from one checkpoint."""
    from palaver.metrics.evaluate import evaluate
    from palaver.statistics.perplexity import corpus_perplexity
    from palaver.text.words import count_words

    MADE.mkdir(parents=True, exist_ok=True)
    for split in TESTS:
        for kind in ("", ".knowledge"):
            with lzma.open(source / f"{split}{kind}.jsonl.xz") as packed:
                (MADE / f"{split}{kind}.jsonl").write_bytes(packed.read())
    true = {f"{r['dialogue']}:{r['turn']}": r for split in TESTS for r in test_rows(split, 0)}
    counts = {split: sum(r["split"] == split for r in true.values()) for split in TESTS}
    rows: dict[tuple[str, int, str], list[dict[str, Any]]] = {}
    for folder in folders:
        with gzip.open(folder / "responses.jsonl.gz", "rt", encoding="utf-8") as file:
            for row in map(json.loads, file):
                rows.setdefault((row["run"], row["seed"], row["split"]), []).append(row)
    table = []
    sentences = [{"id": k, "response": r["knowledge"], "split": r["split"]} for k, r in true.items()]
    for split in TESTS:  # what needs no model: the oracle's sentence itself
        rows["the sentence itself", 0, split] = [row for row in sentences if row["split"] == split]
    for (name, seed, split), own in rows.items():
        references = [true[row["id"]]["response"] for row in own]
        figures: dict[str, Any] = {"run": name, "seed": seed, "split": split, "n": len(own)}
        figures["is_complete"] = len(own) == counts[split]
        if "nll" in own[0]:
            talks: dict[str, list[float]] = {}
            for row, reference in zip(own, references, strict=True):
                sums = talks.setdefault(row["id"].rsplit(":", 1)[0], [0.0, 0.0, 0.0])
                for i, more in enumerate((row["nll"], row["n_tokens"], 1 + count_words(reference))):
                    sums[i] += more
            perplexity = corpus_perplexity(*zip(*talks.values(), strict=True))  # type: ignore[arg-type]
            interval = perplexity.per_word_interval
            assert interval is not None
            figures |= {"ppl_word": [perplexity.per_word, interval.low, interval.high]}
            figures |= {"ppl_token": perplexity.per_token, "n_conversations": len(talks)}
        if all(row["response"] is not None for row in own):  # else the run ended before it had replied
            result = evaluate([row["response"] for row in own], references, metrics=METRICS)
            figures |= {one.name: [_known(x) for x in (one.value, one.low, one.high)] for one in result}
        table.append(figures)
        shown = {k: v[0] if isinstance(v, list) else v for k, v in figures.items()}
        print("  ".join(f"{k} {v:.3f}" if isinstance(v, float) else str(v) for k, v in shown.items()))
    training = [json.loads((folder / "training.json").read_text(encoding="utf-8")) for folder in folders]
    content = {
        "command": f"experiments/topical_chat/smollm.py report {' '.join(f.name for f in folders)}",
        "data": "Topical-Chat, complete test sets; the oracle's sentences of reading sets partly recovered",
        "counts": counts,
        "decoding": f"greedy, at most {MAX_NEW} tokens",
        "intervals": "95 %, bootstrap; perplexity over conversations, the others over responses",
        "table": table,
        "training": training,
    }
    out.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if responses is not None:
        with gzip.open(responses, "wt", encoding="utf-8") as file:
            for (name, seed, _), own in rows.items():
                for row in (row for row in own if row["response"] is not None):
                    about = true[row["id"]]
                    line = {"id": row["id"], "system": f"{name}-{seed}", "response": row["response"]}
                    line |= {"reference": about["response"], "knowledge": about["knowledge"]}
                    line["context"] = about["history"][-1]
                    file.write(json.dumps(line, ensure_ascii=False) + "\n")


def _known(value: float) -> float | None:
    """JSON has no nan."""
    return None if math.isnan(value) else value


def _listed(text: str) -> list[str]:
    return [part for part in text.split(",") if part]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    first = verbs.add_parser("prepare")
    first.add_argument("--data", type=Path, required=True)
    first.add_argument("--out", type=Path, required=True)
    first.add_argument("--characters", action="store_true", help="also the scripts")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--from", type=Path, required=True, dest="source")
    common.add_argument("--base", required=True)
    common.add_argument("--runs", type=_listed, default=["tf-knowledge", "tf"])
    common.add_argument("--seeds", type=lambda text: list(map(int, _listed(text))), default=[1])
    common.add_argument("--epochs", type=int, default=2)
    common.add_argument("--minutes", type=float, default=9)
    common.add_argument("--processes", type=int, default=2, help="runs side by side")
    common.add_argument("--out", type=Path, required=True)
    common.add_argument("--lora", action="store_true", help="train an adapter and keep it")
    common.add_argument("--compile", action="store_true", help="torch.compile for the layers")
    common.add_argument("--limit", type=int, default=0, help="try it out on so few examples")
    common.add_argument("--set", action="append", default=[], dest="settings", metavar="KEY=VALUE")
    verbs.add_parser("run", parents=[common])
    one = verbs.add_parser("one", parents=[common])
    one.add_argument("name")
    one.add_argument("seed", type=int)
    last = verbs.add_parser("report")
    last.add_argument("folders", type=Path, nargs="+")
    last.add_argument("--from", type=Path, required=True, dest="source")
    last.add_argument("--out", type=Path, required=True)
    last.add_argument("--responses", type=Path, help="also write the replies, for palaver metrics")
    given = parser.parse_args()
    if given.verb == "prepare":
        prepare(given.data, given.out, given.characters)
    elif given.verb == "report":
        report(given.folders, given.source, given.out, given.responses)
    elif given.verb == "one":
        run_one(given.name, given.seed, given)
    else:
        given.words = sys.argv[2:]
        run_all(given)


if __name__ == "__main__":
    main()
