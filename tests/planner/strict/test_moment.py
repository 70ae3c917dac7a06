"""At which moment are inputs read? Scenarios: versions with their provenance, and the choice."""

from springhouse.planner.provenance import Channel, Provenance
from springhouse.planner.strict.moment import InputSnapshot, meeting_points, newest_common_moment
from springhouse.units import Instant

# orders changed at 10, 20, 30 (versions 1, 2, 3), customers at 5 and 25 (versions 1, 2).
ORDERS = Channel((1, 2, 3), (Instant(10.0), Instant(20.0), Instant(30.0)))
CUSTOMERS = Channel((1, 2), (Instant(5.0), Instant(25.0)))
CHANNELS = {"orders": ORDERS, "customers": CUSTOMERS}


def base(name: str) -> list[InputSnapshot]:
    return [InputSnapshot(v, Provenance.of(**{name: v})) for v in CHANNELS[name].versions]


def view(*reflected: dict[str, int]) -> list[InputSnapshot]:
    return [InputSnapshot(v, Provenance.of(**each)) for v, each in enumerate(reflected)]


def test_base_tables_are_read_at_their_newest() -> None:
    choice = newest_common_moment(
        {"orders": base("orders"), "customers": base("customers")}, CHANNELS
    )
    assert choice is not None
    assert choice.versions == {"orders": 3, "customers": 2}


def test_a_diamond_reads_the_base_table_as_its_view_saw_it() -> None:
    totals = view({"orders": 1}, {"orders": 2})
    choice = newest_common_moment({"orders": base("orders"), "totals": totals}, CHANNELS)
    assert choice is not None
    assert choice.versions == {"orders": 2, "totals": 1}


def test_another_base_table_is_read_as_of_the_moment_of_the_view() -> None:
    # totals reflects orders 2, valid from 20 until 30. Customers 2 arrived at 25, within that time.
    totals = view({"orders": 2})
    choice = newest_common_moment({"customers": base("customers"), "totals": totals}, CHANNELS)
    assert choice is not None
    assert choice.versions == {"customers": 2, "totals": 0}
    # orders 1 was valid from 10 until 20: before customers 2.
    earlier = newest_common_moment(
        {"customers": base("customers"), "totals": view({"orders": 1})}, CHANNELS
    )
    assert earlier is not None
    assert earlier.versions == {"customers": 1, "totals": 0}


def test_two_views_are_read_where_they_last_met() -> None:
    fast = view({"orders": 1}, {"orders": 2}, {"orders": 3})
    slow = view({"orders": 1}, {"orders": 2})
    choice = newest_common_moment({"fast": fast, "slow": slow}, CHANNELS)
    assert choice is not None
    assert choice.versions == {"fast": 1, "slow": 1}


def test_views_that_never_met_have_no_moment() -> None:
    one, other = view({"orders": 1}, {"orders": 3}), view({"orders": 2})
    assert newest_common_moment({"one": one, "other": other}, CHANNELS) is None


def test_an_inconsistent_snapshot_is_right_at_no_moment() -> None:
    mixed = [InputSnapshot(0, Provenance({"orders": frozenset({1, 3})}))]
    assert newest_common_moment({"mixed": mixed}, CHANNELS) is None


def test_a_view_of_constants_is_right_at_every_moment() -> None:
    constants = [InputSnapshot(0, Provenance())]
    choice = newest_common_moment({"orders": base("orders"), "constants": constants}, CHANNELS)
    assert choice is not None
    assert choice.versions == {"orders": 3, "constants": 0}


def test_not_after_holds_the_choice_back() -> None:
    choice = newest_common_moment({"orders": base("orders")}, CHANNELS, not_after=Instant(25.0))
    assert choice is not None
    assert choice.versions == {"orders": 2}


def test_siblings_meet_where_most_of_them_are() -> None:
    one = view({"orders": 1}, {"orders": 2}, {"orders": 3})
    other = view({"orders": 2})
    assert meeting_points([one, other], CHANNELS, Instant(10.0)) == (Instant(20.0), Instant(30.0))
    assert meeting_points([one, other], CHANNELS, Instant(30.0)) == ()
