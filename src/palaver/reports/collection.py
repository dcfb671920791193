"""Quality and payment of collected conversations, in the terminal and as a page to decide with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.text import Text

from palaver.collection.payout import Payout
from palaver.collection.quality import CheckResult, ConversationResult, Quality
from palaver.collection.records import Conversation
from palaver.errors import count_of
from palaver.reports import lines, numbers, page
from palaver.reports.compare import Grid, Section
from palaver.reports.methods import methods_of
from palaver.schema import RunRecord
from palaver.tabular import show_number

MOST_CONVERSATIONS = 200
"""Whose messages the page shows."""
_CHECK_HEADS = ("review", "reject", "measured", "median", "to review", "rejected")


def print_quality(quality: Quality, console: Console) -> None:
    """What each check found, and the verdicts."""
    table = lines.table(("check", "what is measured"), _CHECK_HEADS, title="Quality")
    for check in quality.checks:
        table.add_row(Text(check.check.replace("_", " ")), Text(check.says), *_cells(check))
    lines.print_table(console, table)
    verdicts = ", ".join(f"{numbers.count(n)} {verdict}" for verdict, n in quality.counts.items())
    lines.line(console, f"conversations: {verdicts}")


def _cells(check: CheckResult) -> tuple[str, ...]:
    sign = "<" if check.bad == "low" else ">"
    return (
        f"{sign} {show_number(check.review)}",
        numbers.DASH if check.reject is None else f"{sign} {show_number(check.reject)}",
        numbers.count(check.measured),
        numbers.DASH if check.median is None else show_number(check.median),
        numbers.count(check.n_review),
        numbers.count(check.n_rejected),
    )


def print_payout(payout: Payout, console: Console) -> None:
    """What is due to whom."""
    heads = ("due", "held", "refused", "paid before")
    table = lines.table(("participant", "why"), heads, title=f"Payment in {payout.currency}")
    for account in payout.accounts:
        why = lines.shorten_on_terminal(console, account.reasons, 60)
        sums = (account.due, account.held, account.refused, account.paid)
        table.add_row(lines.name_cell(account.participant), Text(why), *map(str, sums))
    lines.print_table(console, table)
    lines.line(console, f"due: {payout.due} {payout.currency}")


def review_page(
    quality: Quality, conversations: Sequence[Conversation], payout: Payout, run: RunRecord
) -> str:
    """All verdicts, the messages of those that a person should look at, and the payments."""
    by_id = {conversation.id: conversation for conversation in conversations}
    doubtful = [result for result in quality.results if result.verdict != "accepted"]
    doubtful.sort(key=lambda result: (result.verdict != "review", result.score))
    checks = [(c.check.replace("_", " "), c.says, *_cells(c)) for c in quality.checks]
    rows = [
        (r.conversation, r.verdict, numbers.number(r.score), "; ".join(r.reasons) or numbers.DASH)
        for r in doubtful
    ]
    sections = [
        Section(
            "answer",
            "The answer",
            "Write accept or reject into the column decision of review.csv, then run the same command with "
            "--decisions review.csv.",
            tables=[
                Grid("To be looked at, then rejected.", ["Conversation", "Verdict"], ["Score"], rows, "Why"),
                Grid("What each check found.", ["Check", "What is measured"], _CHECK_HEADS, checks),
            ],
        ),
        Section("messages", "What was said", tables=_transcripts(doubtful[:MOST_CONVERSATIONS], by_id)),
        Section("payment", "Payment", tables=[_payment_grid(payout)]),
    ]
    notes = [*quality.notes, *payout.notes]
    if len(doubtful) > MOST_CONVERSATIONS:
        notes.append(
            f"Messages are shown of the first {MOST_CONVERSATIONS} of {len(doubtful):,} conversations."
        )
    counts = quality.counts
    lead = (
        f"{numbers.count(counts['accepted'])} of {numbers.some(len(quality.results), 'conversation')} "
        f"accepted, {numbers.count(counts['review'])} to be looked at, "
        f"{numbers.count(counts['rejected'])} rejected."
    )
    facts = (count_of(len(quality.results), "conversation"), f"{payout.due} {payout.currency} due")
    return page.render(
        "compare.html.j2",
        run,
        title="Which conversations are good enough?",
        facts=facts,
        lead=lead,
        sections=sections,
        notes=notes,
        methods=methods_of("collection"),
    )


def _transcripts(
    results: Sequence[ConversationResult], conversations: Mapping[str, Conversation]
) -> list[Grid]:
    grids = []
    for result in results:
        turns = conversations[result.conversation].dialogue.turns
        rows = [
            (
                str(n),
                turn.speaker,
                ", ".join(turn.knowledge),
                str(turn.labels.get("sentiment") or ""),
                turn.text,
            )
            for n, turn in enumerate(turns, start=1)
        ]
        caption = f"{result.conversation}: {result.verdict}. {'; '.join(result.reasons)}"
        grids.append(Grid(caption, ["Turn", "Speaker", "Sources", "Sentiment"], [], rows, "Message"))
    return grids


def _payment_grid(payout: Payout) -> Grid:
    rows = [
        (a.participant, str(a.due), str(a.held), str(a.refused), str(a.paid), a.reasons)
        for a in payout.accounts
    ]
    heads = ["Due", "Held", "Refused", "Paid before"]
    return Grid(f"Amounts in {payout.currency}.", ["Participant"], heads, rows, "Why")
