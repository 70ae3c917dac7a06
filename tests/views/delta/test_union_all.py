"""UNION ALL: the changes of all children together."""

from scenario import View, compiled

from springhouse.views.delta.statement import Bag, RelationKind

NUMBERS = "k int, a int"


def test_rows_of_both_sides_come_and_go() -> None:
    view = View(
        "SELECT k FROM r UNION ALL SELECT a FROM t",
        r=(NUMBERS, [(1, 0)]),
        t=(NUMBERS, [(0, 1), (0, None)]),
    )
    assert view.rows == [(None,), (1,), (1,)]
    view.change(r=([(1, 0)], [(2, 0)]), t=([(0, None)], []))
    assert view.rows == [(1,), (2,)]


def test_a_table_twice() -> None:
    view = View(
        "SELECT k FROM t UNION ALL SELECT a FROM t WHERE a > 1", t=(NUMBERS, [(1, 1), (2, 2)])
    )
    assert view.rows == [(1,), (2,), (2,)]
    view.update("t", (2, 2), (3, 4))
    assert view.rows == [(1,), (3,), (4,)]


def test_union_keeps_a_row_until_its_last_copy_goes() -> None:
    view = View(
        "SELECT k FROM r UNION SELECT k FROM t",
        r=(NUMBERS, [(1, 0), (1, 1), (None, 0)]),
        t=(NUMBERS, [(1, 0), (None, 5)]),
    )
    assert view.rows == [(None,), (1,)]
    view.delete("r", (1, 0), (1, 1), (None, 0))
    assert view.rows == [(None,), (1,)]
    view.delete("t", (1, 0), (None, 5))
    assert view.rows == []


def test_an_untyped_null_has_the_type_of_its_column() -> None:
    view = View(
        "SELECT k, word FROM w UNION ALL SELECT k, NULL FROM t",
        w=("k int, word string", [(1, "one")]),
        t=(NUMBERS, []),
    )
    view.insert("t", (2, 0))
    assert view.rows == [(1, "one"), (2, None)]
    view.change(w=([(1, "one")], [(3, "three")]), t=([(2, 0)], []))
    assert view.rows == [(3, "three")]


def test_rows_of_which_no_column_is_asked() -> None:
    view = View(
        "SELECT count(*) AS n FROM (SELECT k FROM r UNION ALL SELECT a FROM t) AS u",
        r=(NUMBERS, [(1, 0)]),
        t=(NUMBERS, [(1, 0), (1, 0)]),
    )
    assert view.rows == [(3,)]
    view.change(r=([(1, 0)], []), t=([(1, 0)], []))
    assert view.rows == [(1,)]


def test_no_column_is_asked_of_a_full_join() -> None:
    view = View(
        "SELECT 'row' AS what FROM r FULL OUTER JOIN t ON r.k < t.k",
        r=(NUMBERS, [(1, 0)]),
        t=(NUMBERS, [(0, 0)]),
    )
    assert view.rows == [("row",), ("row",)]
    view.update("t", (0, 0), (2, 0))
    assert view.rows == [("row",)]


def test_nothing_but_changes_is_read() -> None:
    view = compiled("SELECT k FROM r UNION ALL SELECT a FROM t", r=NUMBERS, t=NUMBERS)
    (step,) = view.refresh(frozenset({"r", "t"})).steps
    assert isinstance(step, Bag)
    assert {reading.kind for reading in step.change.reads} == {RelationKind.CHANGE}
