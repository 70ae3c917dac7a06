"""INTERSECT and EXCEPT: the copies of a row on each side decide how many copies result."""

from itertools import pairwise

import pytest
from scenario import View


def both(word: str, left: int, right: int) -> View:
    """A set operation over these numbers of copies of one row, among other rows."""
    return View(
        f"SELECT a, b FROM l {word} SELECT a, b FROM r",
        l=("a int, b string", [(1, None)] * left + [(2, "left")]),
        r=("a int, b string", [(1, None)] * right + [(3, "right")]),
    )


def copies(view: View) -> int:
    """How many copies of the row the view has. NULLs are equal here."""
    return view.rows.count((1, None))


# word, copies on the left and on the right -> copies in the result
COUNTS = {
    "INTERSECT": lambda left, right: int(left > 0 and right > 0),
    "INTERSECT ALL": min,
    "EXCEPT": lambda left, right: int(left > 0 and right == 0),
    "EXCEPT ALL": lambda left, right: max(left - right, 0),
}


@pytest.mark.parametrize("word", COUNTS)
def test_every_count_to_every_other(word: str) -> None:
    steps = [(0, 0), (1, 0), (1, 1), (3, 1), (3, 2), (0, 2), (2, 2), (2, 0), (1, 3), (0, 0)]
    view = both(word, *steps[0])
    for (old_left, old_right), (left, right) in pairwise(steps):
        row = (1, None)
        view.change(
            l=([row] * max(old_left - left, 0), [row] * max(left - old_left, 0)),
            r=([row] * max(old_right - right, 0), [row] * max(right - old_right, 0)),
        )
        assert copies(view) == COUNTS[word](left, right), f"{left} {word} {right}"


def test_a_row_that_goes_and_comes_back_at_once() -> None:
    view = both("EXCEPT", 1, 0)
    view.change(l=([(1, None)], [(1, None)]), r=([(3, "right")], [(2, "left")]))
    assert view.rows == [(1, None)]


def test_they_bind_as_in_the_standard() -> None:
    view = View(
        "SELECT a FROM r EXCEPT SELECT a FROM s INTERSECT SELECT a FROM t",
        r=("a int", [(1,), (2,), (2,)]),
        s=("a int", [(1,), (2,)]),
        t=("a int", [(1,)]),
    )
    assert view.rows == [(2,)]
    view.change(s=([(2,)], []), t=([(1,)], [(2,)]))
    assert view.rows == [(1,), (2,)]


def test_a_set_operation_inside_of_a_query() -> None:
    view = View(
        "SELECT count(*) AS n, min(a) AS least FROM (SELECT a FROM l EXCEPT SELECT a FROM r) AS q",
        l=("a int", [(1,), (1,), (2,), (None,)]),
        r=("a int", [(1,)]),
    )
    assert view.rows == [(2, 2)]
    view.change(l=([(2,)], []), r=([(1,)], [(None,)]))
    assert view.rows == [(1, 1)]
