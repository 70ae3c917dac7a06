"""Views that Spark and the lake refresh incrementally: always equal to their recomputation."""

import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from springhouse.errors import LakeError
from springhouse.lake.views.compiled_plans import NotIncremental, compiled_view
from springhouse.planner.placement import COMPILED_ROWS
from springhouse.planner.way.choose_way import STATE_ROWS
from springhouse.warehouse import Warehouse

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[1] / "views")]

from base_table import BaseTable, declaration, refresh
from random_cases import case, describe

from warehouse import bag

ORDERS = "id INT, customer INT, amount DECIMAL(12,2)"
CUSTOMERS = "id INT, country STRING"
CASES = 100
"""How many random cases go through Spark."""

INCREMENTAL = "TBLPROPERTIES ('springhouse.refresh' = 'incremental')"


class Shop:
    """A warehouse over tables that the test fills, and views that the test refreshes one by one."""

    def __init__(self, folder: Path, tables: Mapping[str, str]) -> None:
        self.warehouse = Warehouse(folder)
        self.tables = {name: BaseTable(self.warehouse, name, ddl) for name, ddl in tables.items()}

    def refresh(self, view: str, driver: str | None = None) -> str:
        """Refresh a view, and return the way that the refresh took."""
        refresh(self.warehouse, view, driver)
        return self.note(view).variant

    def is_incremental(self, view: str) -> bool:
        """Whether the compiler accepts the view."""
        declared = self.warehouse.project.views[view]
        schemas = {name: self.warehouse.internals.lake.open(name).schema for name in self.tables}
        return not isinstance(
            compiled_view(self.warehouse.project, declared, schemas, None), NotIncremental
        )

    def note(self, view: str) -> Any:
        newest = self.warehouse.internals.lake.log(view).newest()
        assert newest is not None
        return newest.note

    def stored(self, view: str) -> "Counter[tuple[Any, ...]]":
        """The rows that any reader of Delta sees."""
        return rows_of(self.warehouse.internals.lake.open(view).to_arrow())

    def recomputed(self, query: str) -> "Counter[tuple[Any, ...]]":
        """The rows of the query, computed by Spark from the rows of the tables."""
        quick = self.warehouse.internals.lake.spark.quick()
        for name, table in self.tables.items():
            quick.createDataFrame(table.table()).createOrReplaceTempView(name)
        return rows_of(quick.sql(query).toArrow())


def rows_of(table: pa.Table) -> "Counter[tuple[Any, ...]]":
    return bag(zip(*(column.to_pylist() for column in table.columns), strict=True))


@pytest.fixture
def shop(project: Callable[..., Path]) -> Callable[..., Shop]:
    """Opens a project with orders, customers and the views of a test."""

    def open_shop(views: str, tables: Mapping[str, str] | None = None) -> Shop:
        known = tables or {"orders": ORDERS, "customers": CUSTOMERS}
        text = "".join(declaration(name, ddl) for name, ddl in known.items())
        return Shop(project(text + views), known)

    return open_shop


def order(id: int, customer: int | None, amount: str | None) -> tuple[Any, ...]:
    return (id, customer, None if amount is None else Decimal(amount))


BY_COUNTRY = """SELECT c.country, count(*) AS orders, sum(o.amount) AS revenue,
    min(o.amount) AS least FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.country"""


def test_a_join_and_its_groups_follow_every_change(shop: Callable[..., Shop]) -> None:
    open_shop = shop(f"CREATE MATERIALIZED VIEW v {INCREMENTAL} AS {BY_COUNTRY};")
    orders, customers = open_shop.tables["orders"], open_shop.tables["customers"]
    orders.load([order(1, 1, "5.00"), order(2, 2, "7.50"), order(3, None, "1.00")])
    customers.load([(1, "NL"), (2, "NL"), (3, None)])
    assert open_shop.refresh("v") == "full"
    scenes: list[Callable[[], None]] = [
        lambda: orders.append([order(4, 3, "2.25"), order(5, 1, None)]),
        lambda: orders.change([order(1, 1, "5.00")], []),  # the least of its group goes
        lambda: customers.change([(2, "NL")], [(2, "BE")]),
        lambda: orders.change([order(4, 3, "2.25")], []),  # a group empties
        lambda: orders.append([order(6, 3, "9.99")]),  # and comes back
        lambda: (customers.change([(3, None)], []), orders.append([order(7, 2, "0.01")])),  # type: ignore[list-item]
    ]
    for scene in scenes:
        scene()
        assert open_shop.refresh("v") == "incremental"
        assert open_shop.stored("v") == open_shop.recomputed(BY_COUNTRY)
    assert list(
        DeltaTable(open_shop.warehouse.internals.lake.place("v").root).schema().to_arrow().names
    ) == [*("country", "orders", "revenue", "least")]


