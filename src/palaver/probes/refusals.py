"""Why a rule does not apply: every reason, in words."""

from __future__ import annotations

REASONS = {
    # the line itself
    "empty": "nothing but white space",
    "not-english": "does not look like English",
    "too-long": "more words than a parse can be trusted with",
    "unusual-characters": "emoji or control characters in the middle of the sentence",
    "several-sentences": "more than one sentence",
    "no-verb": "no finite verb at its head: a fragment or a heading",
    "question": "a question",
    "imperative": "a command or a sentence without a subject",
    "exclamation": "what a ..., how ...!",
    "unclear-parse": "the parse leaves open what belongs to what",
    "quotation": "quotation marks that the rule would tear apart",
    # the grammar
    "coordination": "joined verbs, subjects or clauses that the rule would separate",
    "embedded": "a subordinate clause that the change would misread",
    "pronoun": "a pronoun would lose what it refers to",
    "agreement": "it is unclear whether a noun is singular or plural",
    "not-inflected": "the form of a verb is not known",
    # negation
    "quantified": "all, every, some, many ...: the negation would not deny the sentence",
    "polarity": "a word such as also, already, yet that does not survive the change",
    "modal": "must, ought, used to ...: the negation would change the modal",
    "negated-otherwise": "negated by a word that cannot simply be taken away",
    "negated": "already negated",
    "not-indefinite": "does not begin with a noun phrase with a or an",
    # synonyms
    "no-synonym": "WordNet has no fitting synonym of the verb",
    "light-verb": "be, have, do, get and the like",
    "idiom": "a fixed phrase",
    # clauses
    "no-report": "no verb such as say or think with a clause of its own",
    "not-a-statement": "the embedded clause is no statement (whether, how, to ...)",
    # passive and reordering
    "passive-already": "already passive",
    "intransitive": "the verb has no object",
    "reflexive": "the object is the subject itself",
    "stative": "have, cost, resemble, lack, weigh ... have no passive",
    "clausal-object": "the object is a clause",
    "measure": "an amount, not an object",
    "perfect-progressive": "has been doing, will be doing: its passive is not English",
    "complement": "a second complement beside the object",
    "not-somebody": "subject and object are not both somebody",
    "same": "nothing would change",
    # fixed point inversion
    "too-short": "too few words",
    # reading the output again
    "doubtful": "read again, the result does not parse as intended",
}
"""Every reason a rule may give, with what it means."""


class NotApplicable(Exception):
    """The rule does not fit this sentence; `reason` is one of `REASONS`."""

    def __init__(self, reason: str) -> None:
        if reason not in REASONS:
            raise ValueError(f"unknown reason {reason!r}")
        super().__init__(f"{reason}: {REASONS[reason]}")
        self.reason = reason
