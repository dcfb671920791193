"""The page on everyday talk says what its results files say."""

from __future__ import annotations

from tests.results_pages import RESULTS, read_page, read_results, table_rows

from palaver.files import sha256_of
from palaver.generation.systems_file import CHAT
from palaver.models.shipped import shipped_checkpoint

PAGE = read_page("everyday")


def shown(text: str) -> str:
    return " ".join(text.split()).replace("|", "/")


def test_conversations() -> None:
    results = read_results("everyday")
    assert results["adapter"] == sha256_of(shipped_checkpoint(CHAT) / "model.safetensors")
    rows = table_rows(PAGE, f"| said | {CHAT} |")
    lines = [
        [said, shown(reply)]
        for talk in results["conversations"]
        for said, reply in zip((talk["prompt"], f"… {talk['follow_up']}"), talk[CHAT], strict=True)
    ]
    assert [row[:2] for row in rows] == lines
    verdicts = [row[2].split(":")[0] for row in rows]
    assert set(verdicts) <= {"yes", "no"}
    first, second = (verdicts[start::2].count("yes") for start in (0, 1))
    assert f"{first} of the ten first replies and {second} of the ten second ones" in PAGE
    assert ("ten of ten are not reached" in PAGE) == (first < 10)
    others = table_rows(PAGE, "| said | smollm2 | default |")
    assert others == [
        [talk["prompt"], *(shown(talk[name][0]) for name in ("smollm2", "default"))]
        for talk in results["conversations"]
    ]


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
