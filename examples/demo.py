"""The whole path in one go: a system that replies; then simulated raters with known truth, their ratings, the
analysis, the report."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from palaver.generation.systems_file import best_system, open_system
from palaver.readers.rating_files import write_frames
from palaver.reports import print_analysis, write_report
from palaver.schema import Dialogue, Request, Turn
from palaver.studies import analyse, example_study, read_ratings, simulate, write_long
from palaver.studies.design import preset_study, study_toml

OUT = Path("demo-output")
SEED = 1


def chat(console: Console) -> None:
    """A few words with the best system that is here (`palaver chat` goes on)."""
    name, about = best_system()
    console.print(f"A chat with {about}:", highlight=False)
    system = open_system(name)
    turns: list[Turn] = []
    for line in ("Hi! Do you like movies?", "What is your favorite one?"):
        turns.append(Turn(speaker="you", text=line))
        [reply] = system.reply([Request(Dialogue(id="demo", turns=tuple(turns)))])
        turns.append(Turn(speaker=name, text=reply.text))
    for turn in turns:
        console.print(f"  {turn.speaker}: {turn.text}", highlight=False)


def main() -> None:
    console = Console()
    chat(console)
    console.print()
    OUT.mkdir(exist_ok=True)
    study = example_study(preset_study("rankme"), n_systems=5, n_items=100)
    simulated = simulate(study, n_raters=20, seed=SEED)
    (OUT / "study.toml").write_text(study_toml(study), encoding="utf-8")
    write_frames([simulated.frame], OUT / "ratings.csv")
    console.print(
        f"A simulated RankME study: {len(study.systems)} systems, {len(study.items)} items, "
        f"{study.raters_per_item} of 20 raters each. The truth is known:",
        highlight=False,
    )
    for criterion, truth in simulated.truth.items():
        order = sorted(truth, key=lambda system: -truth[system])
        console.print(f"  {criterion}: {' > '.join(order)}", highlight=False)
    console.print(f"  answering without reading: {', '.join(simulated.careless)}\n", highlight=False)

    table = read_ratings(OUT / "ratings.csv", study=study)
    found = analyse(table, study=study, seed=SEED)
    (OUT / "results.json").write_text(found.to_json(), encoding="utf-8")
    write_long(table, OUT / "ratings.parquet")
    report = write_report(found, OUT / "report.html")
    print_analysis(found, console)
    console.print(f"\nThe report: {report.resolve()}", highlight=False, soft_wrap=True)


if __name__ == "__main__":
    main()
