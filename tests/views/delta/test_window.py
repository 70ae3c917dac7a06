"""Window functions: a change recomputes the partitions that it touches."""

from scenario import View, compiled, read

from springhouse.views.delta.statement import Bag

SALES = "shop string, day int, amount int"


def sales(function: str, rows: list[tuple[str | None, int, int]]) -> View:
    return View(f"SELECT shop, day, {function} AS f FROM sales", sales=(SALES, rows))


def test_a_rank_moves_when_a_row_comes_in_front_of_it() -> None:
    view = sales(
        "row_number() OVER (PARTITION BY shop ORDER BY amount DESC, day)",
        [("a", 1, 10), ("a", 2, 20), ("b", 1, 5)],
    )
    assert view.rows == [("a", 1, 2), ("a", 2, 1), ("b", 1, 1)]
    view.insert("sales", ("a", 3, 15))
    assert view.rows == [("a", 1, 3), ("a", 2, 1), ("a", 3, 2), ("b", 1, 1)]
    view.delete("sales", ("a", 2, 20))
    assert view.rows == [("a", 1, 2), ("a", 3, 1), ("b", 1, 1)]


def test_ties_share_a_rank() -> None:
    view = sales("rank() OVER (PARTITION BY shop ORDER BY amount)", [("a", 1, 5), ("a", 2, 5)])
    assert view.rows == [("a", 1, 1), ("a", 2, 1)]
    view.insert("sales", ("a", 3, 6), ("a", 4, 4))
    assert view.rows == [("a", 1, 2), ("a", 2, 2), ("a", 3, 4), ("a", 4, 1)]


def test_a_partition_of_null_empties_and_comes_back() -> None:
    view = sales("count(*) OVER (PARTITION BY shop)", [(None, 1, 1), ("a", 1, 1)])
    assert view.rows == [(None, 1, 1), ("a", 1, 1)]
    view.delete("sales", (None, 1, 1))
    assert view.rows == [("a", 1, 1)]
    view.insert("sales", (None, 1, 1), (None, 2, 1))
    assert view.rows == [(None, 1, 2), (None, 2, 2), ("a", 1, 1)]


def test_without_partitions_all_rows_are_one() -> None:
    view = sales("sum(amount) OVER (ORDER BY day)", [("a", 1, 10), ("b", 2, 20)])
    assert view.rows == [("a", 1, 10), ("b", 2, 30)]
    view.update("sales", ("a", 1, 10), ("a", 1, 11))
    assert view.rows == [("a", 1, 11), ("b", 2, 31)]


def test_a_frame_of_neighbours() -> None:
    view = sales(
        "sum(amount) OVER (PARTITION BY shop ORDER BY day"
        " ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
        [("a", 1, 1), ("a", 3, 4)],
    )
    assert view.rows == [("a", 1, 1), ("a", 3, 5)]
    view.insert("sales", ("a", 2, 2))
    assert view.rows == [("a", 1, 1), ("a", 2, 3), ("a", 3, 6)]


def test_the_row_before() -> None:
    view = sales("lag(amount) OVER (PARTITION BY shop ORDER BY day)", [("a", 1, 1), ("a", 2, 2)])
    view.delete("sales", ("a", 1, 1))
    assert view.rows == [("a", 2, None)]


def test_a_row_that_moves_to_another_partition_touches_both() -> None:
    view = sales("sum(amount) OVER (PARTITION BY shop)", [("a", 1, 1), ("a", 2, 2), ("b", 1, 4)])
    view.update("sales", ("a", 2, 2), ("b", 2, 2))
    assert view.rows == [("a", 1, 1), ("b", 1, 6), ("b", 2, 6)]


def test_several_windows_over_different_partitions() -> None:
    view = sales(
        "count(*) OVER (PARTITION BY shop) * 100 + count(*) OVER (PARTITION BY day)",
        [("a", 1, 0), ("a", 2, 0), ("b", 1, 0)],
    )
    assert view.rows == [("a", 1, 202), ("a", 2, 201), ("b", 1, 102)]
    view.insert("sales", ("b", 2, 0))
    assert view.rows == [("a", 1, 202), ("a", 2, 202), ("b", 1, 202), ("b", 2, 202)]


def test_only_the_best_of_each_partition() -> None:
    view = View(
        "SELECT shop, day FROM sales"
        " QUALIFY row_number() OVER (PARTITION BY shop ORDER BY amount DESC, day) = 1",
        sales=(SALES, [("a", 1, 10), ("a", 2, 20), ("b", 1, 5)]),
    )
    assert view.rows == [("a", 2), ("b", 1)]
    view.change(sales=([("a", 2, 20)], [("b", 2, 6)]))
    assert view.rows == [("a", 1), ("b", 2)]


def test_a_window_over_groups() -> None:
    view = View(
        "SELECT shop, sum(amount) AS total, rank() OVER (ORDER BY sum(amount) DESC) AS place"
        " FROM sales GROUP BY shop",
        sales=(SALES, [("a", 1, 10), ("b", 1, 5)]),
    )
    assert view.rows == [("a", 10, 1), ("b", 5, 2)]
    view.insert("sales", ("b", 2, 7))
    assert view.rows == [("a", 10, 2), ("b", 12, 1)]


def test_a_named_window() -> None:
    view = View(
        "SELECT day, sum(amount) OVER w AS total FROM sales WINDOW w AS (PARTITION BY shop)",
        sales=(SALES, [("a", 1, 10), ("a", 2, 5)]),
    )
    assert view.rows == [(1, 15), (2, 15)]
    view.delete("sales", ("a", 1, 10))
    assert view.rows == [(2, 5)]


def test_only_files_with_touched_partitions_need_be_read() -> None:
    ranked = compiled("SELECT rank() OVER (PARTITION BY shop ORDER BY day) AS n FROM t", t=SALES)
    (step,) = ranked.refresh(frozenset({"t"})).steps
    assert isinstance(step, Bag)
    reads = read(step.change)
    for side in ("t_before", "t_after"):
        (near,) = reads[side].near
        assert (near.column, near.among) == ("shop", (("t_change", "shop"),))