def test_many_changed_rows_go_through_compiled_code(shop: Callable[..., Shop]) -> None:
    open_shop = shop(f"CREATE MATERIALIZED VIEW v {INCREMENTAL} AS {BY_COUNTRY};")
    orders, customers = open_shop.tables["orders"], open_shop.tables["customers"]
    orders.load([order(i, i % 50, f"{i % 90}.25") for i in range(200)])
    customers.load([(i, ("NL", "BE", None)[i % 3]) for i in range(40)])
    open_shop.refresh("v")
    for first in (1_000, 10_000):
        orders.append(
            [order(i, i % 60, f"{i % 70}.75") for i in range(first, first + COMPILED_ROWS)]
        )
        assert open_shop.refresh("v") == "incremental"
        assert open_shop.stored("v") == open_shop.recomputed(BY_COUNTRY)


def test_few_changed_rows_that_everything_refers_to_are_many(shop: Callable[..., Shop]) -> None:
    query = "SELECT o.id, o.amount, c.country FROM orders o JOIN customers c ON o.customer = c.id"
    open_shop = shop(f"CREATE MATERIALIZED VIEW v AS {query};")
    orders, customers = open_shop.tables["orders"], open_shop.tables["customers"]
    orders.load([order(number, number % 50, "1.00") for number in range(STATE_ROWS)])
    before = [(number, "NL") for number in range(50)]
    customers.load(before)
    assert open_shop.refresh("v") == "full"
    customers.change(before[:1], [(0, "BE")])
    assert open_shop.refresh("v") == "incremental"
    customers.change(customers.rows[:], [(number, "FR") for number in range(50)])
    assert open_shop.refresh("v") == "full"
    assert "100 changed, which become 300,000" in open_shop.note("v").why
    assert Counter(row[2] for row in open_shop.stored("v").elements()) == {"FR": STATE_ROWS}


def test_nothing_new_is_not_committed(shop: Callable[..., Shop]) -> None:
    open_shop = shop(f"CREATE MATERIALIZED VIEW v {INCREMENTAL} AS {BY_COUNTRY};")
    open_shop.tables["orders"].load([order(1, 1, "5.00")])
    open_shop.tables["customers"].load([(1, "NL")])
    open_shop.refresh("v")
    version = open_shop.warehouse.internals.lake.open("v").version
    open_shop.refresh("v")
    assert open_shop.warehouse.internals.lake.open("v").version == version


def test_a_change_that_the_view_does_not_see_moves_only_what_it_reflects(
    shop: Callable[..., Shop],
) -> None:
    query = "SELECT id FROM orders WHERE amount > 100"
    open_shop = shop(f"CREATE MATERIALIZED VIEW v {INCREMENTAL} AS {query};")
    orders = open_shop.tables["orders"]
    orders.load([order(1, 1, "500.00")])
    open_shop.tables["customers"].load([])
    open_shop.refresh("v")
    files = open_shop.warehouse.internals.lake.open("v").files
    orders.append([order(2, 1, "5.00")])
    assert open_shop.refresh("v") == "incremental"
    assert open_shop.warehouse.internals.lake.open("v").files == files
    assert open_shop.note("v").read == {"orders": 1}
    assert open_shop.note("v").changes == ()


def test_a_view_that_can_not_be_incremental_says_why(shop: Callable[..., Shop]) -> None:
    view = f"CREATE MATERIALIZED VIEW v {INCREMENTAL} AS\nSELECT id,\n  rand() AS dice FROM orders;"
    open_shop = shop(view)
    open_shop.tables["orders"].load([order(1, 1, "5.00")])
    with pytest.raises(LakeError) as caught:
        open_shop.refresh("v")
    assert str(caught.value) == (
        'transformations/all.sql:5: the view "v" asks for incremental refreshes, and can\'t have '
        "them: `rand` gives another value each time\n"
        "  hint: Set 'springhouse.refresh' = 'auto', or leave it out."
    )


def test_under_auto_it_is_recomputed_with_that_reason(shop: Callable[..., Shop]) -> None:
    open_shop = shop("CREATE MATERIALIZED VIEW v AS SELECT id, rand() AS dice FROM orders;")
    open_shop.tables["orders"].load([order(1, 1, "5.00")])
    assert open_shop.refresh("v") == "full"
    assert "`rand` gives another value each time" in open_shop.note("v").why


def test_full_is_always_full(shop: Callable[..., Shop]) -> None:
    full = "TBLPROPERTIES ('springhouse.refresh' = 'full')"
    open_shop = shop(f"CREATE MATERIALIZED VIEW v {full} AS SELECT count(*) AS n FROM orders;")
    orders = open_shop.tables["orders"]
    orders.load([order(1, 1, "5.00")])
    assert open_shop.refresh("v") == "full"
    orders.append([order(2, 1, "5.00")])
    assert open_shop.refresh("v") == "full"


