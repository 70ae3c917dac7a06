"""The first rows in an order: kept at the top of a view, computed twice inside of one."""

from scenario import View, compiled

from springhouse.views.delta.statement import Leading, Top

SCORES = "name string, points int"


def best(query: str, rows: list[tuple[str | None, int | None]]) -> View:
    return View(query, scores=(SCORES, rows))


THREE = [("ann", 30), ("bob", 20), ("cid", 10)]
TOP_TWO = "SELECT name, points FROM scores ORDER BY points DESC, name LIMIT 2"


def test_a_better_row_pushes_out_the_last() -> None:
    view = best(TOP_TWO, THREE)
    assert view.rows == [("ann", 30), ("bob", 20)]
    view.insert("scores", ("dan", 25), ("eva", 1))
    assert view.rows == [("ann", 30), ("dan", 25)]


def test_the_next_row_takes_the_place_of_one_that_goes() -> None:
    view = best(TOP_TWO, THREE)
    view.delete("scores", ("ann", 30))
    assert view.rows == [("bob", 20), ("cid", 10)]
    view.delete("scores", ("cid", 10))
    assert view.rows == [("bob", 20)]
    view.insert("scores", ("fay", 5))
    assert view.rows == [("bob", 20), ("fay", 5)]


def test_ties_are_broken_by_the_rest_of_the_order() -> None:
    view = best(TOP_TWO, [("bob", 20), ("cid", 20), ("dan", 20)])
    assert view.rows == [("bob", 20), ("cid", 20)]
    view.insert("scores", ("abe", 20))
    assert view.rows == [("abe", 20), ("bob", 20)]
    view.delete("scores", ("abe", 20))
    assert view.rows == [("bob", 20), ("cid", 20)]


def test_copies_take_a_place_each() -> None:
    view = best(TOP_TWO, [("ann", 30), ("ann", 30), ("bob", 20)])
    assert view.rows == [("ann", 30), ("ann", 30)]
    view.delete("scores", ("ann", 30))
    assert view.rows == [("ann", 30), ("bob", 20)]
    view.insert("scores", ("cid", 40), ("cid", 40))
    assert view.rows == [("cid", 40), ("cid", 40)]


def test_null_comes_first_in_ascending_order_and_last_in_descending() -> None:
    rows = [("ann", None), ("bob", 20), ("cid", 10)]
    assert best("SELECT name FROM scores ORDER BY points LIMIT 1", rows).rows == [("ann",)]
    assert best("SELECT name FROM scores ORDER BY points DESC LIMIT 1", rows).rows == [("bob",)]
    view = best("SELECT name FROM scores ORDER BY points NULLS LAST LIMIT 2", rows)
    view.delete("scores", ("bob", 20))
    assert view.rows == [("ann",), ("cid",)]


def test_what_orders_the_rows_need_not_be_selected() -> None:
    view = best("SELECT name FROM scores ORDER BY points DESC, name LIMIT 2", THREE)
    assert view.rows == [("ann",), ("bob",)]
    view.update("scores", ("cid", 10), ("cid", 25))
    assert view.rows == [("ann",), ("cid",)]
    (step,) = view.compiled.build
    assert step.layout.visible == ("name",)
    assert step.layout.hidden == ("__springhouse_order_key",)


def test_an_offset_passes_over_the_first() -> None:
    view = best("SELECT name FROM scores ORDER BY points DESC LIMIT 1 OFFSET 1", THREE)
    assert view.rows == [("bob",)]
    view.insert("scores", ("zoe", 99))
    assert view.rows == [("ann",)]
    view.delete("scores", ("ann", 30), ("bob", 20), ("cid", 10))
    assert view.rows == []


def test_groups_in_an_order() -> None:
    view = best(
        "SELECT name, sum(points) AS total FROM scores GROUP BY name ORDER BY total DESC LIMIT 1",
        THREE,
    )
    assert view.rows == [("ann", 30)]
    view.insert("scores", ("cid", 21))
    assert view.rows == [("cid", 31)]
    view.delete("scores", ("cid", 21))
    assert view.rows == [("ann", 30)]


def test_a_limit_inside_of_a_query() -> None:
    view = best(f"SELECT sum(points) AS total FROM ({TOP_TWO}) AS best", THREE)
    assert view.rows == [(50,)]
    view.change(scores=([("ann", 30)], [("dan", 12)]))
    assert view.rows == [(32,)]


def test_all_rows_are_asked_only_when_a_stored_one_is_gone() -> None:
    view = compiled(TOP_TWO, scores=SCORES)
    (step,) = view.refresh(frozenset({"scores"})).steps
    assert isinstance(step, Top)
    assert step.candidates is not None
    assert {reading.name for reading in step.candidates.reads} == {"scores_change", "stored_rows"}
    (later,) = compiled(f"{TOP_TWO} OFFSET 3", scores=SCORES).build
    assert isinstance(later, Top)
    assert later.candidates is None


def test_what_rows_are_ordered_by_first_is_told_if_the_change_has_it() -> None:
    def leading(query: str) -> Leading | None:
        (*_, step) = compiled(query, scores=SCORES).refresh(frozenset({"scores"})).steps
        assert isinstance(step, Top)
        return step.leading

    change = (("scores_change", "points"),)
    assert leading(TOP_TWO) == Leading("points", change, descending=True, nulls_first=False)
    hidden = leading("SELECT name FROM scores ORDER BY points LIMIT 2")
    assert hidden == Leading("__springhouse_order_key", change, False, True)
    by_group = "SELECT name, sum(points) AS total FROM scores GROUP BY name ORDER BY total LIMIT 1"
    assert leading(by_group) == Leading(
        "total", (("scores_by_name_change", "sum_points"),), descending=False, nulls_first=True
    )
    assert leading("SELECT name, -points AS p FROM scores ORDER BY p LIMIT 2") is None
    assert leading(f"{TOP_TWO} OFFSET 1") is None
