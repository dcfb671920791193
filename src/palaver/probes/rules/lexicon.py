"""What is known of single verbs and nouns: which have no passive, which take an infinitive, and the like."""

from __future__ import annotations

from palaver.probes.words import word_map, word_set

STATIVE = word_set(
    """
    average become begin boast come comprise constitute contain continue cost date deserve end enter
    equal exceed experience face fall feature finish fit flee gain get go have hope include involve
    join keep lack last leave let lie live lounge mark marry match mean miss near need number pose
    possess post quit reflect remain resemble rise say stand start stay stop suffer suit survive top
    total try undergo want weigh wish
    """
)
"""No passive, or one no good writer would choose. Some are harmless with other objects: refusing is safe."""
CONTROL = word_set(
    """
    advise allow ask authorize beg command compel convince direct enable encourage expect force help
    hire instruct invite lead motivate order pay permit persuade press push remind request require
    teach tell train urge warn
    """
)
"""Verbs that take somebody and *to do something*."""
TELLING = word_set(
    """
    advise assure convince inform notify persuade remind show teach tell warn
    """
)
"""Verbs that take somebody and a clause."""
IDIOMS = word_map(
    """
    beat: estimate | blow: nose | bring: rear | call: attention | catch: breath fire wave
    change: color colour mind | clear: way | cross: leg
    do: backflip best cartwheel exercise flip handstand job jump push-up stunt trick well wheelie yoga
    give: birth rise way | hold: hand | keep: pace | lose: balance control weight
    make: decision effort face love mistake money move peace progress sense use way
    pay: attention heed tribute visit | perform: trick | play: dead part role trick | plead: guilty
    raise: eyebrow | ride: wave | run: race risk | set: foot sail | shake: hand head | spend: time
    take: advantage aim bath break care flight hold nap note part place ride seat shape shower step time turn
    tell: time | win: way
    """
)
"""Verb: objects it makes a fixed phrase with."""
PLACING = word_set(
    """
    add apply attach boil break bring carry chop cook crack cut dip drag drain draw drop feed fry
    guide hang hit hold insert kick lay lead lift load mix move paint peel place play pour pull push
    put ride rub send slice spread sprinkle squeeze stack stick stir store take throw tie toss walk
    wash write
    """
)
"""With these a phrase after the object is nearly always about the deed, whatever the parser says."""
GOVERNED = word_map(
    """
    absolve: of | acquit: of | assure: of | deprive: of | relieve: of | suspect: of | convince: of
    accuse: of | ask: for | award: to | blame: for on | charge: with | compare: with to | convict: of
    cover: with | criticize: for | cure: of | deliver: to | erase: from | fill: with | fine: for
    give: to | grant: to | inform: of | jail: for | notify: of | offer: to | praise: for
    protect: from | provide: with | remind: of | remove: from | replace: with | rob: of | see: from
    sell: to | sentence: to | set: on | strip: of | sue: for over | supply: with | thank: for
    warn: of about | wipe: from
    """
)
"""Verb: prepositions after the object that belong to the verb."""
WITH_PREPOSITION = word_map(
    """
    aim: at | bark: at | bite: at | bump: into | call: for | care: for | deal: with | gaze: at
    glare: at | growl: at | jump: on over | kick: at | laugh: at | lean: on against | lie: to
    listen: to | look: at after for | operate: on | pay: for | play: with | point: at to | pounce: on
    refer: to | rely: on | run: after | scream: at | shoot: at | shout: at | sing: to | sit: on
    smile: at | snap: at | speak: to about | spit: on | stare: at | step: on | talk: to about
    vote: for | wait: for | wave: at to | wink: at | yell: at
    """
)
"""Verb: prepositions that stay with it in the passive, as in *is being looked at by*."""
MEASURES = word_set(
    """
    cent day dollar foot hour indoor indoors kilometer lap meter mile minute month morning night
    outdoor outdoors penny percent point pound second share summer time top underwater way week
    weekend yard year
    """
)
"""Nouns that say how much, how long or where, not what."""
DATES = word_set(
    """
    april aug august dec december feb february friday jan january july june march monday nov
    november oct october saturday sept september sunday thursday today tomorrow tuesday wednesday
    yesterday
    """
)