@pytest.mark.parametrize("query", [BY_COUNTRY, "SELECT DISTINCT customer FROM orders"])
def test_hidden_columns_that_somebody_lost_are_rebuilt(
    shop: Callable[..., Shop], query: str
) -> None:
    open_shop = shop(f"CREATE MATERIALIZED VIEW v {INCREMENTAL} AS {query};")
    orders = open_shop.tables["orders"]
    orders.load([order(1, 1, "5.00"), order(2, 2, "7.50")])
    open_shop.tables["customers"].load([(1, "NL"), (2, "BE")])
    open_shop.refresh("v")
    orders.append([order(3, 2, "1.00")])
    assert open_shop.refresh("v") == "incremental"
    # Another engine rewrites the files. It does not know the hidden columns.
    place = open_shop.warehouse.internals.lake.place("v").root
    write_deltalake(place, DeltaTable(place).to_pyarrow_table(), mode="overwrite")
    orders.change([order(1, 1, "5.00")], [order(4, 1, "2.00")])
    assert open_shop.refresh("v") == "full"
    assert "hidden columns are lost" in open_shop.note("v").why
    assert open_shop.stored("v") == open_shop.recomputed(query)
    orders.append([order(5, 1, "3.00")])
    assert open_shop.refresh("v") == "incremental"
    assert open_shop.stored("v") == open_shop.recomputed(query)


def test_a_changed_definition_rebuilds_the_view(shop: Callable[..., Shop]) -> None:
    one = "SELECT customer, sum(amount) AS total FROM orders GROUP BY customer"
    open_shop = shop(f"CREATE MATERIALIZED VIEW v {INCREMENTAL} AS {one};")
    open_shop.tables["orders"].load([order(1, 1, "5.00"), order(2, 2, "7.50")])
    open_shop.refresh("v")
    other = one.replace("sum(amount)", "max(amount)")
    again = shop(f"CREATE MATERIALIZED VIEW v {INCREMENTAL} AS {other};")
    again.tables["orders"].rows = open_shop.tables["orders"].rows
    assert again.refresh("v") == "full"
    assert again.note("v").why == "its definition changed"
    assert again.stored("v") == again.recomputed(other)


# 004, Tables 1 to 3: crawled pages, joined with the click scores of their sites

PAGES = "url STRING, site STRING, digest STRING"
SCORES = "site STRING, score INT"
JOINED = "SELECT url, digest, score FROM pages JOIN scores ON pages.site = scores.site"


def test_an_asynchronous_join_is_that_of_the_paper(shop: Callable[..., Shop]) -> None:
    """004 Table 3: new pages get the current scores, and old pages keep their scores."""
    open_shop = shop(
        f"CREATE MATERIALIZED VIEW v {INCREMENTAL} AS {JOINED};",
        {"pages": PAGES, "scores": SCORES},
    )
    pages, scores = open_shop.tables["pages"], open_shop.tables["scores"]
    pages.load([])
    scores.load([("a.com", 18)])  # Mon 1am
    open_shop.refresh("v")
    pages.append([("a.com/x", "a.com", "d1")])  # Mon 8am
    assert open_shop.refresh("v", driver="pages") == "asynchronous"
    scores.change([("a.com", 18)], [("a.com", 21), ("b.com", 7)])  # Tue 1am
    pages.append([("a.com/y", "a.com", "d2")])  # Tue 11am
    open_shop.refresh("v", driver="pages")
    pages.append([("b.com/r", "b.com", "d3")])  # Tue 5pm
    open_shop.refresh("v", driver="pages")
    scores.change([("a.com", 21), ("b.com", 7)], [("a.com", 22), ("b.com", 14)])  # Wed 1am
    pages.append([("a.com/z", "a.com", "d4"), ("b.com/s", "b.com", "d5")])  # Wed 2pm
    open_shop.refresh("v", driver="pages")
    assert open_shop.stored("v") == bag(
        [
            ("a.com/x", "d1", 18),
            ("a.com/y", "d2", 21),
            ("b.com/r", "d3", 7),
            ("a.com/z", "d4", 22),
            ("b.com/s", "d5", 14),
        ]
    )
    # ⟨{Wed 2pm}, {Mon 1am, Tue 1am, Wed 1am}⟩: one snapshot holds three states of the scores.
    assert open_shop.note("v").after.reflected == {
        "pages": frozenset({4}),
        "scores": frozenset({0, 1, 2}),
    }
    # Only a batch refresh makes the view consistent again.
    assert open_shop.refresh("v") == "full"
    assert ("a.com/x", "d1", 22) in open_shop.stored("v")
    assert open_shop.note("v").after.reflected["scores"] == frozenset({2})


