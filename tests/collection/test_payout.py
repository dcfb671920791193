"""Everybody is paid or told why not, and nothing is paid twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.collection.payout import Account, Payment, pay_out, read_paid, write_payments
from palaver.collection.quality import check_quality, decide
from palaver.collection.records import Conversation, Decision, Ending, Exit, Participant, Pay, Person
from palaver.collection.standards import Bonus, Standards
from palaver.collection.standards import Pay as Rates
from palaver.errors import DataError
from palaver.schema import Dialogue, Turn

Talk = Callable[..., Dialogue]
RATES = Standards(pay=Rates(currency="USD", conversation=Decimal("2.50"), waiting=Decimal("0.25")))


def held(
    id: str, people: dict[str, Any], ending: Any = "complete", n_turns: int = 20, **labels: Any
) -> Conversation:
    """A conversation of plain messages; `people`: id -> (seat, turns, exit)."""
    turns = tuple(
        Turn(
            speaker=f"agent_{1 + n % 2}",
            text=f"{id} says {n} things about {n * 7} very old owls.",
            labels={"turn_rating": "Excellent"},
        )
        for n in range(n_turns)
    )
    participants = tuple(
        Participant(id=name, seat=seat, n_turns=n, exit=exit) for name, (seat, n, exit) in people.items()
    )
    dialogue = Dialogue(id=id, turns=turns, speakers=("agent_1", "agent_2"), labels=labels)
    return Conversation(id=id, dialogue=dialogue, participants=participants, ending=ending, began_at=0)


NAMES = st.sampled_from(["ann", "bob", "cid", "dot", "eve"])
EXITS = st.sampled_from(get_args(Exit))


@st.composite
def collections(draw: st.DrawFn) -> tuple[list[Conversation], list[Person]]:
    conversations = []
    for number in range(draw(st.integers(0, 5))):
        names = draw(st.lists(NAMES, max_size=3))  # the same person may have two seats
        participants = tuple(
            Participant(
                id=name,
                seat=draw(st.sampled_from(["agent_1", "agent_2"])),
                n_turns=draw(st.integers(0, 12)),
                first_turn=draw(st.integers(0, 4)),
                exit=draw(EXITS),
                is_bot=draw(st.integers(0, 4)) == 0,
            )
            for name in names
        )
        ending = draw(st.sampled_from(get_args(Ending)))
        conversations.append(
            held(f"c{number}", {}, ending, n_turns=draw(st.integers(0, 24))).model_copy(
                update={"participants": participants, "session": draw(st.sampled_from(["", "", "s1"]))}
            )
        )
    people = [
        Person(
            id=name,
            entered_at=0,
            exit=draw(EXITS),
            pay=draw(st.sampled_from(get_args(Pay))),
            share=draw(st.floats(0, 1)),
        )
        for name in draw(st.lists(st.sampled_from(["ann", "bob", "cid", "dot", "eve", "fay"]), unique=True))
    ]
    return conversations, people


@settings(max_examples=60, deadline=None)
@given(collections())
def test_everybody_is_paid_or_told_why_not(tmp_path_factory: Any, drawn: Any) -> None:
    conversations, people = drawn
    quality = check_quality(conversations, RATES, people)
    payout = pay_out(conversations, quality, RATES, people)
    came = {person.id for person in people} | {p.id for c in conversations for p in c.people}
    accounts = {account.participant: account for account in payout.accounts}
    assert accounts.keys() == came
    assert len(payout.accounts) == len(accounts)
    for account in accounts.values():
        assert account.reasons
        assert account.due >= 0
    keys = Counter(payment.key for payment in payout.payments)
    assert all(n == 1 for n in keys.values())  # nothing twice
    assert payout.due == sum(account.due for account in accounts.values())
    most = {p.conversation: p.amount for p in payout.payments if p.kind in ("conversation", "part")}
    assert all(amount <= RATES.pay.conversation for amount in most.values())
    path = tmp_path_factory.getbasetemp() / "payments.csv"
    write_payments(payout.payments, path, Payment)
    again = pay_out(conversations, quality, RATES, people, read_paid(path))
    assert again.due == 0
    assert {a.participant: a.paid for a in again.accounts} == {a.participant: a.due for a in payout.accounts}
    assert [p.reason for p in again.payments] == [p.reason for p in payout.payments]


def test_each_for_their_own_work(talk: Talk) -> None:
    people = {"ann": ("agent_1", 10, "finished"), "bob": ("agent_2", 10, "finished")}
    broken = {
        "cid": ("agent_1", 4, "partner left"),
        "dot": ("agent_2", 3, "left"),
        "eve": ("agent_2", 0, "left"),
    }
    conversations = [held("1", people), held("2", broken, "incomplete", n_turns=7)]
    visitors = [
        Person(id="cid", entered_at=0, pay="partial", share=0.4, reason="partner left after 4 messages"),
        Person(
            id="fay", entered_at=0, pay="waiting", reason="nobody came within the stated time", external="PF"
        ),
        Person(id="gus", entered_at=0, pay="none", exit="left", reason="left before anything was said"),
        Person(id="hal", entered_at=0, pay="open"),
    ]
    quality = check_quality(conversations, RATES, visitors)
    quality = decide(quality, {("1", "bob"): Decision("rejected")})
    accounts = {a.participant: a for a in pay_out(conversations, quality, RATES, visitors).accounts}
    assert {name: str(account.due) for name, account in accounts.items()} == {
        "ann": "2.50",
        "bob": "0",
        "cid": "1.00",
        "dot": "0.75",
        "eve": "0",
        "fay": "0.25",
        "gus": "0",
        "hal": "0",
    }
    assert accounts["bob"].refused == Decimal("2.50")
    assert accounts["bob"].reasons == "1: refused: by hand"
    assert accounts["cid"].reasons == "partner left after 4 messages"
    assert accounts["dot"].reasons == "left after 3 messages"
    assert accounts["eve"].reasons.startswith("2: left before anything was said")
    assert (accounts["fay"].external, accounts["hal"].reasons) == ("PF", "is still here")


def test_what_is_in_review_is_held() -> None:
    people = {"ann": ("agent_1", 10, "finished"), "bob": ("agent_2", 10, "finished")}
    conversations = [held("1", people)]
    quality = decide(check_quality(conversations), {("1", "ann"): Decision("review")})
    ann, bob = pay_out(conversations, quality, Standards()).accounts
    assert (ann.due, ann.held, bob.due) == (0, 1, 1)


def test_bonus() -> None:
    people = {"ann": ("agent_1", 10, "finished"), "bob": ("agent_2", 10, "finished")}
    standards = RATES.model_copy(update={"bonus": Bonus(amount=Decimal(1))})
    conversations = [held("1", people, rating_agent_1="Good", rating_agent_2="Excellent")]
    payout = pay_out(conversations, check_quality(conversations, standards), standards)
    [bonus] = [payment for payment in payout.payments if payment.kind == "bonus"]
    assert (bonus.participant, bonus.amount) == ("ann", 1)  # whom the partner found excellent
    assert bonus.reason == "the partner rated the messages 5.0 and the conversation 5"
    assert payout.due == Decimal("6.00")


def test_a_session_with_two_bots_is_one_work() -> None:
    people = {"ann": ("agent_1", 10, "finished"), "bot": ("agent_2", 10, "here")}
    pair = [held(f"1-{bot}", people).model_copy(update={"session": "1"}) for bot in "ab"]
    bots = [p.model_copy(update={"is_bot": p.id == "bot"}) for p in pair[0].participants]
    pair = [conversation.model_copy(update={"participants": tuple(bots)}) for conversation in pair]
    [payment] = pay_out(pair, check_quality(pair, RATES), RATES).payments
    assert (payment.participant, payment.conversation, str(payment.amount)) == ("ann", "1", "2.50")
    judged = decide(check_quality(pair, RATES), {("1-b", "ann"): Decision("rejected")})
    [refused] = pay_out(pair, judged, RATES).payments
    assert refused.status == "refused"


def test_unknown_people_are_said() -> None:
    payout = pay_out([held("1", {})], check_quality([held("1", {})]), RATES)
    assert payout.payments == ()
    assert payout.notes == ("sides of which nobody knows who they were, and so not paid: 2",)


def test_another_file_is_no_list_of_payments(tmp_path: Path) -> None:
    write_payments([], tmp_path / "payout.csv", Account)
    assert read_paid(tmp_path / "payout.csv") == set()
    (tmp_path / "x.csv").write_text("participant,amount\nann,3\n")
    with pytest.raises(DataError, match="not a list of payments"):
        read_paid(tmp_path / "x.csv")
