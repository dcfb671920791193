"""What docs/how-to/evaluate.md says of speed and kills, from docs/results/evaluate*.json; a test compares.

python -m benchmarks.evaluate_page
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.harness import fill_block

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs/how-to/evaluate.md"


def soak_text(results: Mapping[str, Any]) -> str:
    kills, ended = results["kills"], results["runs_that_ended"]
    equal, n_files = results["of_these_byte_equal"], len(results["files_compared"])
    twice, batches = results["cells_paid_twice"], results["one_batch_a_kill_would_be"]
    return (
        f"Runs of 1,600 cells (two systems, one judge) were killed {kills} times at moments drawn at random\n"
        f"and started again: {ended} came to their end, {equal} of them with the very bytes of a run nobody\n"
        f"killed in all {n_files} files. {twice['reply']:,} replies and {twice['judge']:,} judgements were\n"
        f"asked for twice; one batch a kill would have been {batches['reply']:,} and {batches['judge']:,}."
    )


def speed_text(results: Mapping[str, Any]) -> str:
    cells, seconds, limit = (results[key] for key in ("cells", "nothing_to_do_seconds", "limit_seconds"))
    missed = "" if seconds <= limit else f"; {limit:g} s was to be reached and was not"
    anew = results["all_cells_there_but_a_new_title_seconds"]
    return (
        f"A finished run of {cells:,} cells says so in {seconds} s when it is started again{missed}.\n"
        f"With another title, all of them are read and the report is written anew in {anew:.0f} s."
    )


def size_text(results: Mapping[str, Any]) -> str:
    gigabytes, kilobytes = results["bytes_of_folder"] / 1e9, results["bytes_of_report"] / 1e3
    first, again = results["first_peak_megabytes"], results["report_again_peak_megabytes"]
    seconds, limit = results["open_seconds"], results["limit_seconds"]
    missed = "" if seconds <= limit else f" ({limit:g} s was to be reached and was not)"
    opens = f"opens in {seconds} s{missed}"
    return (
        f"Results of {gigabytes:.2f} GB ({results['contexts']:,} contexts, two systems, one judge) have\n"
        f"a page of {kilobytes:.0f} kB with {results['examples']} examples that {opens};\n"
        f"the run held {first} MB of memory at most, and {again} MB when it wrote the report anew."
    )


BLOCKS: dict[str, tuple[str, Callable[[Mapping[str, Any]], str]]] = {
    "soak": ("docs/results/evaluate-soak.json", soak_text),
    "speed": ("docs/results/evaluate.json", speed_text),
    "size": ("docs/results/evaluate-size.json", size_text),
}


def render(page: str) -> str:
    """The page with what the results files say."""
    for name, (file, text) in BLOCKS.items():
        record = json.loads((ROOT / file).read_text(encoding="utf-8"))
        machine = f"Machine: {record['machine']}. Command: `{record['command']}`."
        page = fill_block(page, name, file, f"{text(record['results'])}\n{machine}")
    return page


def main() -> None:
    PAGE.write_text(render(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
