"""Simulated people in a collection: how long they wait, and how many conversations come to a good end.

People arrive at random, think before they write, and some go without a word. A ghost is somebody who closed
the lid while waiting: nothing tells the server, and pairing them would leave the partner alone.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from random import Random

from palaver.collection.host import Host
from palaver.collection.records import Pay
from palaver.collection.rules import Rules

_LATENCY = 1.0
"""Seconds between two looks at everybody."""


@dataclass(frozen=True)
class Crowd:
    """Who comes, and what they are like."""

    n: int = 1000
    seconds_between: float = 6.0
    """Between two arrivals, on average."""
    seconds_to_write: float = 20.0
    ghosts: float = 0.1
    """Who goes without a word while waiting."""
    dropouts: float = 0.3
    """Who goes in the middle of a conversation, and does not come back."""
    patience: float = 60.0
    """Seconds after which somebody whose partner left chooses the bot, or if there is none, to stop."""


@dataclass(frozen=True)
class Outcome:
    """What became of them."""

    arrivals: int
    conversations: int
    """That began and are over."""
    incomplete: int
    interrupted: int
    """In which somebody dropped out: incomplete, all of them, where nobody takes the place of another."""
    ghosts_invited: int
    """How many would have been paired by whoever trusts the queue."""
    ghosts_paired: int
    exits: dict[str, int]
    pay: dict[Pay, int]
    unexplained: int

    @property
    def share_incomplete(self) -> float:
        return self.incomplete / max(1, self.conversations)


def simulate(rules: Rules, crowd: Crowd, seed: int = 0) -> Outcome:
    """Let a crowd come, until the last one has gone."""
    random = Random(seed)
    host = Host(rules)
    arrivals: list[float] = []
    at = 0.0
    for _ in range(crowd.n):
        at += random.expovariate(1 / crowd.seconds_between)
        arrivals.append(at)
    gone: set[str] = set()
    ghost_at: dict[str, float] = {}
    drop_after: dict[str, int] = {}
    writes_at: dict[str, float] = {}
    here: list[str] = []
    n_invited_ghosts = n_paired_ghosts = n_come = 0
    now = 0.0
    while n_come < crowd.n or host.lobby.waiting or host.lobby.live:
        now += _LATENCY
        while n_come < crowd.n and arrivals[n_come] <= now:
            person = f"p{n_come}"
            n_come += 1
            if random.random() < crowd.ghosts:
                ghost_at[person] = now + random.uniform(0, 60)
            if random.random() < crowd.dropouts:
                drop_after[person] = random.randrange(rules.own_share)
            host.join(person, now)
            here.append(person)
        here = [
            person for person in here if person not in gone and host.lobby.visitors[person].state != "out"
        ]
        for person in here:
            room = host.lobby.room_of(person)
            if now > ghost_at.get(person, float("inf")) and (room is None or room.phase == "opening"):
                gone.add(person)
                continue
            host.see(person, now)
            _act(host, person, crowd, random, now, writes_at)
            if person in drop_after and host.lobby.visitors[person].n_turns > drop_after[person]:
                gone.add(person)
                if random.random() < 0.5:  # the other half goes without the browser saying so
                    host.lose(person, now)
        for room, seat in host.bots_to_speak():
            host.reply(room.number, seat.name, len(room.turns), "I see. Tell me more.", now)
        host.tick(now)
        for event in host.take_new():
            is_ghost = event.person in gone and now > ghost_at.get(str(event.person), float("inf"))
            n_invited_ghosts += event.kind == "invited" and is_ghost
            if event.kind == "began":
                people = host.lobby.rooms[event.room or 0].people
                n_paired_ghosts += sum(person in gone for person in people)
    visitors = host.lobby.visitors.values()
    held = [room for room in host.lobby.rooms.values() if room.began_at is not None]
    return Outcome(
        arrivals=crowd.n,
        conversations=len(held),
        incomplete=sum(room.ending != "complete" for room in held),
        interrupted=sum(any(o.exit == "lost" for o in room.occupancies) for room in held),
        ghosts_invited=n_invited_ghosts,
        ghosts_paired=n_paired_ghosts,
        exits=Counter(visitor.exit for visitor in visitors),
        pay=Counter(visitor.pay for visitor in visitors),
        unexplained=sum(visitor.pay == "open" or not visitor.reason for visitor in visitors),
    )


def _act(
    host: Host, person: str, crowd: Crowd, random: Random, now: float, writes_at: dict[str, float]
) -> None:
    """What somebody who is there does: say that they are ready, write, submit, or decide what next."""
    host.say_ready(person, now)
    room = host.lobby.room_of(person)
    if room is None or room.phase != "talking":
        return
    if room.free_since is not None and now - room.free_since > crowd.patience and host.options(person):
        host.choose(person, host.options(person)[0], now)
    elif host.why_not_submit(person) is None:
        host.submit(person, now)
    elif host.why_silent(person) is None:
        due = writes_at.setdefault(person, now + random.expovariate(1 / crowd.seconds_to_write))
        if now >= due:
            host.say(person, f"{person}-{len(room.turns)}", "And what do you think about that?", now)
            del writes_at[person]
