from mb_agent.budget import Spending
from mb_agent.events import Budget
from mb_agent.report import Report


def test_what_makes_all_take_long_is_said_with_each_stage():
    events = []
    report = Report(events.append, aside="the original takes 12 s a launch")
    report.progress("verifying a finalist", Spending(Budget(), lambda: 0.0))
    assert events[0].stage == "verifying a finalist (the original takes 12 s a launch)"
