"""Who handles an interrupt: a tool ends at one, until it has files to remove."""

import signal

import pytest

from xegpu_py import interrupts


@pytest.fixture
def handler():
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


def own(*_):
    """A handler of somebody else."""


@pytest.mark.parametrize("other", [signal.SIG_IGN, own])
def test_handlers_of_others_stay(handler, other):
    signal.signal(signal.SIGINT, other)
    interrupts.end_at_interrupt()
    assert signal.getsignal(signal.SIGINT) is other
    interrupts.raise_at_interrupt()
    assert signal.getsignal(signal.SIGINT) is other


def test_a_process_ends_at_interrupts_until_it_raises(handler):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    interrupts.raise_at_interrupt()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    interrupts.end_at_interrupt()
    assert signal.getsignal(signal.SIGINT) is interrupts._end
    interrupts.end_at_interrupt()
    assert signal.getsignal(signal.SIGINT) is interrupts._end
    interrupts.raise_at_interrupt()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
