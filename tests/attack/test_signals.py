"""A few of the kills of ``python -m bench.kills``, which sends two hundred."""

import random
import signal

from bench.kills import Tally, Victim, attack


def test_a_command_that_is_killed_goes_on_to_the_same_files(tmp_path):
    tally = Tally()
    for kind in (signal.SIGINT, signal.SIGKILL):
        attack(Victim("reproduce", tmp_path), kind, 2, random.Random(kind), tally)
    assert tally.faults == []
    assert tally.counts["resumed"] == 2
