"""The page on everyday talk says what its results files say."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest
from tests.results_pages import RESULTS, read_page, read_results, table_rows

from palaver.artefacts import digest
from palaver.files import sha256_of
from palaver.generation.systems_file import CHAT, EVERYDAY, find_system
from palaver.generation.written import SHIPPED, read_exchanges
from palaver.models.catalogue import shipped_checkpoint

PAGE = read_page("everyday")


def shown(text: str) -> str:
    return " ".join(text.split()).replace("|", "/")


def lines_of(results: dict[str, Any], name: str) -> list[list[str]]:
    return [
        [said, shown(reply)]
        for talk in results["conversations"]
        for said, reply in zip((talk["prompt"], f"… {talk['follow_up']}"), talk[name], strict=True)
    ]


@pytest.mark.parametrize("name", [EVERYDAY, CHAT])
def test_conversations(name: str) -> None:
    rows = table_rows(PAGE, f"| said | {name} |")
    assert [row[:2] for row in rows] == lines_of(read_results("everyday"), name)
    verdicts = [row[2].split(":")[0] for row in rows]
    assert set(verdicts) <= {"yes", "no"}
    first, second = (verdicts[start::2].count("yes") for start in (0, 1))
    assert f"{first} of the ten first replies and {second} of the ten second ones" in PAGE


def test_conversations_are_those_of_what_ships() -> None:
    """The replies of `everyday` depend on nothing but its exchanges, its encoder and its limit."""
    results = read_results("everyday")
    assert results["adapter"] == sha256_of(shipped_checkpoint(CHAT) / "model.safetensors")
    exchanges = [asdict(one) for one in read_exchanges(sorted(SHIPPED.glob("*.txt")))]
    assert results[EVERYDAY]["exchanges"] == digest(exchanges)
    assert results[EVERYDAY]["near"] == find_system(EVERYDAY).options.near


def test_other_systems() -> None:
    results = read_results("everyday")
    others = table_rows(PAGE, "| said | smollm2 | default |")
    assert others == [
        [talk["prompt"], *(shown(talk[name][0]) for name in ("smollm2", "default"))]
        for talk in results["conversations"]
    ]


def test_verdicts_without_names() -> None:
    if not (RESULTS / "everyday-judged.json").exists():
        assert "Not judged yet" in PAGE
        return
    results = read_results("everyday-judged")
    assert f"Judge: {results['judge']}." in PAGE
    rows = []
    for part, systems in results["accepted"].items():
        talks = [talk for talk in results["conversations"] if talk["part"] == part]
        for name, counts in systems.items():
            verdicts = [talk["accepted"][name] for talk in talks]
            assert counts["first"] == sum(of_talk[0] for of_talk in verdicts)
            assert counts["all"] == sum(map(sum, verdicts))
            first, every = (f"{counts[key]} of {counts[f'n_{key}']}" for key in ("first", "all"))
            p = "< 0.01" if counts["p"] < 0.01 else f"{counts['p']:.2f}"
            rows.append([part, name, first, every, "" if name == CHAT else p])
    assert table_rows(PAGE, "| prompts | system |") == rows


def test_examples() -> None:
    results = read_results("everyday-examples")
    shown_rows = table_rows(PAGE, "| system | first replies accepted |")
    for row, (name, counts) in zip(shown_rows, results["accepted"].items(), strict=True):
        of_all = f"{counts['all']} of {counts['n_all']}" if "all" in counts else "–"
        p = "" if name == CHAT else f"{counts['p']:.2f}"
        assert row == [name, f"{counts['first']} of {counts['n_first']}", of_all, p]
    for name in ("default-chat", "default-chat, four examples", "nearest reply"):
        verdicts = [row["accepted"][name][0] for row in results["conversations"]]
        assert sum(verdicts) == results["accepted"][name]["first"]
        assert all(len(row["accepted"][name]) == len(row["lines"]) for row in results["conversations"])
    assert f"cosine ≥ {results['near']:.1f}, {results['n_near']} of {len(results['conversations'])}" in PAGE
    assert results["part"] == "development"
    assert results["note"]
    assert "twenty held-out conversations were not asked" in " ".join(PAGE.split())


def test_training() -> None:
    results = read_results("everyday-training")
    first, more = results["first"], results["more"]
    losses = first["valid_nll_per_token"]
    assert first["kept"] == min(losses, key=lambda name: min(losses[name]))
    for loss in (
        min(losses[first["kept"]]),
        more["valid_nll_per_token_before"],
        min(more["valid_nll_per_token"]),
    ):
        assert f"{loss:.2f}" in PAGE


def test_speed() -> None:
    if not (RESULTS / "chat-speed.json").exists():
        assert "Not measured yet" in PAGE
        return
    results = read_results("chat-speed")
    assert table_rows(PAGE, "| system | tokens a second |") == [
        [name, f"{row['tokens_per_second']:.1f}", f"{row['first_piece_seconds']:.2f}"]
        for name, row in results["systems"].items()
    ]
    n_equal, n = results["equal_greedy_replies"]
    assert f"{n_equal} of {n} greedy replies" in PAGE
