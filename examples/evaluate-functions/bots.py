"""Two systems and a judge, each a function."""


def mirror(text):
    """Turns what was said into a question."""
    words = text.rstrip(".!?").split()
    swapped = {"I": "you", "my": "your", "My": "your", "me": "you", "am": "are"}
    return f"So {' '.join(swapped.get(word, word) for word in words)}? Tell me more."


def yes(text):
    """Agrees with everything."""
    return "Yes, of course."


def asks_back(response):
    """1 where the reply takes up a word of the last turn and asks something, 0.5 for one of the two."""
    last = set(response.context[-1].text.lower().split())
    shares_a_word = bool(last & set(response.response.lower().split()))
    return (shares_a_word + ("?" in response.response)) / 2
