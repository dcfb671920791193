"""Bots of a collection, by the names that its file has for them."""

from __future__ import annotations

import multiprocessing

import pytest

from palaver.cli.collect_bots import check_bot, find_bot, run_bots
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


def test_bots_that_are_ready_after_their_server_has_ended_say_nothing(
    capfd: pytest.CaptureFixture[str],
) -> None:
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    ours.close()
    process = spawn.Process(target=run_bots, args=("sqlite://", ["nobody"], None, theirs))
    process.start()
    theirs.close()
    process.join(60)
    assert process.exitcode == 0
    assert "Traceback" not in capfd.readouterr().err
