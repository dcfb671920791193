"""Waiting, pairing, talking, leaving: as a machine that hypothesis plays with, and case by case."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from palaver.collection.host import Host, NotNow
from palaver.collection.lobby import Lobby, Room
from palaver.collection.rules import Rules
from palaver.collection.simulation import Crowd, simulate
from palaver.errors import UserError
from palaver.schema import Question

SENTIMENT = Question.model_validate(
    {"criterion": "sentiment", "text": "?", "scale": {"kind": "choice", "options": ["Happy", "Sad"]}}
)
GRADE = Question.model_validate({"criterion": "turn_rating", "text": "?", "scale": {"kind": "likert"}})
WHOLE = Question.model_validate({"criterion": "rating", "text": "?", "scale": {"kind": "likert"}})
PLAIN = Rules(fewest_turns=4)
ANNOTATED = Rules(fewest_turns=2, about_own=(SENTIMENT,), about_partner=(GRADE,), about_whole=(WHOLE,))


def paired(rules: Rules = PLAIN, people: tuple[str, ...] = ("ann", "bob")) -> tuple[Host, Room]:
    host = Host(rules)
    for person in people:
        host.join(person, 0.0)
    for person in people:
        host.say_ready(person, 1.0)
    room = host.lobby.room_of(people[0])
    assert room is not None
    return host, room


def talk(host: Host, turns: int, people: tuple[str, str] = ("ann", "bob"), start: float = 2.0) -> None:
    for number in range(turns):
        host.say(people[number % 2], f"m{start}-{number}", f"message {number}", start + number)


def stay(host: Host, people: tuple[str, ...], until: float, since: float = 0.0) -> None:
    """Let time pass for people who are there."""
    at = since
    while at < until:
        at += 5.0
        for person in people:
            host.see(person, at)
        host.tick(at)


# --- case by case -------------------------------------------------------------------------------------------


def test_two_people_talk_submit_and_are_paid() -> None:
    host, room = paired()
    assert (room.phase, room.people) == ("talking", ["ann", "bob"])
    talk(host, 4)
    assert host.why_not_submit("ann") is None
    host.submit("ann", 10.0)
    assert room.ending == "complete"
    assert {p: (v.exit, v.pay) for p, v in host.lobby.visitors.items()} == {
        "ann": ("finished", "full"),
        "bob": ("finished", "full"),
    }


def test_turns_alternate_and_a_message_sent_twice_is_one() -> None:
    host, room = paired()
    assert host.say("ann", "a", "hi", 2.0) == 0
    assert host.say("ann", "a", "hi", 3.0) == 0
    with pytest.raises(NotNow, match="partner's turn"):
        host.say("ann", "b", "hello?", 3.0)
    with pytest.raises(NotNow, match="another text"):
        host.say("ann", "a", "ho", 3.0)
    assert [turn.text for turn in room.turns] == ["hi"]
    free = Host(Rules(alternating=False))
    for person in ("ann", "bob"):
        free.join(person, 0.0)
    for person in ("ann", "bob"):
        free.say_ready(person, 1.0)
    assert [free.say("ann", id, "hi", 2.0) for id in "abc"] == [0, 1, 2]


@pytest.mark.parametrize(("text", "said"), [("  ", "nothing"), ("x" * 2001, "at most 2,000 characters")])
def test_messages_that_are_none(text: str, said: str) -> None:
    host, room = paired()
    with pytest.raises(NotNow, match=said):
        host.say("ann", "a", text, 2.0)
    assert not room.turns


def test_questions_about_the_last_messages_come_first() -> None:
    host, _ = paired(ANNOTATED)
    host.say("ann", "a", "hi", 2.0)
    with pytest.raises(NotNow, match="answer the questions"):
        host.say("bob", "b", "hello", 3.0)
    host.answer("bob", {"turn_rating": "4"}, 3.0, turn=0)
    host.say("bob", "b", "hello", 4.0)
    host.answer("ann", {"turn_rating": "5"}, 5.0, turn=1)
    assert host.turns_to_answer("ann") == [0]
    host.answer("ann", {"sentiment": "Happy"}, 5.0, turn=0)
    with pytest.raises(UserError, match="turn_rating is not asked here"):
        host.answer("ann", {"turn_rating": "5"}, 5.0, turn=0)
    with pytest.raises(UserError, match="sentiment"):
        host.answer("ann", {"sentiment": "Blue"}, 5.0, turn=0)
    assert host.why_not_submit("bob") == "answer the questions about the last messages first"
    host.submit("ann", 6.0)
    host.answer("ann", {"rating": "3"}, 7.0)
    assert host.lobby.visitors["ann"].exit == "finished"
    assert host.lobby.visitors["bob"].exit == "here"
    host.answer("bob", {"rating": "3"}, 8.0)
    assert host.lobby.n_complete == 1


def test_it_cannot_be_submitted_too_early() -> None:
    host, _ = paired()
    talk(host, 3)
    with pytest.raises(NotNow, match="3 of at least 4"):
        host.submit("ann", 9.0)


def test_a_short_break_is_forgiven() -> None:
    host, room = paired()
    talk(host, 2)
    host.lose("bob", 10.0)
    stay(host, ("ann",), 60.0, 10.0)
    host.see("bob", 65.0)
    host.tick(65.0)
    assert room.people == ["ann", "bob"]
    assert [turn.text for turn in room.turns] == ["message 0", "message 1"]


def test_whoever_is_left_alone_is_told_and_chooses() -> None:
    host, room = paired(Rules(fewest_turns=4, substitute="helper"))
    talk(host, 3)
    host.lose("bob", 10.0)
    stay(host, ("ann",), 80.0, 10.0)
    assert host.lobby.visitors["bob"].exit == "lost"
    assert host.lobby.visitors["bob"].pay == "partial"
    assert host.why_silent("ann") == "your partner has left"
    assert host.options("ann") == ["bot", "stop"]
    host.choose("ann", "bot", 81.0)
    assert [(r.number, s.bot) for r, s in host.bots_to_speak()] == [(1, "helper")]
    assert host.reply(1, "agent_2", 3, "I am a bot", 82.0)
    assert not host.reply(1, "agent_2", 3, "I am a bot", 82.0)
    host.submit("ann", 83.0)
    assert room.ending == "complete"
    assert [(o.by, o.is_bot, o.first_turn) for o in room.occupancies][-1] == ("helper", True, 3)


def test_somebody_who_waits_takes_the_place_of_somebody_who_left() -> None:
    host, room = paired()
    talk(host, 3)
    host.leave("bob", 6.0)
    host.join("cleo", 7.0)
    assert host.lobby.room_of("cleo") is room
    host.say_ready("cleo", 8.0)
    host.say("cleo", "c", "may I join?", 9.0)
    assert [(o.by, o.first_turn) for o in room.occupancies] == [("ann", 0), ("bob", 0), ("cleo", 3)]
    host.submit("ann", 10.0)
    assert host.lobby.visitors["bob"].pay == "partial"


def test_who_is_alone_may_stop_and_is_paid_for_what_was_done() -> None:
    host, room = paired()
    talk(host, 3)
    host.leave("bob", 6.0)
    host.choose("ann", "stop", 7.0)
    ann = host.lobby.visitors["ann"]
    assert (ann.exit, ann.pay, ann.share) == ("partner left", "partial", 1.0)
    assert room.ending == "incomplete"


def test_the_stated_wait_is_paid() -> None:
    host = Host(Rules(wait_seconds=100))
    host.join("ann", 0.0)
    stay(host, ("ann",), 101.0)
    ann = host.lobby.visitors["ann"]
    assert (ann.exit, ann.pay) == ("waited", "waiting")
    assert ann.seconds_waited > 100


def test_who_does_not_answer_an_invitation_is_not_paired() -> None:
    host = Host(PLAIN)
    host.join("ghost", 0.0)
    host.join("ann", 1.0)
    host.say_ready("ann", 2.0)
    stay(host, ("ann",), 30.0, 2.0)
    assert host.lobby.visitors["ann"].state == "waiting"
    assert all(room.began_at is None for room in host.lobby.rooms.values())
    host.join("bob", 31.0)
    host.say_ready("ann", 31.0)
    host.say_ready("bob", 31.0)
    assert [r.people for r in host.lobby.rooms.values() if r.began_at] == [["ann", "bob"]]


@pytest.mark.parametrize("same", [True, False])
def test_people_who_read_the_same_language_meet(same: bool) -> None:
    host = Host(Rules(same_language=same))
    for person, language in (("ann", "de"), ("bob", "fr"), ("cat", "de"), ("dan", "")):
        host.join(person, 0.0, language=language)
    met = [sorted(room.people) for room in host.lobby.rooms.values()]
    assert met == ([["ann", "cat"], ["bob", "dan"]] if same else [["ann", "bob"], ["cat", "dan"]])


def test_nobody_meets_the_same_person_twice() -> None:
    host, _ = paired(Rules(fewest_turns=2, most_conversations=5))
    talk(host, 2)
    host.submit("ann", 5.0)
    for person in ("ann", "bob"):
        assert host.options(person) == ["again", "stop"]
        host.choose(person, "again", 6.0)
    assert list(host.lobby.waiting) == ["ann", "bob"]
    host.join("cleo", 7.0)
    assert len(host.lobby.rooms) == 2
    host.leave("bob", 8.0)
    assert host.lobby.visitors["bob"].pay == "full"


def test_plans_that_came_to_nothing_are_used_again() -> None:
    host = Host(Rules(fewest_turns=2, n_plans=2))
    for number in range(3):
        people = (f"a{number}", f"b{number}")
        for person in people:
            host.join(person, 10.0 * number)
        for person in people:
            host.say_ready(person, 10.0 * number)
        talk(host, 2, people, 10.0 * number)
        if number == 0:
            host.leave("a0", 5.0)
            host.choose("b0", "stop", 5.0)
        else:
            host.submit(people[0], 10.0 * number + 5)
    assert [room.plan for room in host.lobby.rooms.values()] == [0, 0, 1]
    host.join("late", 100.0)
    late = host.lobby.visitors["late"]
    assert (late.exit, late.pay) == ("unneeded", "none")
    assert late.reason


def test_bots_side_by_side_hear_the_same_and_answer_once() -> None:
    host = Host(Rules(lineups=((("x", "y"),),), fewest_turns=6, about_whole=(WHOLE,)))
    host.join("ann", 0.0)
    host.say_ready("ann", 0.0)
    for number in range(2):
        host.say("ann", f"m{number}", "hello", 1.0)
        with pytest.raises(NotNow, match="partner's turn"):
            host.say("ann", f"n{number}", "hello?", 1.0)
        assert [seat.bot for _, seat in host.bots_to_speak()] == ["x", "y"]
        for bot in "xy":
            assert host.reply(1, bot, 3 * number + 1, f"{bot} says", 2.0)
    host.submit("ann", 3.0)
    host.answer("ann", {"rating": "3"}, 4.0, bot="x")
    assert host.lobby.visitors["ann"].exit == "here"
    host.answer("ann", {"rating": "5"}, 4.0, bot="y")
    assert host.lobby.visitors["ann"].exit == "finished"


VOTE = {"criterion": "reply", "text": "?", "scale": {"kind": "pairwise", "both_bad": "Both bad"}}


@pytest.mark.parametrize("required", [True, False])
def test_two_replies_are_compared(required: bool) -> None:
    vote = Question.model_validate({**VOTE, "required": required})
    host = Host(Rules(lineups=((("x", "y"),),), fewest_turns=2, about_replies=(vote,)))
    host.join("ann", 0.0)
    host.say_ready("ann", 0.0)
    host.say("ann", "m0", "hello", 1.0)
    host.reply(1, "y", 1, "y says", 2.0)
    assert host.turn_to_vote("ann") is None, "one of them has not replied"
    assert host.why_not_submit("ann") == "it is your partner's turn"
    with pytest.raises(UserError, match="not asked here"):
        host.answer("ann", {"reply": "0"}, 2.0, turn=0)
    host.reply(1, "x", 1, "x says", 3.0)
    assert host.turn_to_vote("ann") == 0
    assert (host.why_silent("ann") is not None) is required
    assert (host.why_not_submit("ann") is not None) is required
    with pytest.raises(UserError, match="not asked here"):
        host.answer("ann", {"reply": "0"}, 3.0, turn=1)
    host.answer("ann", {"reply": "1"}, 4.0, turn=0)
    room = host.lobby.rooms[1]
    assert room.turns[0].answers == {"ann": {"reply": "loss"}}
    host.say("ann", "m1", "again", 5.0)
    with pytest.raises(UserError, match="not asked here"):
        host.answer("ann", {"reply": "0"}, 6.0, turn=0)
    for bot in "xy":
        host.reply(1, bot, 4, f"{bot} says", 7.0)
    host.answer("ann", {"reply": "both bad"}, 8.0, turn=3)
    assert room.turns[3].answers == {"ann": {"reply": "both bad"}}


def test_bots_in_turn() -> None:
    host = Host(Rules(lineups=((("x",), ("y",)),), fewest_turns=2))
    host.join("ann", 0.0)
    host.say_ready("ann", 0.0)
    for number, bot in enumerate("xy"):
        host.say("ann", bot, f"hello {bot}", 1.0)
        assert [seat.bot for _, seat in host.bots_to_speak()] == [bot]
        host.reply(1, bot, 2 * number + 1, "hello", 2.0)
        host.submit("ann", 3.0)
    assert host.lobby.rooms[1].ending == "complete"
    assert [turn.leg for turn in host.lobby.rooms[1].turns] == [0, 0, 1, 1]


def test_lineups_are_balanced() -> None:
    lineups = ((("x",), ("y",)), (("y",), ("x",)))
    host = Host(Rules(lineups=lineups))
    for number in range(20):
        host.join(f"p{number}", 0.0)
    assert host.lobby.lineups == {0: 10, 1: 10}
    firsts = [room.legs[0][0] for room in host.lobby.rooms.values()]
    assert firsts not in (sorted(firsts), ["x", "y"] * 10)  # which comes first is drawn


@pytest.mark.parametrize("silent", [True, False])
def test_a_bot_that_fails_ends_it_without_blame(silent: bool) -> None:
    host = Host(Rules(lineups=((("x",),),), bot_seconds=30))
    host.join("ann", 0.0)
    host.say_ready("ann", 0.0)
    host.say("ann", "a", "hello", 1.0)
    if silent:
        stay(host, ("ann",), 40.0)
    else:
        host.fail(1, "x", "no connection", 2.0)
    ann = host.lobby.visitors["ann"]
    assert (ann.exit, ann.pay) == ("bot failed", "full")
    assert host.lobby.rooms[1].ending == "failed"


def test_somebody_who_says_nothing_for_long_is_shown_out() -> None:
    host, _ = paired(Rules(idle_seconds=50))
    host.say("ann", "a", "hi", 2.0)
    stay(host, ("ann", "bob"), 60.0, 2.0)
    assert host.lobby.visitors["bob"].exit == "timed out"
    assert host.lobby.visitors["ann"].state == "seated"


# --- the machine --------------------------------------------------------------------------------------------

PEOPLE = [f"p{n}" for n in range(6)]
person = st.sampled_from(PEOPLE)


class Play(RuleBasedStateMachine):
    """Anybody does anything at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.rules = Rules(
            fewest_turns=4,
            substitute="helper",
            most_conversations=2,
            n_plans=3,
            about_partner=(GRADE,),
            about_whole=(WHOLE,),
            wait_seconds=120,
            idle_seconds=200,
        )
        self.host = Host(self.rules)
        self.now = 0.0
        self.log: list[object] = []
        self.acknowledged: list[tuple[int, str]] = []
        self.n_sent = 0

    def do(self, action: str, *args: object, **words: object) -> object:
        try:
            return getattr(self.host, action)(*args, now=self.now, **words)
        except UserError:
            return None

    @rule(person=person)
    def join(self, person: str) -> None:
        self.do("join", person)

    @rule(person=person)
    def ready(self, person: str) -> None:
        self.do("say_ready", person)

    @rule(person=person, twice=st.booleans())
    def say(self, person: str, twice: bool) -> None:
        self.n_sent += 1
        id = f"m{self.n_sent}"
        room = self.host.lobby.room_of(person)
        for _ in range(1 + twice):
            number = self.do("say", person, id, f"text {self.n_sent}")
        if number is not None and room is not None:
            self.acknowledged.append((room.number, id))

    @rule(person=person)
    def answer(self, person: str) -> None:
        for turn in self.host.turns_to_answer(person):
            self.do("answer", person, {"turn_rating": "3"}, turn=turn)

    @rule(person=person)
    def rate(self, person: str) -> None:
        self.do("answer", person, {"rating": "3"})

    @rule(person=person)
    def submit(self, person: str) -> None:
        self.do("submit", person)

    @rule(person=person, option=st.sampled_from(["again", "bot", "stop"]))
    def choose(self, person: str, option: str) -> None:
        self.do("choose", person, option)

    @rule(person=person)
    def leave(self, person: str) -> None:
        self.do("leave", person)

    @rule(person=person)
    def lose(self, person: str) -> None:
        self.do("lose", person)

    @rule(seconds=st.sampled_from([1.0, 10.0, 70.0, 250.0]), there=st.sets(person))
    def pass_time(self, seconds: float, there: set[str]) -> None:
        self.now += seconds
        for name in there:
            self.do("see", name)
        self.do("tick")

    @precondition(lambda self: self.host.bots_to_speak())
    @rule(works=st.booleans())
    def bot(self, works: bool) -> None:
        room, seat = self.host.bots_to_speak()[0]
        if works:
            self.host.reply(room.number, seat.name, len(room.turns), "yes", self.now)
        else:
            self.host.fail(room.number, seat.name, "broken", self.now)

    @rule()
    def crash(self) -> None:
        """What was stored is all that is left."""
        self.log += self.host.take_new()
        self.host = Host(self.rules, self.log, started_at=self.now)  # type: ignore[arg-type]

    @invariant()
    def nobody_is_in_two_places(self) -> None:
        lobby = self.host.lobby
        seated = [p for number in lobby.live for p in lobby.rooms[number].people]
        assert len(seated) == len(set(seated))
        assert not set(seated) & set(lobby.waiting)
        for visitor in lobby.visitors.values():
            places = {"waiting": visitor.id in lobby.waiting, "seated": visitor.id in seated}
            assert places == {state: visitor.state == state for state in places}, visitor
        for number in lobby.live:
            people = lobby.rooms[number].people
            assert len(people) == len(set(people))

    @invariant()
    def no_message_is_lost_doubled_or_out_of_order(self) -> None:
        for number in self.host.lobby.rooms:
            sent = [id for room, id in dict.fromkeys(self.acknowledged) if room == number]
            turns = self.host.lobby.rooms[number].turns
            assert [turn.id for turn in turns if not turn.id.startswith(f"{number}-")] == sent
            assert [turn.number for turn in turns] == list(range(len(turns)))
            seats = [turn.seat for turn in turns]
            assert all(before != after for before, after in pairwise(seats))

    @invariant()
    def every_exit_is_paid_or_explained(self) -> None:
        for visitor in self.host.lobby.visitors.values():
            if visitor.state == "out":
                assert visitor.pay in ("full", "partial", "waiting", "none")
                assert visitor.reason
                assert visitor.pay != "none" or not visitor.n_turns
            else:
                assert visitor.pay == "open"

    @invariant()
    def rooms_that_are_over_are_empty_and_plans_are_used_once(self) -> None:
        lobby = self.host.lobby
        kept = [r.plan for r in lobby.rooms.values() if r.ending in ("open", "complete")]
        assert len(kept) == len(set(kept))
        assert set(kept) == lobby.plans_taken
        for room in lobby.rooms.values():
            assert (room.number in lobby.live) == (room.phase != "ended")
            assert room.phase != "ended" or not room.people

    @invariant()
    def another_process_sees_the_same(self) -> None:
        copy = Lobby([*self.log, *self.host.new])  # type: ignore[list-item]
        assert copy.visitors == self.host.lobby.visitors
        assert copy.rooms == self.host.lobby.rooms
        assert list(copy.waiting) == list(self.host.lobby.waiting)

    def teardown(self) -> None:
        """Everybody goes home: nobody is forgotten."""
        self.now += 1e6
        for _ in range(3):
            self.now += 1000
            self.do("tick")
        assert all(v.state in ("out", "between") for v in self.host.lobby.visitors.values())
        assert not self.host.lobby.live


TestPlay = Play.TestCase
TestPlay.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


# --- simulations: the long forms are benchmarks/lobby.py ----------------------------------------------------


def test_no_ghost_is_paired_and_dropouts_leave_few_conversations_incomplete() -> None:
    rules = Rules(fewest_turns=8, substitute="helper")
    outcome = simulate(rules, Crowd(n=80, ghosts=0.3, seconds_between=20, seconds_to_write=10), seed=3)
    assert outcome.ghosts_paired == 0
    assert outcome.ghosts_invited > 0  # the queue alone would have paired them
    assert outcome.share_incomplete <= 0.2
    assert outcome.interrupted > outcome.incomplete
    assert outcome.unexplained == 0
    assert sum(outcome.exits.values()) == 80
