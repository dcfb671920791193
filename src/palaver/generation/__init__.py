"""Systems that reply: decoding, the kinds of system, and replies for whole files of contexts."""
