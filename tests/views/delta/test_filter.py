"""Filters, projections and generators: each row on its own."""

from scenario import View, compiled

from springhouse.views.delta.statement import Bag, RelationKind

NUMBERS = "k int, a int"


def test_rows_come_and_go_with_those_that_meet_the_condition() -> None:
    view = View("SELECT k FROM t WHERE a > 1", t=(NUMBERS, [(1, 1), (2, 2)]))
    assert view.rows == [(2,)]
    view.insert("t", (3, 3), (4, 0))
    assert view.rows == [(2,), (3,)]
    view.delete("t", (2, 2), (1, 1))
    assert view.rows == [(3,)]


def test_an_update_moves_a_row_in_and_out() -> None:
    view = View("SELECT k FROM t WHERE a > 1", t=(NUMBERS, [(1, 1)]))
    view.update("t", (1, 1), (1, 5))
    assert view.rows == [(1,)]
    view.update("t", (1, 5), (1, 0))
    assert view.rows == []


def test_an_unknown_condition_keeps_no_row_and_neither_does_its_opposite() -> None:
    view = View("SELECT k FROM t WHERE NOT (a > 1 AND k > 0)", t=(NUMBERS, [(1, None), (0, None)]))
    assert view.rows == [(0,)]
    view.insert("t", (2, None), (None, 0), (None, None))
    assert view.rows == [(None,), (0,)]


def test_a_row_is_there_as_often_as_it_was_inserted() -> None:
    view = View("SELECT a FROM t", t=(NUMBERS, [(1, 7), (1, 7), (2, 7)]))
    assert view.rows == [(7,), (7,), (7,)]
    view.delete("t", (1, 7))
    assert view.rows == [(7,), (7,)]
    view.delete("t", (2, 7))
    assert view.rows == [(7,)]


def test_computed_columns_can_be_computed_with_and_filtered_by() -> None:
    view = View(
        "SELECT b * 2 AS c FROM (SELECT a + 1 AS b FROM t) AS q WHERE b - 1 > 0",
        t=(NUMBERS, [(1, 1), (2, 0)]),
    )
    assert view.rows == [(4,)]
    view.insert("t", (3, 5))
    assert view.rows == [(4,), (12,)]


def test_a_row_is_there_once_for_each_element_of_its_array() -> None:
    view = View(
        "SELECT k, x FROM t LATERAL VIEW explode(xs) e AS x WHERE x > 1",
        t=("k int, xs array<int>", [(1, (1, 2, 2)), (2, ())]),
    )
    assert view.rows == [(1, 2), (1, 2)]
    view.insert("t", (3, (5, None)), (4, None))
    assert view.rows == [(1, 2), (1, 2), (3, 5)]
    view.delete("t", (1, (1, 2, 2)), (2, ()))
    assert view.rows == [(3, 5)]


def test_a_generator_may_stand_in_the_select_list() -> None:
    view = View("SELECT k, explode(array(a, k)) AS x FROM t", t=(NUMBERS, [(1, 7)]))
    assert view.rows == [(1, 1), (1, 7)]
    view.update("t", (1, 7), (2, None))
    assert view.rows == [(2, None), (2, 2)]


def test_elements_can_be_counted() -> None:
    view = View(
        "SELECT x, count(*) AS n FROM t LATERAL VIEW explode(array(k, a)) e AS x GROUP BY x",
        t=(NUMBERS, [(1, 1), (1, 2)]),
    )
    assert view.rows == [(1, 3), (2, 1)]
    view.delete("t", (1, 2))
    assert view.rows == [(1, 2)]


def test_rows_that_the_query_spells_out_never_change() -> None:
    view = View(
        "SELECT k, word FROM t JOIN (VALUES (1, 'one'), (2, 'two')) AS w(n, word) ON k = n",
        t=(NUMBERS, [(1, 0)]),
    )
    assert view.rows == [(1, "one")]
    view.insert("t", (2, 0), (3, 0))
    assert view.rows == [(1, "one"), (2, "two")]


def test_nothing_but_the_change_is_read() -> None:
    for query in (
        "SELECT k + 1 AS l FROM t WHERE a > 1",
        "SELECT k, x FROM t LATERAL VIEW OUTER explode(array(a)) e AS x",
    ):
        (step,) = compiled(query, t=NUMBERS).refresh(frozenset({"t"})).steps
        assert isinstance(step, Bag)
        assert {reading.kind for reading in step.change.reads} == {RelationKind.CHANGE}
