"""A system that is one line."""


def yes(text):
    return "Yes, of course."
