"""Verb pairs a reader found interchangeable, and in which patterns.

WordNet alone is not enough: "not all synonyms are suitable as replacements in a given context" (section
3.1), and the authors had people check every one. Here the pairs were read instead, all that WordNet offers
for verbs that were tagged at least three times, and those kept that hold for nearly every subject and object.

Where no synonym will do, the verb above may (`WIDER`): who slices an onion cuts it. But who does not slice it
may still cut it.

Each entry: verb, synonym, patterns (o with an object, p passive, c a clause, x an infinitive,
a an adjective, n none of them).
"""

from __future__ import annotations

from palaver.probes.words import word_set

_TABLE = """
say state cn | state say c | try attempt x | attempt try x | begin start xnop | start begin x
supply provide op | expect anticipate op | anticipate expect ocp | help assist o | assist help o
aid help o | stay remain n | need require o | require need o | happen occur n | occur happen n
remember recall oc | place put op | put place op | stop halt o | halt stop on | talk speak n
speak talk n | alter change op | change alter o | allow permit xop | permit allow xop
build construct op | construct build op | study examine op | choose select op | select choose op
buy purchase op | purchase buy op | achieve attain o | concur agree nc | teach instruct o
stare gaze n | gaze stare n | shut close op | admit acknowledge oc | acknowledge admit c
finish complete op | complete finish op | repeat reiterate c | reiterate repeat co | shout yell n
yell shout n | scream yell n | sleep slumber n | use utilize op | utilize use op | cross traverse o
reveal disclose c | disclose reveal ocp | divulge disclose op | collect gather op | gather collect o
fix repair op | repair fix op | mend repair op | detest hate o | hate detest o | disappear vanish n
vanish disappear n | hurry hasten n | divide split op | split divide op | display exhibit o
exhibit display o | calculate compute op | compute calculate op | jump leap n | leap jump n
hide conceal op | conceal hide op | drag haul o | rinse wash op | deserve merit o | merit deserve o
emphasize stress cop | stress emphasize cop | mutter mumble noc | mumble mutter noc | react respond n
vie compete n | back endorse op | endorse back op | arrest apprehend op
analyze examine op | strive endeavor x | endeavor strive x | cease stop x | discontinue stop o
invent devise o | evaluate assess op | assess evaluate op | beg implore x | inquire ask n
commence begin no | awaken wake on | wake awaken on | recover retrieve op | forbid prohibit op
prohibit forbid op | decrease diminish n | diminish decrease n | lessen decrease on | crouch squat n
squat crouch n | stoop crouch n | attribute ascribe op | ascribe attribute op | describe depict p
postpone defer op | defer postpone op | shelve postpone op | poke jab o | jab poke o | wound injure op
flourish thrive n | thrive flourish n | relieve alleviate o | alleviate relieve op | frighten scare op
scare frighten op | near approach o | bloom blossom n | blossom bloom n | punish penalize op
penalize punish op | shiver shudder n | hug embrace o | cooperate collaborate n
collaborate cooperate n | jail imprison op | imprison jail op | veer swerve n | swerve veer n
telephone phone on | phone telephone on | trudge plod n | plod trudge n | wander roam n
roam wander n | tease taunt o | taunt tease o | scamper scurry n | scurry scamper n | scold berate o
rebuke berate o | sew stitch o | stitch sew o | scrub scour o | slaughter butcher o | whack wallop o
cavort frolic n | frolic romp n | romp frolic n | twirl whirl on | whirl twirl on | giggle titter n
groan moan n | moan groan n | limp hobble n | hobble limp n | nudge prod o | prod nudge o
clap applaud n | hit strike op | strike hit op | note remark c | remark note c | think believe c
believe think c | show demonstrate c | demonstrate show co | seek attempt x | terminate end op
hire employ op | murder slay op | trip stumble n | quicken accelerate on | accelerate quicken n
stutter stammer n | stammer stutter n | perish die n | sprout germinate n | germinate sprout n
chide rebuke op | irritate annoy op | annoy irritate op | astonish amaze op | amaze astonish op
dispute challenge o | snuggle cuddle n | cuddle snuggle n | shriek shrill n | spot spy o
retort rejoin c | fulfil accomplish o | ruin destroy op | loathe abhor o | abhor loathe o
distort warp o | liberate free op | deceive delude o | lure entice op | entice lure op
thwart foil op | foil thwart op | impede hinder op | hinder impede op | jeopardize endanger op
endanger jeopardize op | imperil endanger op | clarify elucidate o | underscore underline o
underline underscore o | ignore disregard op | disregard ignore op | yank jerk o | locate situate p
decorate adorn op | adorn decorate op | copy imitate o | peel pare op | lift raise op | raise lift op
season flavor op | dive plunge n | crawl creep n | float drift n | lead guide o | approach near o
cry weep n | perform execute op | find discover oc | agree concur c | decline refuse x
refuse decline x | announce declare c | declare announce c | guess suppose c | suppose guess c
recognize realize c | slip slide n | argue contend c | contend argue c | decide resolve x
write pen op | predict forecast oc | indicate suggest c | mention note c | possess own o
reply respond nc | urge press x | insist assert c | learn discover c | hear learn c | mean intend x
seem appear xac | appear seem xa | look appear a
"""
_WIDER = """
slice cut op | chop cut op | dice cut op | mow cut op | eat consume op | drink consume op
chase pursue op | toss throw op | drive operate op | hike walk n | stroll walk n | wade walk n
pet caress op | gnaw chew on | tie fasten op | fire shoot o | squeeze press o | slide glide n
plan intend x | force compel x | claim assert c | feel think c
"""

CONCRETE = word_set(
    """
    hit strike put place cross poke recover lift raise slice chop chase toss drive tie fire lead
    squeeze find collect gather
    """
)
"""Verbs that mean it of things one can touch only: a stock that hits a high does not strike it."""


def _read(table: str) -> dict[tuple[str, str], str]:
    entries = [entry.split() for line in table.strip().splitlines() for entry in line.split("|")]
    return {(verb, synonym): patterns for verb, synonym, patterns in entries}


PAIRS = _read(_TABLE)
WIDER = _read(_WIDER)
FIXED = {
    "change": word_set("mind hand clothes"),
    "put": word_set("makeup make-up"),
    "peel": word_set("banana orange egg shrimp prawn"),
    "perform": word_set("music song play dance concert role operation surgery"),
    "hit": word_set("store shelf street"),
    "allow": word_set("run hit goal"),
}
"""Verbs with objects that make a fixed phrase, or from which the verb takes its meaning."""

THINGS = word_set("lift raise")
"""Verbs that mean something else of people: to raise a child."""

PERSONAL = word_set("note find")
"""Verbs that mean it of somebody only: a report finds, but it does not discover."""
