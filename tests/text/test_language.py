from __future__ import annotations

import pytest

from palaver.text.language import looks_english


@pytest.mark.parametrize(
    "text",
    [
        "Where does the bus to the airport stop? It stops in front of the town hall.",
        "i dont know lol what do you think about it",
        "ok",
        "",
        "Zürich, Genève, Łódź",  # too few words to say anything
        "The word for it is Привет, which people say when they meet.",
        "I'm well, thank you. And how are you? You’re so kind, that’s great.",
        "Ｗｅ ｗｅｎｔ ｔｏ ｔｈｅ ｐａｒｋ ａｎｄ ｔｈｅｎ ｗｅ ｗｅｎｔ ｈｏｍｅ",
        "Wе wеnt tо thе раrk аnd thеn wе wеnt hоmе",  # Cyrillic letters in Latin words
        # names and things have no language, though "Ben" is a Dutch word
        "Anna, Ben, Carla, David, Elif, Farid, Grace, Hannah, Igor, Jasmin, Karl, Luisa, Mehmet, Nina, "
        "Oskar, Paula, Quentin, Rosa, Samir, Tina.",
        "flour, sugar, butter, eggs, milk, salt, baking powder, cocoa, vanilla, cream, cherries, chocolate, "
        "almonds, raisins, honey, yeast, water, oil, lemon, nuts",
        "- Anna\n- Ben\n- Carla\n- David\n- Elif\n- Farid\n- Grace\n- Hannah",
    ],
)
def test_english_and_what_is_too_short_is_not_warned_of(text: str) -> None:
    assert looks_english(text)


@pytest.mark.parametrize(
    "text",
    [
        "Wo hält der Bus zum Flughafen? Er hält vor dem Rathaus.",
        "Bonjour, je voudrais savoir où est la gare, s'il vous plaît.",
        "Hola, ¿cómo estás? Quiero comprar pan y leche.",
        "Non lo so, ma penso che sia molto bello qui.",
        "Ik weet het niet, maar het is hier heel mooi.",
        "Привет",
        "Ich kenne aus meiner Klasse Anna, Ben, Carla, David, Elif, Farid, Grace, Hannah, Igor",
        "こんにちは、元気ですか",
        "Merhaba, bugün nasılsın? Dün sinemaya gittim ve çok güzeldi, sonra eve döndüm ve uyudum, sen ne "
        "yaptın acaba?",  # of a language without a list
    ],
)
def test_other_languages_are_found(text: str) -> None:
    assert not looks_english(text)