def test_what_can_not_drive_alone_says_why(shop: Callable[..., Shop]) -> None:
    open_shop = shop(
        f"CREATE MATERIALIZED VIEW v {INCREMENTAL} AS {JOINED};",
        {"pages": PAGES, "scores": SCORES},
    )
    pages, scores = open_shop.tables["pages"], open_shop.tables["scores"]
    pages.load([("a.com/x", "a.com", "d1")])
    scores.load([("a.com", 18)])
    open_shop.refresh("v")
    pages.change([("a.com/x", "a.com", "d1")], [])
    with pytest.raises(LakeError, match="rows of it were changed or deleted"):
        open_shop.refresh("v", driver="pages")
    with pytest.raises(LakeError, match="depends on more than its new rows"):
        open_shop.refresh("v", driver="other")


# Views over views


def chain(levels: int) -> str:
    """Views over views: each level is a diamond over the one below."""
    text = ""
    below = "orders"
    columns = "customer, amount"
    for level in range(1, levels + 1):
        text += (
            f"CREATE MATERIALIZED VIEW left_{level} {INCREMENTAL} AS "
            f"SELECT {columns} FROM {below} WHERE amount > {level};\n"
            f"CREATE MATERIALIZED VIEW right_{level} {INCREMENTAL} AS "
            f"SELECT customer, max(amount) AS top FROM {below} GROUP BY customer;\n"
            f"CREATE MATERIALIZED VIEW joined_{level} {INCREMENTAL} AS "
            f"SELECT l.customer, l.amount + r.top AS amount, count(*) AS n "
            f"FROM left_{level} l LEFT JOIN right_{level} r ON l.customer = r.customer "
            f"GROUP BY l.customer, l.amount + r.top;\n"
        )
        below = f"joined_{level}"
    return text


def test_a_chain_of_diamonds_five_levels_deep_is_right_at_one_moment(
    shop: Callable[..., Shop],
) -> None:
    open_shop = shop(chain(5))
    warehouse, orders = open_shop.warehouse, open_shop.tables["orders"]
    orders.load([order(i, i % 4, f"{i % 7 + 2}.50") for i in range(30)])
    open_shop.tables["customers"].load([])
    names = [f"{word}_{level}" for level in range(1, 6) for word in ("left", "right", "joined")]
    steps: Sequence[Callable[[], None]] = [
        lambda: None,
        lambda: orders.append([order(100 + i, i % 5, "9.00") for i in range(6)]),
        lambda: orders.change(orders.rows[:8], [order(200, 2, "50.00")]),
    ]
    for step in steps:
        step()
        for name in names:
            open_shop.refresh(name)
        quick = warehouse.internals.lake.spark.quick()
        quick.createDataFrame(orders.table()).createOrReplaceTempView("orders")
        for name in names:
            query = warehouse.project.views[name].query
            recomputed = quick.sql(query.text).toArrow()  # type: ignore[union-attr]
            assert open_shop.stored(name) == rows_of(recomputed), name
            quick.createDataFrame(recomputed).createOrReplaceTempView(name)
    assert {str(open_shop.note(name).after.as_json()) for name in names} == {"{'orders': [2]}"}
    assert {open_shop.note(name).variant for name in names} <= {"incremental", "group recompute"}


# Random queries


@pytest.mark.parametrize("first", range(0, CASES, 10))
def test_random_views_equal_their_recomputation(
    project: Callable[..., Path], tmp_path: Path, first: int
) -> None:
    compared = 0
    for seed in range(first, first + 10):
        drawn = case(seed)
        tables = {n: ", ".join(f"{c} {t}" for c, t in s.items()) for n, s in drawn.tables.items()}
        text = "".join(declaration(name, ddl) for name, ddl in tables.items())
        folder = project(f"{text}CREATE MATERIALIZED VIEW v {INCREMENTAL} AS {drawn.query};")
        open_shop = Shop(_moved(folder, tmp_path / f"case-{seed}"), tables)
        for name, rows in drawn.rows.items():
            open_shop.tables[name].load(rows)
        if not open_shop.is_incremental("v"):
            continue
        open_shop.refresh("v")
        for change in drawn.changes[: 1 + seed % 2]:
            for name, delta in change.items():
                open_shop.tables[name].change(delta.deleted, delta.inserted)
            open_shop.refresh("v")
            want = open_shop.recomputed(drawn.query)
            assert open_shop.stored("v") == want, describe(drawn)
        compared += 1
    assert compared >= 9


def _moved(folder: Path, to: Path) -> Path:
    folder.rename(to)
    return to
