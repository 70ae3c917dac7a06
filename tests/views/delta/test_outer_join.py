"""Outer joins: rows that lose their last partner, and rows that find their first."""

from scenario import View

LEFT = "a int, x string"
RIGHT = "b int, y string"
JOINED = "SELECT x, y FROM l LEFT JOIN r ON a = b"


def pairs(query: str = JOINED) -> View:
    return View(
        query,
        l=(LEFT, [(1, "one"), (2, "two"), (None, "none")]),
        r=(RIGHT, [(1, "uno"), (3, "tre"), (None, "nada")]),
    )


def test_a_row_that_loses_its_last_partner_stays_with_nulls() -> None:
    view = pairs()
    assert view.rows == [("none", None), ("one", "uno"), ("two", None)]
    view.delete("r", (1, "uno"))
    assert view.rows == [("none", None), ("one", None), ("two", None)]


def test_a_row_that_finds_its_first_partner_loses_its_nulls() -> None:
    view = pairs()
    view.insert("r", (2, "due"), (2, "dos"))
    assert view.rows == [("none", None), ("one", "uno"), ("two", "dos"), ("two", "due")]
    view.delete("r", (2, "due"))
    assert view.rows == [("none", None), ("one", "uno"), ("two", "dos")]


def test_one_partner_for_another() -> None:
    view = pairs()
    view.update("r", (1, "uno"), (1, "eins"))
    assert view.rows == [("none", None), ("one", "eins"), ("two", None)]


def test_null_is_no_partner_of_null() -> None:
    view = pairs()
    view.insert("r", (None, "nichts"))
    assert ("none", None) in view.rows
    view.insert("l", (None, "none"))
    assert view.rows.count(("none", None)) == 2


def test_both_sides_change_at_once() -> None:
    view = pairs()
    view.change(l=([(1, "one")], [(3, "three"), (4, "four")]), r=([(3, "tre")], [(4, "quattro")]))
    assert view.rows == [("four", "quattro"), ("none", None), ("three", None), ("two", None)]


def test_a_null_of_the_right_side_is_not_the_lack_of_a_partner() -> None:
    view = View("SELECT x, y FROM l LEFT JOIN r ON a = b", l=(LEFT, [(1, "one")]), r=(RIGHT, []))
    view.insert("r", (1, None), (1, None))
    assert view.rows == [("one", None), ("one", None)]
    view.delete("r", (1, None))
    assert view.rows == [("one", None)]


def test_a_condition_on_the_kept_side_drops_no_row() -> None:
    view = pairs(f"{JOINED} AND x <> 'one'")
    assert view.rows == [("none", None), ("one", None), ("two", None)]
    view.insert("r", (2, "due"))
    assert view.rows == [("none", None), ("one", None), ("two", "due")]


def test_a_condition_on_the_other_side_only_drops_partners() -> None:
    view = pairs(f"{JOINED} AND y <> 'uno'")
    assert view.rows == [("none", None), ("one", None), ("two", None)]
    view.insert("r", (1, "eins"))
    assert ("one", "eins") in view.rows


def test_a_partner_by_inequality() -> None:
    view = pairs("SELECT x, y FROM l LEFT JOIN r ON a < b")
    assert view.rows == [("none", None), ("one", "tre"), ("two", "tre")]
    view.update("r", (3, "tre"), (2, "due"))
    assert view.rows == [("none", None), ("one", "due"), ("two", None)]


def test_a_right_join_keeps_the_other_side() -> None:
    view = pairs("SELECT x, y FROM l RIGHT JOIN r ON a = b")
    assert view.rows == [(None, "nada"), (None, "tre"), ("one", "uno")]
    view.change(l=([(1, "one")], [(3, "three")]))
    assert view.rows == [(None, "nada"), (None, "uno"), ("three", "tre")]


def test_a_full_join_keeps_both() -> None:
    view = pairs("SELECT x, y FROM l FULL OUTER JOIN r ON a = b")
    assert view.rows == [
        *[(None, "nada"), (None, "tre")],
        *[("none", None), ("one", "uno"), ("two", None)],
    ]
    view.change(l=([(1, "one")], []), r=([(3, "tre")], [(2, "due")]))
    assert view.rows == [(None, "nada"), (None, "uno"), ("none", None), ("two", "due")]


def test_the_shared_column_of_a_full_join_is_whichever_is_there() -> None:
    view = View(
        "SELECT k, a, b FROM r FULL OUTER JOIN t USING (k)",
        r=("k int, a int", [(1, 10)]),
        t=("k int, b int", [(2, 20)]),
    )
    assert view.rows == [(1, 10, None), (2, None, 20)]
    view.insert("t", (1, 11))
    assert view.rows == [(1, 10, 11), (2, None, 20)]


def test_outer_joins_on_top_of_each_other() -> None:
    view = View(
        "SELECT x, y, z FROM l LEFT JOIN r ON a = b LEFT JOIN s ON y = z",
        l=(LEFT, [(1, "one")]),
        r=(RIGHT, []),
        s=("z string", [("uno",)]),
    )
    assert view.rows == [("one", None, None)]
    view.insert("r", (1, "uno"), (1, "eins"))
    assert view.rows == [("one", "eins", None), ("one", "uno", "uno")]
    view.change(r=([(1, "uno")], []), s=([("uno",)], [("eins",), ("eins",)]))
    assert view.rows == [("one", "eins", "eins")] * 2


def test_a_table_joined_with_itself() -> None:
    view = View(
        "SELECT x.k, y.k AS boss FROM t x LEFT JOIN t y ON x.boss = y.k",
        t=("k int, boss int", [(1, None), (2, 1)]),
    )
    assert view.rows == [(1, None), (2, 1)]
    view.change(t=([(1, None)], [(3, 2)]))
    assert view.rows == [(2, None), (3, 2)]


def test_groups_over_an_outer_join() -> None:
    view = View(
        "SELECT x, count(y) AS partners, max(y) AS last FROM l LEFT JOIN r ON a = b GROUP BY x",
        l=(LEFT, [(1, "one"), (2, "two")]),
        r=(RIGHT, [(1, "uno")]),
    )
    assert view.rows == [("one", 1, "uno"), ("two", 0, None)]
    view.change(r=([(1, "uno")], [(2, "due"), (2, "dos")]))
    assert view.rows == [("one", 0, None), ("two", 2, "due")]


def test_the_keys_of_the_partners_are_a_hidden_table() -> None:
    view = pairs()
    assert list(view.compiled.hidden.values()) == ["r_by_b"]
    assert not pairs("SELECT x, y FROM l LEFT JOIN r ON a < b").compiled.hidden
