"""Who is paid what: everybody who came is paid or told why not, and nothing is paid twice.

A payment is for one thing: a conversation, a part of one, the time spent waiting, or a bonus. People are paid
for what they did themselves: whoever talked well with a bad partner is paid in full.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any, Literal

from palaver.collection.quality import Quality, SideResult, conversation_grade, worst
from palaver.collection.records import Conversation, Participant, Person, Verdict
from palaver.collection.standards import Bonus, Standards
from palaver.errors import DataError
from palaver.files import write_atomically
from palaver.readers.rows import RowFile
from palaver.tabular import Tabular, columns_of

Kind = Literal["conversation", "part", "waiting", "bonus", "nothing"]
Status = Literal["pay", "held", "refused", "paid", "nothing"]
"""pay: is due. held: a person has to look first. refused: what was done is not accepted. paid: is on the list
of earlier payments. nothing: there is nothing to pay for, or not yet."""
CENT = Decimal("0.01")
Key = tuple[str, str, str]
Seat = tuple[Conversation, Participant]


@dataclass(frozen=True)
class Payment:
    """One line of the account."""

    participant: str
    external: str
    """The platform's name for them."""
    conversation: str
    kind: Kind
    amount: Decimal
    status: Status
    reason: str

    @property
    def key(self) -> Key:
        """What it is for. A whole conversation and a part of it are the same work."""
        kind = "conversation" if self.kind == "part" else self.kind
        return self.participant, self.conversation, kind


@dataclass(frozen=True)
class Account:
    """All of one participant."""

    participant: str
    external: str
    due: Decimal
    held: Decimal
    refused: Decimal
    paid: Decimal
    reasons: str


@dataclass(frozen=True, repr=False)
class Payout(Tabular):
    """The payments, and what they come to for each participant."""

    payments: tuple[Payment, ...]
    currency: str
    notes: tuple[str, ...] = ()

    @property
    def accounts(self) -> tuple[Account, ...]:
        by_person: dict[str, list[Payment]] = {}
        for payment in self.payments:
            by_person.setdefault(payment.participant, []).append(payment)
        return tuple(_account(payments) for payments in by_person.values())

    @property
    def due(self) -> Decimal:
        return total(self.payments, "pay")

    def _headline(self) -> str:
        return f"{self.due} {self.currency} due to {len(self.accounts):,} participants"

    def _tables(self) -> Mapping[str, Any]:
        return {
            "accounts": columns_of(Account, self.accounts),
            "payments": columns_of(Payment, self.payments),
        }


def total(payments: Sequence[Payment], status: Status) -> Decimal:
    return sum((payment.amount for payment in payments if payment.status == status), Decimal(0))


def _account(payments: Sequence[Payment]) -> Account:
    first = payments[0]
    told = Counter(_told(payment) for payment in payments)
    return Account(
        participant=first.participant,
        external=first.external,
        due=total(payments, "pay"),
        held=total(payments, "held"),
        refused=total(payments, "refused"),
        paid=total(payments, "paid"),
        reasons="; ".join(reason if n == 1 else f"{reason} ({n} times)" for reason, n in told.items()),
    )


def _told(payment: Payment) -> str:
    """The reason; with the conversation where something is not simply paid."""
    if payment.status in ("pay", "paid"):
        return "a bonus" if payment.kind == "bonus" else payment.reason
    return f"{payment.conversation}: {payment.reason}" if payment.conversation else payment.reason


def people_from(conversations: Sequence[Conversation], n_turns: int) -> list[Person]:
    """Everybody who talked, as far as the conversations say. `n_turns` are one person's in a whole one."""
    people: dict[str, Person] = {}
    for conversation in conversations:
        for participant in conversation.people:
            before = people.get(participant.id)
            held = (*(before.conversations if before is not None else ()), conversation.id)
            people[participant.id] = Person(
                id=participant.id,
                entered_at=0,
                exit=participant.exit,
                pay="full" if conversation.ending == "complete" else "partial",
                share=min(1.0, participant.n_turns / n_turns),
                conversations=tuple(dict.fromkeys(held)),
            )
    return list(people.values())


@dataclass(frozen=True)
class _Work:
    """What one person did in one conversation, or in the conversations of one session with several bots."""

    id: str
    person: Person
    conversations: tuple[Conversation, ...]
    participants: tuple[Participant, ...]
    sides: tuple[SideResult, ...]
    is_all: bool
    """Whether the person did nothing else: then the record of the person says what it is worth."""

    @property
    def verdict(self) -> Verdict:
        return worst([side.verdict for side in self.sides] or ["accepted"])

    @property
    def n_turns(self) -> int:
        return sum(participant.n_turns for participant in self.participants)

    def value(self, n_turns: int) -> tuple[Kind, Decimal, str]:
        """The kind, the share of a whole conversation, of which `n_turns` are one's own, and the reason."""
        exit = self.participants[-1].exit
        is_whole = any(participant.exit in ("finished", "bot failed") for participant in self.participants)
        told, share = "", self.n_turns / n_turns
        if self.is_all:
            told = self.person.reason
            share = self.person.share or share
            if self.person.pay in ("full", "partial"):
                is_whole = self.person.pay == "full"
        if is_whole:
            return "conversation", Decimal(1), told or "a whole conversation"
        if not self.n_turns:
            return "nothing", Decimal(0), told or f"{exit} before anything was said"
        return "part", Decimal(str(min(1.0, share))), told or f"{exit} after {self.n_turns} messages"


