from mb_agent.budget import Spending
from mb_agent.events import Budget


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def test_seconds_count_from_when_the_device_is_ours():
    clock = Clock()
    spending = Spending(Budget(seconds=10), clock)
    clock.now += 4
    assert (spending.seconds, spending.left_s) == (4.0, 6.0)


def test_a_resumed_job_goes_on_with_what_it_had_left():
    assert Spending(Budget(seconds=10), Clock(), spent=7.0).left_s == 3.0


def test_the_share_follows_the_nearer_limit():
    clock = Clock()
    spending = Spending(Budget(seconds=100, candidates=10), clock)
    clock.now += 10
    spending.candidates = 5
    assert spending.share == 0.5


def test_the_share_never_exceeds_one():
    clock = Clock()
    spending = Spending(Budget(seconds=1), clock)
    clock.now += 10
    assert spending.share == 1.0
