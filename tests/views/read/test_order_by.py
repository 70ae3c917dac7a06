"""ORDER BY refers to the selected names first, and to columns otherwise."""

from scenario import View, schema

from springhouse.views.algebra.query_tree import Projection, TopK
from springhouse.views.read.parse_query import parse

SCORES = "name string, points int"
ROWS = [("ann", 30), ("bob", 20), ("cid", 10)]


def best(query: str) -> View:
    return View(query, scores=(SCORES, ROWS))


def test_what_is_selected_under_a_name_wins_over_the_column_of_that_name() -> None:
    # This is Spark's rule. In DuckDB a name inside of an expression means the column.
    root = parse(
        "SELECT name, -points AS points FROM scores ORDER BY points + 1 LIMIT 1",
        {"scores": schema(SCORES)},
    ).root
    assert isinstance(root, Projection)
    assert isinstance(root.child, TopK)
    assert isinstance(root.child.child, Projection)
    outputs = dict(root.child.child.outputs)
    assert outputs["order_key"].sql() == "-points + 1"


def test_an_order_by_a_place() -> None:
    view = best("SELECT name, points FROM scores ORDER BY 2 LIMIT 1")
    assert view.rows == [("cid", 10)]
    view.insert("scores", ("dan", 5))
    assert view.rows == [("dan", 5)]


def test_an_order_by_what_is_computed_from_an_alias() -> None:
    view = best("SELECT name, points % 20 AS rest FROM scores ORDER BY -rest, name LIMIT 1")
    assert view.rows == [("ann", 10)]
    view.insert("scores", ("dan", 19))
    assert view.rows == [("dan", 19)]


def test_an_order_by_a_window_function() -> None:
    view = best(
        "SELECT name FROM scores ORDER BY count(*) OVER (PARTITION BY points) DESC, name LIMIT 2"
    )
    assert view.rows == [("ann",), ("bob",)]
    view.insert("scores", ("dan", 10))
    assert view.rows == [("cid",), ("dan",)]


def test_an_order_by_the_value_of_a_subquery() -> None:
    view = best(
        "SELECT name FROM scores ORDER BY abs(points - (SELECT max(points) FROM scores) + 10),"
        " name LIMIT 1"
    )
    assert view.rows == [("bob",)]
    view.insert("scores", ("dan", 40))
    assert view.rows == [("ann",)]
