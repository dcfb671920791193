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

from palaver.collection.quality import Quality, SideResult, conversation_grade
from palaver.collection.records import Conversation, Participant, Person
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
    """Everybody who talked, where only the conversations are known. `n_turns` make a conversation."""
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
                share=min(1.0, participant.n_turns / max(1, n_turns // 2)),
                conversations=tuple(dict.fromkeys(held)),
            )
    return list(people.values())


def pay_out(
    conversations: Sequence[Conversation],
    quality: Quality,
    standards: Standards,
    people: Sequence[Person] = (),
    paid: Collection[Key] = (),
) -> Payout:
    """The payments for conversations that were judged. `paid` are those that were paid before."""
    turns = standards.quality["turns"].review
    guests = list(people) or people_from(conversations, int(turns))
    sides = {(side.conversation, side.participant): side for side in quality.sides if side.is_known}
    seats: dict[str, list[tuple[Conversation, Participant]]] = {}
    for conversation in conversations:
        for participant in conversation.people:
            seats.setdefault(participant.id, []).append((conversation, participant))
    ids = {guest.id for guest in guests}
    strangers = [person for person in people_from(conversations, int(turns)) if person.id not in ids]
    payments: dict[Key, Payment] = {}
    for person in dict.fromkeys([*guests, *strangers]):
        held = seats.get(person.id, [])
        own = [
            payment
            for conversation, participant in held
            for payment in _for_conversation(
                person, conversation, participant, sides, standards, len(held) == 1, turns
            )
        ]
        if not any(payment.amount for payment in own):
            own.append(_without_conversation(person, standards, bool(own)))
        for payment in own:
            known = payments.get(payment.key)
            if known is None or known.amount < payment.amount:  # who came back has two seats in one
                payments[payment.key] = payment
    lines = [replace(p, status="paid") if p.amount and p.key in paid else p for p in payments.values()]
    notes = []
    n_unknown = sum(not side.is_known for side in quality.sides)
    if n_unknown:
        notes.append(f"sides of which nobody knows who they were, and so not paid: {n_unknown:,}")
    return Payout(tuple(lines), standards.pay.currency, tuple(notes))


def _for_conversation(
    person: Person,
    conversation: Conversation,
    participant: Participant,
    sides: Mapping[tuple[str, str], SideResult],
    standards: Standards,
    is_only_one: bool,
    turns: float,
) -> list[Payment]:
    if conversation.ending == "open":
        return [_line(person, conversation.id, "nothing", Decimal(0), "nothing", "the conversation goes on")]
    kind, share, reason = _work(person, conversation, participant, is_only_one, turns)
    if kind == "nothing":
        return [_line(person, conversation.id, kind, Decimal(0), "nothing", reason)]
    side = sides.get((conversation.id, person.id))
    status: Status = "pay"
    if side is not None and side.verdict != "accepted":
        status = "held" if side.verdict == "review" else "refused"
        reason = (
            f"{'to be looked at' if status == 'held' else 'refused'}: {', '.join(side.reasons) or 'by hand'}"
        )
    amount = (standards.pay.conversation * share).quantize(CENT, ROUND_HALF_UP)
    lines = [_line(person, conversation.id, kind, amount, status, reason)]
    if status == "pay" and kind == "conversation" and side is not None:
        bonus_reason = _bonus_reason(side, conversation, standards.bonus)
        if bonus_reason:
            amount = standards.bonus.amount.quantize(CENT, ROUND_HALF_UP)
            lines.append(_line(person, conversation.id, "bonus", amount, "pay", bonus_reason))
    return lines


def _work(
    person: Person, conversation: Conversation, participant: Participant, is_only_one: bool, turns: float
) -> tuple[Kind, Decimal, str]:
    """What somebody did in a conversation, as a share of a whole one."""
    is_whole = participant.exit in ("finished", "bot failed")
    if is_only_one and person.pay in ("full", "partial"):
        is_whole = person.pay == "full"
    told = person.reason if is_only_one else ""
    if is_whole:
        return "conversation", Decimal(1), told or "a whole conversation"
    if not participant.n_turns:
        return "nothing", Decimal(0), told or f"{participant.exit} before anything was said"
    share = person.share if is_only_one and person.share else participant.n_turns / max(1, turns // 2)
    return (
        "part",
        Decimal(str(min(1.0, share))),
        told or f"{participant.exit} after {participant.n_turns} messages",
    )


def _bonus_reason(side: SideResult, conversation: Conversation, bonus: Bonus) -> str:
    """Why there is a bonus; empty if there is none."""
    grade = conversation_grade(conversation, side.seat)
    if not bonus.amount or grade is None or side.partner_grade is None:
        return ""
    if grade < bonus.conversation or side.partner_grade < bonus.messages:
        return ""
    return f"the partner rated the messages {side.partner_grade:.1f} and the conversation {grade}"


def _without_conversation(person: Person, standards: Standards, has_talked: bool) -> Payment:
    if person.pay == "waiting":
        amount = standards.pay.waiting.quantize(CENT, ROUND_HALF_UP)
        return _line(person, "", "waiting", amount, "pay", person.reason or "waited for a partner")
    reason = person.reason or (
        "nothing that can be paid" if has_talked else f"{person.exit}, without a message"
    )
    if person.pay == "open":
        reason = "is still here"
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
