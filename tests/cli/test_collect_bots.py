"""Bots of a collection, by the names that its file has for them."""

from __future__ import annotations

import pytest

from palaver.cli.collect_bots import check_bot, find_bot
from palaver.collection.settings import PRESETS, parse_collection, preset_text
from palaver.errors import UserError


def test_every_preset_s_bots_can_answer() -> None:
    collections = [parse_collection(preset_text(name), name) for name in PRESETS]
    for bot in {bot for collection in collections for bot in collection.partners.bots}:
        check_bot(find_bot(bot, None)())


def test_a_bot_that_does_not_know_who_it_is_is_refused_before_anybody_comes() -> None:
    with pytest.raises(UserError, match="needs to know who speaks"):
        check_bot(find_bot("default-speaker", None)())
    with pytest.raises(UserError, match="there is no system 'nobody'"):
        find_bot("nobody/barista", None)
