"""The thread that waits for the disk."""

import asyncio
import threading
import time

import pytest

from keyhole.service.commit_thread import Committer


def run(play):
    async def played():
        committer = Committer()
        try:
            return await play(committer)
        finally:
            committer.stop()

    return asyncio.run(played())


def test_work_has_begun_when_it_was_handed_over():
    """However busy the loop is from then on: it is not asked to let anybody else in."""

    async def play(committer):
        for _ in range(20):
            begun: list[float] = []
            ended = committer.begin(lambda begun=begun: begun.append(time.perf_counter()))
            handed_over = time.perf_counter()
            await ended
            assert begun[0] < handed_over

    run(play)


def test_pieces_are_done_one_after_the_other_and_what_one_raises_is_told():
    done: list[str] = []

    def slow():
        time.sleep(0.02)
        done.append("slow")

    def failing():
        raise OSError("The disk is gone.")

    async def play(committer):
        first = committer.begin(slow)
        second = committer.begin(failing)
        third = committer.begin(lambda: done.append(threading.current_thread().name))
        await first
        with pytest.raises(OSError, match="gone"):
            await second
        await third

    run(play)
    assert done == ["slow", "keyhole-commit"]


def test_the_loop_does_not_wait_for_a_thread_that_is_busy():
    async def play(committer):
        may_end = threading.Event()
        long = committer.begin(lambda: may_end.wait(10))
        began = time.monotonic()
        after = committer.begin(lambda: None)
        assert time.monotonic() - began < 1.0
        may_end.set()
        await asyncio.gather(long, after)

    run(play)


def test_nobody_minds_work_that_is_no_longer_waited_for():
    async def play(committer):
        faults = []
        asyncio.get_running_loop().set_exception_handler(lambda *fault: faults.append(fault))
        committer.begin(lambda: time.sleep(0.01)).cancel()
        await committer.begin(lambda: None)
        assert not faults

    run(play)


def test_it_ends_after_its_work_and_can_be_stopped_twice():
    done = []

    def slow():
        time.sleep(0.02)
        done.append("slow")

    async def play(committer):
        committer.begin(slow)
        committer.stop()
        assert done == ["slow"]
        committer.stop()

    run(play)