def pay_out(
    conversations: Sequence[Conversation],
    quality: Quality,
    standards: Standards,
    people: Sequence[Person] = (),
    paid: Collection[Key] = (),
) -> Payout:
    """The payments for conversations that were judged. `paid` are those that were paid before."""
    n_turns = max(1, int(standards.quality["turns"].review) // 2)
    known = {person.id: person for person in people}
    guests = {person.id: person for person in people_from(conversations, n_turns)} | known
    seats: dict[str, list[Seat]] = {}
    for conversation in conversations:
        for participant in conversation.people:
            seats.setdefault(participant.id, []).append((conversation, participant))
    sides: dict[str, list[SideResult]] = {}
    for side in quality.sides:
        sides.setdefault(side.participant, []).append(side)
    payments: list[Payment] = []
    for person in guests.values():
        works = _works(person, seats.get(person.id, []), sides.get(person.id, []))
        own = [payment for work in works for payment in _pay_for(work, standards, n_turns)]
        if not own or (person.pay == "waiting" and not any(payment.amount for payment in own)):
            own.append(_without_conversation(person, standards))
        payments += own
    lines = [replace(p, status="paid") if p.amount and p.key in paid else p for p in payments]
    notes = []
    n_unknown = sum(not side.is_known for side in quality.sides)
    if n_unknown:
        notes.append(f"sides of which nobody knows who they were, and so not paid: {n_unknown:,}")
    return Payout(tuple(lines), standards.pay.currency, tuple(notes))


def _works(person: Person, seats: Sequence[Seat], sides: Sequence[SideResult]) -> list[_Work]:
    sessions: dict[str, list[Seat]] = {}
    for conversation, participant in seats:
        sessions.setdefault(conversation.session or conversation.id, []).append((conversation, participant))
    return [
        _Work(
            id=id,
            person=person,
            conversations=tuple(conversation for conversation, _ in taken),
            participants=tuple(participant for _, participant in taken),
            sides=tuple(side for side in sides if side.conversation in {c.id for c, _ in taken}),
            is_all=len(sessions) == 1,
        )
        for id, taken in sessions.items()
    ]


def _pay_for(work: _Work, standards: Standards, n_turns: int) -> list[Payment]:
    person = work.person
    if any(conversation.ending == "open" for conversation in work.conversations):
        return [_line(person, work.id, "nothing", Decimal(0), "nothing", "the conversation goes on")]
    kind, share, reason = work.value(n_turns)
    if kind == "nothing":
        return [_line(person, work.id, kind, Decimal(0), "nothing", reason)]
    status: Status = "pay"
    if work.verdict != "accepted":
        status = "held" if work.verdict == "review" else "refused"
        faults = ", ".join(fault for side in work.sides for fault in side.reasons)
        reason = f"{'to be looked at' if status == 'held' else 'refused'}: {faults or 'by hand'}"
    amount = (standards.pay.conversation * share).quantize(CENT, ROUND_HALF_UP)
    lines = [_line(person, work.id, kind, amount, status, reason)]
    if status == "pay" and kind == "conversation":
        by_id = {conversation.id: conversation for conversation in work.conversations}
        reasons = [_bonus_reason(side, by_id[side.conversation], standards.bonus) for side in work.sides]
        if any(reasons):
            amount = standards.bonus.amount.quantize(CENT, ROUND_HALF_UP)
            told = next(reason for reason in reasons if reason)
            lines.append(_line(person, work.id, "bonus", amount, "pay", told))
    return lines


def _bonus_reason(side: SideResult, conversation: Conversation, bonus: Bonus) -> str:
    """Why there is a bonus; empty if there is none."""
    grade = conversation_grade(conversation, side.seat)
    if not bonus.amount or grade is None or side.partner_grade is None:
        return ""
    if grade < bonus.conversation or side.partner_grade < bonus.messages:
        return ""
    return f"the partner rated the messages {side.partner_grade:.1f} and the conversation {grade}"


def _without_conversation(person: Person, standards: Standards) -> Payment:
    if person.pay == "waiting":
        amount = standards.pay.waiting.quantize(CENT, ROUND_HALF_UP)
        return _line(person, "", "waiting", amount, "pay", person.reason or "waited for a partner")
    reason = "is still here" if person.pay == "open" else person.reason or f"{person.exit}, without a message"
    return _line(person, "", "nothing", Decimal(0), "nothing", reason)


def _line(
    person: Person, conversation: str, kind: Kind, amount: Decimal, status: Status, reason: str
) -> Payment:
    return Payment(person.id, person.external or "", conversation, kind, amount, status, reason)


def write_payments(rows: Sequence[Payment] | Sequence[Account], path: Path, kind: type[Any]) -> None:
    """Payments or accounts as CSV."""
    with write_atomically(path) as file:
        writer = csv.writer(file)
        names = [field.name for field in fields(kind)]
        writer.writerow(names)
        writer.writerows([getattr(row, name) for name in names] for row in rows)


def read_paid(path: Path) -> set[Key]:
    """The payments of an earlier `payments.csv` that were made: status pay or paid."""
    keys: set[Key] = set()
    for _, row in RowFile(path).rows():
        if not isinstance(row, dict) or not {"participant", "conversation", "kind", "status"} <= row.keys():
            raise DataError(
                f"{path} is not a list of payments", "expected the payments.csv of `palaver collect check`"
            )
        if row["status"] in ("pay", "paid"):
            kind = "conversation" if row["kind"] == "part" else str(row["kind"])
            keys.add((str(row["participant"]), str(row["conversation"] or ""), kind))
    return keys
