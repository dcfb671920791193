"""What each rule makes of many sentences, and why it refuses others."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.probes.refusals import REASONS, NotApplicable
from palaver.probes.transform import RULES, transform

MADE = {
    "not-negation": [
        (
            "The young boy is climbing the wall made of rock.",
            "The young boy is not climbing the wall made of rock.",
        ),
        ("A rabbit is jumping over the fence.", "A rabbit is not jumping over the fence."),
        (
            "Copperweld said it doesn't expect a protracted strike.",
            "Copperweld said it expects a protracted strike.",
        ),
        ('"We made our own decision," he said.', '"We didn\'t make our own decision," he said.'),
        ("Octel said the purchase was expected.", "Octel did not say the purchase was expected."),
        ("He's running fast.", "He isn't running fast."),
        ("They'll win the game.", "They won't win the game."),
        ("I've seen him.", "I haven't seen him."),
        ("She can swim.", "She cannot swim."),
        ("A man rides a horse.", "A man does not ride a horse."),
        ("She can't swim.", "She can swim."),
        ("He won't come.", "He will come."),
        ("The man did not buy a car.", "The man bought a car."),
        ("The men don't play chess.", "The men play chess."),
        ("A man is not playing any music.", "A man is playing some music."),
        ("There is no man playing.", "There is a man playing."),
        ("There are no men playing.", "There are men playing."),
        ("There is a man playing.", "There is no man playing."),
        ("Nobody is dancing.", "Somebody is dancing."),
        ("He never eats meat.", "He eats meat."),
        ("I am happy.", "I am not happy."),
        ("He left because he was tired.", "He did not leave because he was tired."),
        ("The mayor often visits the market.", "The mayor does not often visit the market."),
        ("A little girl is singing", "A little girl is not singing"),
        ("They left without me.", "They did not leave without me."),
        ("The dog quickly ran away.", "The dog did not quickly run away."),
        ("The company has a new office.", "The company does not have a new office."),
        ("She has finished her work.", "She has not finished her work."),
        ("It's raining.", "It isn't raining."),
        ("The children were playing in the garden.", "The children were not playing in the garden."),
        ("He hasn't eaten the cake.", "He has eaten the cake."),
        ("The car couldn't start.", "The car could start."),
        ("The man bought some bread.", "The man did not buy any bread."),
        ("He goes to school.", "He does not go to school."),
        ("The man didn't buy any bread.", "The man bought some bread."),
        (
            "Highway officials insist the railings aren't strong enough.",
            "Highway officials insist the railings are strong enough.",
        ),
    ],
    "quantifier-negation": [
        ("A girl is cutting butter into two pieces.", "There is no girl cutting butter into two pieces."),
        ("A man plays the guitar", "There is no man who plays the guitar"),
        ("A dog is in the water", "There is no dog in the water"),
        ("A dog is running and is holding a ball", "There is no dog running and holding a ball"),
        ("A man bought a car.", "There was no man who bought a car."),
        ("A robot can clean your house.", "There is no robot that can clean your house."),
        ("A boy is tall", "There is no boy who is tall"),
        ("An old woman is sleeping", "There is no old woman sleeping"),
        ("A group of people is dancing", "There is no group of people dancing"),
        ("A photo was shown on a screen.", "There was no photo shown on a screen."),
    ],
    "synonym": [
        ("The man is talking on the telephone.", "The man is speaking on the telephone."),
        ("A boy jumped over the wall", "A boy leapt over the wall"),
        ("She bought a house.", "She purchased a house."),
        ("He began to cry.", "He started to cry."),
        ("The police arrested two men.", "The police apprehended two men."),
        ("He was arrested by the police.", "He was apprehended by the police."),
        ("They stare at the sky.", "They gaze at the sky."),
        ("The boy hit the ball.", "The boy struck the ball."),
        ("The visit was disclosed Monday.", "The visit was revealed Monday."),
        ("I think she is right.", "I believe she is right."),
        ("A woman is slicing a tomato", "A woman is cutting a tomato"),
        ("A dog is being chased by a boy", "A dog is being pursued by a boy"),
        ("The cats ate some fish.", "The cats consumed some fish."),
    ],
    "clause": [
        ("Octel said the purchase was expected.", "The purchase was expected."),
        ('"We made our own decision," he said.', "We made our own decision."),
        ("The purchase, Octel said, was expected.", "The purchase was expected."),
        ("He thinks that she is right.", "She is right."),
        ("They believe the earth is flat.", "The earth is flat."),
        ('"It\'s over," said the coach.', "It's over."),
        ('She said, "I\'m tired."', "I'm tired."),
        ("The company said it will close the plant.", "It will close the plant."),
        ("State media said there were at least 770 dead.", "There were at least 770 dead."),
        ("In 1990, he said, sales rose.", "In 1990, sales rose."),
    ],
    "passive": [
        ("Harley asked Abigail to bake some muffins.", "Abigail was asked by Harley to bake some muffins."),
        ("Lilly loves Imogen.", "Imogen is loved by Lilly."),
        ("The mechanic repaired your bike yesterday.", "Your bike was repaired yesterday by the mechanic."),
        ("My dog bit my son in our garden.", "My son was bitten in our garden by my dog."),
        ("I will probably watch the film now.", "The film will probably be watched by me now."),
        ("I washed my car instead.", "My car was washed by me instead."),
        ("The man gave the boy a book.", "The boy was given a book by the man."),
        ("The man gave a book to the boy.", "A book was given to the boy by the man."),
        ("He has eaten the cake.", "The cake has been eaten by him."),
        ("She will open the door.", "The door will be opened by her."),
        ("They are building a bridge.", "A bridge is being built by them."),
        ("She could have seen him.", "He could have been seen by her."),
        ("I saw them.", "They were seen by me."),
        ("The dog chased the cats.", "The cats were chased by the dog."),
        ("The dogs don't chase the cat.", "The cat isn't chased by the dogs."),
        ("She doesn't like him.", "He isn't liked by her."),
        ("He took off the hat.", "The hat was taken off by him."),
        ("The woman carefully closed the old door.", "The old door was carefully closed by the woman."),
        ("A man is putting meat in a pan", "Meat is being put in a pan by a man"),
        ("People look at the man.", "The man is looked at by people."),
        ("In 1990, the company sold the plant.", "In 1990, the plant was sold by the company."),
        ("The man has already read the letter.", "The letter has already been read by the man."),
        ("She can't open the window.", "The window can't be opened by her."),
        ("A man is talking to a woman.", "A woman is being talked to by a man."),
        ("The waiter brought us the menu.", "We were brought the menu by the waiter."),
        (
            "The boys' mother will not have read the letter.",
            "The letter will not have been read by the boys' mother.",
        ),
        ("Someone is removing the peel of a banana", "The peel of a banana is being removed by someone"),
        (
            "The tan dog is watching a brown dog that is swimming in a pond",
            "A brown dog that is swimming in a pond is being watched by the tan dog",
        ),
        ("A man who is tall is eating an apple", "An apple is being eaten by a man who is tall"),
        (
            "The bank, which was founded in 1902, has closed six branches.",
            "Six branches have been closed by the bank, which was founded in 1902.",
        ),
        ("They will announce it tomorrow.", "It will be announced by them tomorrow."),
        ("I made a few mistakes.", "A few mistakes were made by me."),
        (
            "The secretary of health and human services called the doctor.",
            "The doctor was called by the secretary of health and human services.",
        ),
    ],
    "reorder": [
        (
            "Matilda encouraged Sophia to compete in a match.",
            "Sophia encouraged Matilda to compete in a match.",
        ),
        ("Lilly loves Imogen.", "Imogen loves Lilly."),
        ("A boy is whacking a man with a sword", "A man is whacking a boy with a sword"),
        ("A girl is chasing a player in a red uniform", "A player in a red uniform is chasing a girl"),
        ("Anyone can call the doctor.", "The doctor can call anyone."),
        ("He saw them.", "They saw him."),
        ("Daniel persuaded Ruth to stay.", "Ruth persuaded Daniel to stay."),
        ("The board persuaded the company to sell.", "The company persuaded the board to sell."),
        ("My dad taught me to drive.", "I taught my dad to drive."),
        ("The dog is chasing the cats", "The cats are chasing the dog"),
        ("The cats are chasing the dog", "The dog is chasing the cats"),
        ("The boy has helped the girls.", "The girls have helped the boy."),
        ("The president asked the senators to resign.", "The senators asked the president to resign."),
        ("I know you.", "You know me."),
        ("The dog chases the cat.", "The cat chases the dog."),
        (
            "The committee absolved Mr. Blair of all charges.",
            "Mr. Blair absolved the committee of all charges.",
        ),
        (
            "The governor and the mayor asked the judge to resign.",
            "The judge asked the governor and the mayor to resign.",
        ),
    ],
    "inversion": [
        (
            "A dog is running on concrete and is holding a blue ball",
            "concrete and is holding a blue ball a dog is running on",
        ),
        ("Two men are talking in the park", "park two men are talking in the"),
        ("A boy in a blue shirt is holding a cat", "shirt is holding a cat a boy in a blue"),
    ],
}
REFUSED = {
    "not-negation": [
        ("All men are mortal.", "quantified"),
        ("He must leave.", "modal"),
        ("She can't have forgotten it.", "modal"),
        ("What a lovely day it is!", "exclamation"),
        ("I can't wait to see it.", "idiom"),
        ("I bet you will enjoy it.", "idiom"),
        ("It is nothing more than a game.", "negated-otherwise"),
        ("He doesn't drink or smoke.", "polarity"),
        ("Some people are dancing.", "quantified"),
        ("He also likes tea.", "polarity"),
        ("Do you like tea?", "question"),
        ("Go home.", "imperative"),
        ("Hello there.", "no-verb"),
        ("A dog is running and is holding a ball", "coordination"),
        ("Not only men are dancing.", "negated-otherwise"),
        ("There is little hope.", "negated-otherwise"),
        ("Few men are dancing.", "negated-otherwise"),
        ("You've got to see this.", "modal"),
        ("We went to the beach and swam all day.", "coordination"),
        ("The men aren't dancing at all.", "polarity"),
        ("It was not until noon that he came.", "polarity"),
    ],
    "quantifier-negation": [
        ("A man and a woman are dancing", "coordination"),
        ("The man is singing", "not-indefinite"),
        ("A man is not singing", "negated"),
        ("A man who is wearing a hat is singing", "embedded"),
        ("A man should sing", "modal"),
        ("An owl has eaten a mouse.", "complement"),
        ("A lot of people are dancing", "quantified"),
    ],
    "synonym": [
        ("He is a doctor.", "light-verb"),
        ("She put on a coat.", "idiom"),
        ("He speaks English.", "no-synonym"),
        ("The police arrested and charged him.", "coordination"),
        ("The stock hit a high.", "idiom"),
        ("The minister lifted the ban.", "idiom"),
        ("She changed her mind.", "idiom"),
        ("I found my keys.", "idiom"),
        ("The studio released a film.", "idiom"),
        ("The man closed the deal.", "idiom"),
        ("A woman is not slicing a tomato", "polarity"),
        ("Nobody is slicing a tomato", "polarity"),
    ],
    "clause": [
        ("I know what you did.", "not-a-statement"),
        ("She asked whether he was there.", "no-report"),
        ("He said hello.", "no-report"),
        ("He said he would come and left the room.", "coordination"),
        ("The man is singing", "no-report"),
        ("He didn't say that she left.", "negated"),
        ("Nobody said that the plan was cheap.", "negated"),
        ("Few believe that she left.", "negated"),
        ("It suggests that Congress consider this plan.", "not-a-statement"),
    ],
    "passive": [
        ("The cat sleeps.", "intransitive"),
        ("He did his homework.", "pronoun"),
        ("They beat the Celtics.", "agreement"),
        ("He hurt himself.", "reflexive"),
        ("He has a car.", "stative"),
        ("She is a doctor.", "intransitive"),
        ("The book costs ten dollars.", "stative"),
        ("He said that she left.", "clausal-object"),
        ("Open the door!", "imperative"),
        ("He didn't take off his hat.", "pronoun"),
        ("He has been reading a book.", "perfect-progressive"),
        ("Who broke the window?", "question"),
        ("Mary resembles her mother.", "stative"),
        ("The police arrested him and his brother.", "pronoun"),
        ("They called him a liar.", "complement"),
        ("The boy ate an apple and drank milk.", "agreement"),
        ("A bird is building its nest.", "pronoun"),
        ("A man is snowboarding down a railing in the snow", "unclear-parse"),
        ("The man knocked over the glass.", "intransitive"),
        ("She was seen by him.", "passive-already"),
        ("Nobody is beating an egg", "quantified"),
        ("They took place in May.", "idiom"),
        ("He ran a mile.", "intransitive"),
        ("The doctor called the secretary of health and human services.", "intransitive"),
    ],
    "reorder": [
        ("A man is slicing a potato", "not-somebody"),
        ("A man is frying a fish", "not-somebody"),
        ("A dog is jumping on a diving board", "not-somebody"),
        ("She met him.", "same"),
        ("They beat them.", "same"),
        ("The doctor beat the doctor.", "same"),
        ("I don't know anyone.", "polarity"),
        ("He hurt himself.", "reflexive"),
        ("She likes her brother.", "pronoun"),
        ("The man showed himself.", "reflexive"),
        ("Nobody is brushing a cat", "quantified"),
        ("They were chased by a dog.", "passive-already"),
    ],
    "inversion": [("The man is playing.", "only-moved"), ("Dogs bark.", "too-short")],
}


@cache
def results() -> dict[tuple[str, str], str]:
    """Every sentence of the tables under its rule: parsed in one go."""
    found = {}
    for rule in RULES:
        sentences = [source for source, _ in (*MADE[rule], *REFUSED.get(rule, ()))]
        for result in transform(sentences, [rule]):
            found[rule, result.source] = result.output or f"({result.reason})"
    return found


@pytest.mark.parametrize(
    ("rule", "source", "output"), [(r, s, o) for r, table in MADE.items() for s, o in table]
)
def test_output(rule: str, source: str, output: str) -> None:
    assert results()[rule, source] == output


@pytest.mark.parametrize(
    ("rule", "source", "reason"), [(r, s, o) for r, table in REFUSED.items() for s, o in table]
)
def test_refusal(rule: str, source: str, reason: str) -> None:
    assert reason in REASONS
    assert results()[rule, source] == f"({reason})"


def test_every_rule_has_examples() -> None:
    assert set(MADE) == set(RULES)


SUBJECTS = ["The man", "The women", "A dog", "She", "They", "My brother", "Two boys", "Mary"]
VERBS = ["is eating", "ate", "will eat", "has eaten", "can see", "was watching", "bought", "carried"]
OBJECTS = ["the apple", "a book", "the letters", "an old house"]


def agreeing(subject: str, verb: str) -> str:
    plural = subject in ("The women", "They", "Two boys")
    return (
        {"is": "are", "was": "were", "has": "have"}.get(verb.split()[0], verb.split()[0])
        + (verb[len(verb.split()[0]) :])
        if plural
        else verb
    )


simple = st.builds(
    lambda s, v, o: f"{s} {agreeing(s, v)} {o}.",
    st.sampled_from(SUBJECTS),
    st.sampled_from(VERBS),
    st.sampled_from(OBJECTS),
)


def only(text: str, rule: str) -> str:
    (found,) = transform([text], [rule], check=False)
    assert found.output is not None, found
    return found.output


@settings(max_examples=50, deadline=None)
@given(simple)
def test_negating_twice_gives_the_sentence_back(text: str) -> None:
    negated = only(text, "not-negation")
    assert negated != text
    assert only(negated, "not-negation") == text


@settings(max_examples=50, deadline=None)
@given(simple)
def test_the_passive_keeps_object_and_agent(text: str) -> None:
    output = only(text, "passive")
    objects = next(o for o in OBJECTS if f" {o}." in text)
    assert output.startswith(objects[0].upper() + objects[1:])
    assert " by " in output
    assert output.endswith(".")
    assert not output.endswith("..")


@settings(max_examples=50, deadline=None)
@given(
    st.sampled_from(["A man", "The dog", "The girls", "Two cats", "They", "She", "Mary"]),
    st.sampled_from(["the boy", "the women", "a doctor", "three cows", "him", "us"]),
    st.sampled_from(["saw", "has helped", "will follow", "carried"]),
)
def test_reordering_twice_gives_the_sentence_back(subject: str, other: str, verb: str) -> None:
    if verb == "has helped" and subject in ("The girls", "Two cats", "They"):
        verb = "have helped"
    text = f"{subject} {verb} {other}."
    assert only(only(text, "reorder"), "reorder") == text


def test_an_unknown_reason_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="unknown reason"):
        NotApplicable("because")
