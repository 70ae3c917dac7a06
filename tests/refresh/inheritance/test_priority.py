"""How much priority does a table inherit from its readers? (001, section 3.3)"""

import pytest

from springhouse.refresh.inheritance.priority import Inheritance, Rule
from springhouse.refresh.policy import Policy
from springhouse.refresh.scheduler import Scheduler
from springhouse.refresh.table.table_profile import TableProfile
from springhouse.units import Instant, Seconds

# A diamond above an unimportant base table: base -> left, right -> top.
DIAMOND = [
    TableProfile("base", priority=0.001),
    TableProfile("left", ("base",), priority=1.0),
    TableProfile("right", ("base",), priority=2.0),
    TableProfile("top", ("left", "right"), priority=10.0),
]
NOW = Instant(0.0)


def priorities(scheduler: Scheduler) -> dict[str, float]:
    known = {table.name: scheduler.known(table.name, NOW) for table in DIAMOND}
    return {name: each.priority for name, each in known.items() if each is not None}


def scheduled(inheritance: Inheritance, tables: list[TableProfile]) -> Scheduler:
    scheduler = Scheduler(1, Policy(inheritance=inheritance))
    for table in tables:
        scheduler.declare(table)
    return scheduler


RULES = [
    (Inheritance(Rule.NONE), [0.001, 1.0, 2.0, 10.0]),
    (Inheritance(Rule.SUM), [13.001, 11.0, 12.0, 10.0]),
    (Inheritance(Rule.MAX), [10.0, 10.0, 10.0, 10.0]),
    (Inheritance(Rule.MAX_PLUS, k=2.0), [40.0, 20.0, 20.0, 10.0]),
]


@pytest.mark.parametrize(("inheritance", "expected"), RULES)
def test_rules(inheritance: Inheritance, expected: list[float]) -> None:
    found = priorities(scheduled(inheritance, DIAMOND))
    assert [*found.values()] == pytest.approx(expected)
    # The order of the declarations makes no difference.
    assert priorities(scheduled(inheritance, DIAMOND[::-1])) == found


def test_what_was_inherited_from_a_table_goes_with_it() -> None:
    scheduler = scheduled(Inheritance(Rule.MAX), DIAMOND)
    assert priorities(scheduler)["base"] == 10.0
    scheduler.drop("top")
    assert priorities(scheduler) == {"base": 2.0, "left": 1.0, "right": 2.0}
    scheduler.declare(TableProfile("right", (), Seconds(1.0), priority=5.0))
    assert priorities(scheduler) == {"base": 1.0, "left": 1.0, "right": 5.0}
