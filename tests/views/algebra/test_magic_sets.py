"""Groups that no reader needs are not kept, and groups that a reader needs are complete."""

from scenario import View, compiled

from springhouse.views.algebra.query_tree import Aggregate, SemiJoin, walk
from springhouse.views.compile import Compiled

LINES = "part int, quantity int"
PARTS = "id int, brand string, name string"
SMALL_ORDERS = (
    "SELECT sum(l.quantity) AS quantity FROM lines l, parts p WHERE p.id = l.part"
    " AND p.brand = 'red' AND l.quantity < (SELECT 0.5 * avg(i.quantity) FROM lines i"
    " WHERE i.part = {key})"
)


def kept_groups(view: Compiled) -> list[bool]:
    """For each hidden table: whether its rows are joined with the needed keys before grouping."""
    return [
        any(isinstance(node, SemiJoin) for node in walk(hidden))
        for hidden in view.hidden
        if isinstance(hidden, Aggregate)
    ]


def test_only_parts_of_the_brand_ask_for_their_average() -> None:
    view = View(
        SMALL_ORDERS.format(key="p.id"),
        lines=(LINES, [(1, 2), (1, 10), (2, 1), (2, 9)]),
        parts=(PARTS, [(1, "red", "a"), (2, "blue", "b")]),
    )
    assert kept_groups(view.compiled) == [True]
    assert view.rows == [(2,)]
    view.insert("lines", (1, 1), (2, 1))
    assert view.rows == [(1 + 2,)]
    # The lines existed before; now the view needs their average.
    view.update("parts", (2, "blue", "b"), (2, "red", "b"))
    assert view.rows == [(1 + 2 + 1 + 1,)]
    view.delete("parts", (1, "red", "a"))
    assert view.rows == [(2,)]


def test_who_asks_may_be_told_by_an_equality_of_the_join() -> None:
    view = compiled(SMALL_ORDERS.format(key="l.part"), lines=LINES, parts=PARTS)
    assert kept_groups(view) == [True]


def test_who_asks_may_be_told_by_in() -> None:
    view = View(
        "SELECT quantity FROM lines l WHERE part IN (SELECT id FROM parts WHERE name LIKE 'a%')"
        " AND quantity >= (SELECT max(i.quantity) FROM lines i WHERE i.part = l.part)",
        lines=(LINES, [(1, 2), (1, 10), (2, 1)]),
        parts=(PARTS, [(1, "red", "ax"), (2, "blue", "bolt")]),
    )
    assert kept_groups(view.compiled) == [True]
    assert view.rows == [(10,)]
    view.change(lines=([(1, 10)], [(2, 5)]), parts=([], [(2, "blue", "anvil")]))
    assert view.rows == [(2,), (5,)]


def test_groups_without_rows_are_asked_for_too() -> None:
    view = View(
        "SELECT p.id, (SELECT count(*) FROM lines l WHERE l.part = p.id) AS lines"
        " FROM parts p WHERE p.brand = 'red'",
        lines=(LINES, [(2, 1)]),
        parts=(PARTS, [(1, "red", "a"), (None, "red", "b")]),
    )
    assert kept_groups(view.compiled) == [True]
    assert view.rows == [(None, 0), (1, 0)]
    view.insert("lines", (1, 5), (None, 5))
    assert view.rows == [(None, 0), (1, 1)]


def test_a_table_of_groups_that_is_joined_is_asked_as_well() -> None:
    view = compiled(
        "SELECT p.name, g.total FROM parts p JOIN (SELECT part, sum(quantity) AS total FROM lines"
        " GROUP BY part) g ON g.part = p.id WHERE p.brand = 'red'",
        lines=LINES,
        parts=PARTS,
    )
    assert kept_groups(view) == [True]


def test_a_range_leaves_too_many_to_be_worth_it() -> None:
    query = SMALL_ORDERS.format(key="p.id").replace("p.brand = 'red'", "p.brand > 'red'")
    assert kept_groups(compiled(query, lines=LINES, parts=PARTS)) == [False]


def test_equality_is_not_handed_on_between_types() -> None:
    """'1' = 1 and 1 = '01' are true, '1' = '01' is not."""
    view = View(
        "SELECT l.quantity FROM lines l, parts p WHERE p.id = l.part AND p.brand = 'red'"
        " AND l.quantity <= (SELECT max(i.quantity) FROM texts i WHERE i.part = l.part)",
        lines=(LINES, [(1, 2)]),
        texts=("part string, quantity int", [("1", 3), ("2", 9)]),
        parts=("id string, brand string", [("01", "red")]),
    )
    assert kept_groups(view.compiled) == [False]
    assert view.rows == [(2,)]


def test_groups_that_are_read_twice_stay_one_table() -> None:
    view = compiled(
        "WITH totals AS (SELECT part, sum(quantity) AS total FROM lines GROUP BY part)"
        " SELECT t.total FROM totals t JOIN parts p ON p.id = t.part"
        " WHERE p.brand = 'red' AND t.total = (SELECT max(total) FROM totals)",
        lines=LINES,
        parts=PARTS,
    )
    assert kept_groups(view) == [False, False]
