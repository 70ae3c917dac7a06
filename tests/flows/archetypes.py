"""The archetypes of 000 (Figure 1, Figure 7, section 7.1) on TPC-H, each with its result in SQL.

`queries` give the right rows of every target; DuckDB and Spark can both run them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from springhouse.flows.declare import Draft, Flow, flow
from springhouse.units import Dice


@dataclass(frozen=True)
class Archetype:
    """A flow, and for each of its targets the query that gives the same rows."""

    flow: Flow
    queries: Mapping[str, str]


@flow
def line(flow: Draft) -> None:
    """Filters, a computed column and an aggregation over one table."""
    (
        flow.read("lineitem")
        .where("l_quantity > 5")
        .compute(revenue="l_extendedprice * (1 - l_discount)")
        .where("revenue > 20")
        .aggregate("l_suppkey", revenue="sum(revenue)", lines="count(*)")
        .write("supplier_revenue")
    )


LINE = Archetype(
    line,
    {
        "supplier_revenue": "SELECT l_suppkey, sum(l_extendedprice * (1 - l_discount)) AS revenue, "
        "count(*) AS lines FROM lineitem WHERE l_quantity > 5 "
        "AND l_extendedprice * (1 - l_discount) > 20 GROUP BY l_suppkey"
    },
)


@flow
def wishbone(flow: Draft) -> None:
    """Two lines and a join of both."""
    costs = flow.read("partsupp").where("ps_availqty > 0").compute(cost="ps_supplycost * 2")
    names = (
        flow.read("supplier").where("s_nationkey IS NOT NULL").select("s_suppkey", "s_nationkey")
    )
    joined = costs.join(names, on={"ps_suppkey": "s_suppkey"})
    joined.where("cost > 10").write("costs")


WISHBONE = Archetype(
    wishbone,
    {
        "costs": "SELECT p.ps_partkey, p.ps_suppkey, p.ps_availqty, p.ps_supplycost, "
        "p.ps_supplycost * 2 AS cost, s.s_nationkey FROM partsupp p JOIN supplier s "
        "ON p.ps_suppkey = s.s_suppkey WHERE p.ps_availqty > 0 AND p.ps_supplycost * 2 > 10 "
        "AND s.s_nationkey IS NOT NULL"
    },
)


@flow
def primary_flow(flow: Draft) -> None:
    """Surrogate keys replace production keys, one key after the other."""
    (
        flow.read("lineitem")
        .where("l_quantity > 2")
        .lookup(flow.read("part_keys"), on={"l_partkey": "partkey"}, take="part_sk")
        .lookup(flow.read("supplier_keys"), on={"l_suppkey": "suppkey"}, take="supplier_sk")
        .where("supplier_sk IS NOT NULL")
        .select("part_sk", "supplier_sk", "l_quantity", "l_extendedprice")
        .write("facts")
    )


PRIMARY_FLOW = Archetype(
    primary_flow,
    {
        "facts": "SELECT part_sk, supplier_sk, l_quantity, l_extendedprice FROM lineitem "
        "LEFT JOIN part_keys ON l_partkey = partkey LEFT JOIN supplier_keys ON l_suppkey = suppkey "
        "WHERE l_quantity > 2 AND supplier_sk IS NOT NULL"
    },
)


@flow
def tree(flow: Draft) -> None:
    """A join of several tables, and an aggregation of the result."""
    offers = flow.read("partsupp").join(flow.read("supplier"), on={"ps_suppkey": "s_suppkey"})
    sold = flow.read("lineitem").join(
        offers,
        on={"l_partkey": "ps_partkey", "l_suppkey": "ps_suppkey"},
        take=["s_nationkey", "ps_supplycost"],
    )
    sold.aggregate("s_nationkey", cost="sum(ps_supplycost)", price="max(l_extendedprice)").write(
        "nations"
    )


TREE = Archetype(
    tree,
    {
        "nations": "SELECT s_nationkey, sum(ps_supplycost) AS cost, max(l_extendedprice) AS price "
        "FROM lineitem JOIN partsupp ON l_partkey = ps_partkey AND l_suppkey = ps_suppkey "
        "JOIN supplier ON ps_suppkey = s_suppkey GROUP BY s_nationkey"
    },
)


@flow
def fork(flow: Draft) -> None:
    """Many aggregations over the rows of one table."""
    lines = flow.read("lineitem").compute(price="l_extendedprice * (1 - l_discount)")
    small, medium, large = lines.route("l_quantity < 10", "l_quantity < 30")
    small.aggregate("l_partkey", price="sum(price)").write("small_by_part")
    medium.aggregate("l_suppkey", price="sum(price)", lines="count(*)").write("medium_by_supplier")
    large.sort("l_orderkey", "price DESC").write("large_lines")
    large.aggregate(total="sum(price)", lines="count(*)").write("large_total")


_PRICE = "l_extendedprice * (1 - l_discount)"
FORK = Archetype(
    fork,
    {
        "small_by_part": f"SELECT l_partkey, sum({_PRICE}) AS price FROM lineitem "
        "WHERE l_quantity < 10 GROUP BY l_partkey",
        "medium_by_supplier": f"SELECT l_suppkey, sum({_PRICE}) AS price, count(*) AS lines "
        "FROM lineitem WHERE l_quantity >= 10 AND l_quantity < 30 GROUP BY l_suppkey",
        "large_lines": f"SELECT *, {_PRICE} AS price FROM lineitem WHERE l_quantity >= 30",
        "large_total": f"SELECT sum({_PRICE}) AS total, count(*) AS lines FROM lineitem "
        "WHERE l_quantity >= 30",
    },
)


@flow
def butterfly(flow: Draft) -> None:
    """Figure 1: two lines, a central join, and four views by successive aggregations."""
    parts = (
        flow.read("partsupp")
        .where("ps_supplycost IS NOT NULL", name="not_null_partsupp")
        .compute(total_cost="ps_supplycost * ps_availqty", name="total_cost")
    )
    suppliers = (
        flow.read("supplier")
        .where("s_nationkey IS NOT NULL", name="not_null_supplier")
        .compute(s_phone="trim(s_phone)", name="phone_format")
    )
    parts.write("dw_partsupp")
    suppliers.write("dw_supplier")
    joined = parts.join(suppliers, on={"ps_suppkey": "s_suppkey"}, name="join")
    joined.write("join_table")
    one = joined.aggregate(
        ["s_nationkey", "ps_partkey"], cost="sum(total_cost)", name="aggregate_1"
    )
    three = joined.aggregate(
        ["s_nationkey", "ps_suppkey"], cost="sum(total_cost)", name="aggregate_3"
    )
    one.write("view_1").aggregate("ps_partkey", cost="sum(cost)", name="aggregate_2").write(
        "view_2"
    )
    three.write("view_3").aggregate("ps_suppkey", cost="sum(cost)", name="aggregate_4").write(
        "view_4"
    )


_PARTS = (
    "(SELECT *, ps_supplycost * ps_availqty AS total_cost FROM partsupp "
    "WHERE ps_supplycost IS NOT NULL) p"
)
_SUPPLIERS = (
    "(SELECT s_suppkey, s_nationkey, trim(s_phone) AS s_phone FROM supplier "
    "WHERE s_nationkey IS NOT NULL) s"
)
_JOINED = f"{_PARTS} JOIN {_SUPPLIERS} ON p.ps_suppkey = s.s_suppkey"
BUTTERFLY = Archetype(
    butterfly,
    {
        "dw_partsupp": f"SELECT * FROM {_PARTS}",
        "dw_supplier": f"SELECT * FROM {_SUPPLIERS}",
        "join_table": f"SELECT p.*, s_nationkey, s_phone FROM {_JOINED}",
        "view_1": f"SELECT s_nationkey, ps_partkey, sum(total_cost) AS cost FROM {_JOINED} "
        "GROUP BY s_nationkey, ps_partkey",
        "view_2": f"SELECT ps_partkey, sum(total_cost) AS cost FROM {_JOINED} GROUP BY ps_partkey",
        "view_3": f"SELECT s_nationkey, ps_suppkey, sum(total_cost) AS cost FROM {_JOINED} "
        "GROUP BY s_nationkey, ps_suppkey",
        "view_4": f"SELECT ps_suppkey, sum(total_cost) AS cost FROM {_JOINED} GROUP BY ps_suppkey",
    },
)

ARCHETYPES = {
    "line": LINE,
    "wishbone": WISHBONE,
    "primary flow": PRIMARY_FLOW,
    "tree": TREE,
    "fork": FORK,
    "butterfly": BUTTERFLY,
}

SCHEMAS = {
    "lineitem": pa.schema(
        {
            "l_orderkey": pa.int64(),
            "l_partkey": pa.int64(),
            "l_suppkey": pa.int64(),
            "l_quantity": pa.float64(),
            "l_extendedprice": pa.float64(),
            "l_discount": pa.float64(),
        }
    ),
    "partsupp": pa.schema(
        {
            "ps_partkey": pa.int64(),
            "ps_suppkey": pa.int64(),
            "ps_availqty": pa.int32(),
            "ps_supplycost": pa.float64(),
        }
    ),
    "supplier": pa.schema(
        {"s_suppkey": pa.int64(), "s_nationkey": pa.int32(), "s_phone": pa.string()}
    ),
    "part_keys": pa.schema({"partkey": pa.int64(), "part_sk": pa.int64()}),
    "supplier_keys": pa.schema({"suppkey": pa.int64(), "supplier_sk": pa.int64()}),
}


def random_tables(seed: int, rows: int) -> dict[str, pa.Table]:
    """Small TPC-H tables with NULLs; numbers are quarters, so that sums are exact."""
    dice = Dice(seed)

    def whole(low: int, high: int) -> int:
        return int(dice.between(low, high))

    def quarters(high: int) -> float:
        return whole(0, high * 4) / 4

    def maybe(value: object) -> object:
        return None if whole(0, 12) == 0 else value

    lineitem = [
        (whole(0, 40), whole(0, 30), whole(0, 12), float(whole(1, 50)), quarters(100), quarters(1))
        for _ in range(rows)
    ]
    partsupp = [
        (part, supplier, whole(0, 9), maybe(quarters(20)))
        for part in range(30)
        for supplier in range(part % 3, 12, 3)
    ]
    supplier = [(key, maybe(whole(0, 5)), f" {whole(100, 999)}-{key} ") for key in range(11)]
    made = {
        "lineitem": lineitem,
        "partsupp": partsupp,
        "supplier": supplier,
        "part_keys": [(key, 1000 + key) for key in range(28)],
        "supplier_keys": [(key, 2000 + key) for key in range(10)],
    }
    return {
        name: pa.table(
            {
                field.name: pa.array([row[i] for row in given], field.type)
                for i, field in enumerate(SCHEMAS[name])
            }
        )
        for name, given in made.items()
    }
