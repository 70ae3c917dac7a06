"""How does a real analytical workload look, and how does its data change?

TPC-H: eight tables, 22 queries with the validation parameters of the specification (2.4), refresh
functions in the spirit of RF1 and RF2 (2.6, 2.7), and changes to all eight tables at once. A change
is data: rows deleted and rows inserted, and `applied` is the bag (table - deleted) + inserted.

The queries are the specification's, in Spark's dialect, and DuckDB runs what sqlglot makes of them.
They differ from it in this:
- Where it leaves ties under a LIMIT (3, 10, 18), the key of the group is the last to order by, so
  that there is one right answer. Query 15 has a CTE for its view, query 13 no column list.
- Query 11 always asks for 0.0001 of the total, at scale 1 as specified, not for 0.0001 / scale.

`tpchgen-cli` writes keys and other integers as int64, but l_linenumber, o_shippriority, p_size and
ps_availqty as int32; money, quantities and rates as decimal128(15, 2); dates as date32; text as
string_view; every column not null and with a field id. `read` keeps all but the last three.
"""

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import sqlglot

Keys = npt.NDArray[np.int64]

TABLES: Mapping[str, tuple[str, ...]] = {
    "region": ("r_regionkey",),
    "nation": ("n_nationkey",),
    "supplier": ("s_suppkey",),
    "customer": ("c_custkey",),
    "part": ("p_partkey",),
    "partsupp": ("ps_partkey", "ps_suppkey"),
    "orders": ("o_orderkey",),
    "lineitem": ("l_orderkey", "l_linenumber"),
}
QUERIES = range(1, 23)

_SUPPLIERS_OF_A_PART = 4
_LINES_OF_A_BIG_ORDER = 7
_FEWEST_UPDATES = 3
_ORDERS_AT_SCALE_1 = 1_500_000


@dataclass(frozen=True)
class Change:
    """Rows that leave a table and rows that enter it; an updated row is in both."""

    deleted: pa.Table
    inserted: pa.Table


# --- queries and data -----------------------------------------------------------------------------


def query(number: int) -> str:
    """The text of a query, in Spark SQL.

    >>> query(6).splitlines()[0]
    'SELECT sum(l_extendedprice * l_discount) AS revenue'
    """
    return (Path(__file__).parent / "queries" / f"q{number:02}.sql").read_text().strip()


def tables_of(number: int) -> tuple[str, ...]:
    """Which of the eight tables a query reads, in the order of `TABLES`.

    >>> tables_of(15)
    ('supplier', 'lineitem')
    """
    found = sqlglot.parse_one(query(number), read="spark").find_all(sqlglot.exp.Table)
    names = {table.name for table in found}
    return tuple(table for table in TABLES if table in names)


def generate(scale: float, folder: Path) -> dict[str, Path]:
    """A Parquet file for each of the eight tables, made if `folder` lacks any; scale 1 is 1 GB.

    Below scale 0.01 there are so few suppliers that the generator repeats some keys of partsupp.
    """
    paths = {table: folder / f"{table}.parquet" for table in TABLES}
    if not all(path.exists() for path in paths.values()):
        generator = Path(sys.executable).with_name("tpchgen-cli")
        command = [str(generator), "parquet", "--quiet", "-s", str(scale), "-o", str(folder)]
        subprocess.run(command, check=True)
    orders = pq.read_metadata(paths["orders"]).num_rows
    if abs(orders - _ORDERS_AT_SCALE_1 * scale) > 1:
        raise ValueError(
            f"{folder} holds TPC-H at scale {orders / _ORDERS_AT_SCALE_1:g}, not {scale:g}; "
            "give every scale a folder of its own"
        )
    return paths


def read(path: Path) -> pa.Table:
    """A generated table with plain Arrow types, all nullable, as Spark would give it."""
    table = pq.read_table(path)
    plain = {pa.string_view(): pa.string()}
    fields = [pa.field(field.name, plain.get(field.type, field.type)) for field in table.schema]
    return table.cast(pa.schema(fields))


def applied(table: pa.Table, change: Change) -> pa.Table:
    """`table` without one copy of each deleted row, then the inserted rows."""
    # Rows become Python values only if they share their first column, a key, with a deleted row:
    # a small change to a large table stays cheap.
    first = table.column_names[0]
    near = pc.is_in(table[first], value_set=change.deleted[first])
    to_delete = Counter(_tuples(change.deleted))
    kept = np.ones(len(table), dtype=bool)
    for place, row in zip(np.flatnonzero(near), _tuples(table.filter(near)), strict=True):
        if to_delete[row]:
            to_delete[row] -= 1
            kept[place] = False
    if missing := +to_delete:
        raise ValueError(f"the table does not hold {missing.total()} of the deleted rows")
    return pa.concat_tables([table.filter(kept), change.inserted.combine_chunks()])


# --- RF1 and RF2: orders come and go --------------------------------------------------------------


def orders_and_lines(
    orders: pa.Table, lineitem: pa.Table, fraction: float, seed: int, *, scattered: bool = False
) -> dict[str, Change]:
    """New orders and the end of as many old ones, with their lines: `fraction` of all orders.

    RF2 deletes orders whose keys follow each other; if `scattered`, orders from anywhere, so that
    no file can be skipped. RF1 inserts copies of random orders, for random customers, so that
    dates, prices, and pairs of part and supplier stay plausible. Their keys are such as the
    generator left free for them (it uses 8 of every 32) in one range, which is the one that RF2
    deletes unless `scattered`: close together, but in the middle of the table, so that nobody gains
    by a bet on rising keys. Only where too few are free do they go above the highest.
    """
    dice = np.random.default_rng(seed)
    keys: Keys = np.sort(orders["o_orderkey"].to_numpy())
    count = max(1, round(fraction * len(keys) / 2))
    start = int(dice.integers(len(keys) - count + 1))
    old = dice.choice(keys, count, replace=False) if scattered else keys[start : start + count]
    new = _free_keys(keys, int(keys[start]), count)
    copied = dice.choice(keys, count, replace=False)
    customers = dice.choice(orders["o_custkey"].to_numpy(), count)
    return {
        "orders": Change(
            deleted=orders.filter(_among(orders["o_orderkey"], old)),
            inserted=_with(_renumbered(orders, "o_orderkey", copied, new), o_custkey=customers),
        ),
        "lineitem": Change(
            deleted=lineitem.filter(_among(lineitem["l_orderkey"], old)),
            inserted=_renumbered(lineitem, "l_orderkey", copied, new),
        ),
    }


def _free_keys(keys: Keys, first: int, count: int) -> Keys:
    highest = int(keys[-1])
    near = np.arange(first, min(first + 8 * count, highest), dtype=np.int64)
    above = np.arange(highest + 1, highest + 1 + count, dtype=np.int64)
    return np.concatenate([np.setdiff1d(near, keys), above])[:count]


def _renumbered(table: pa.Table, key: str, old: Keys, new: Keys) -> pa.Table:
    rows = table.filter(_among(table[key], old))
    places = pc.index_in(rows[key], value_set=pa.array(old)).to_numpy()
    return _with(rows, **{key: new[places]})


# --- changes to every table -----------------------------------------------------------------------


def changes(tables: Mapping[str, pa.Table], fraction: float, seed: int) -> dict[str, Change]:
    """Deleted, inserted and updated rows of all eight tables, a third of `fraction` each.

    References stay whole, and tables keep their sizes. A customer leaves only if it has no orders.
    When a part or a supplier leaves, its partsupp rows do too, and newcomers take over its lines:
    at scale 0.01 a supplier has a hundredth of all lines, and one leaves however small `fraction`.
    Some new orders are by new customers, for new parts, from new suppliers. One region and one
    nation get another name, or their old one back, and the nation moves to another region. No total
    is computed again: no query holds o_totalprice against the lines.
    """
    dice = np.random.default_rng(seed)
    result = {name: Change(rows.slice(0, 0), rows.slice(0, 0)) for name, rows in tables.items()}

    customer, orders, lineitem = (tables[name] for name in ("customer", "orders", "lineitem"))
    idle = customer.filter(pc.invert(_among(customer["c_custkey"], orders["o_custkey"])))
    may_leave = {"customer": idle, "supplier": tables["supplier"], "part": tables["part"]}
    for name, rows in may_leave.items():
        result[name] = _come_and_go(name, tables[name], rows, fraction, dice)
    new_customers = result["customer"].inserted

    offers = tables["partsupp"]
    new_offers = _new_offers(tables, result, dice)
    orphaned = _orphaned(offers, "ps_partkey", "ps_suppkey", result)
    result["partsupp"] = Change(offers.filter(orphaned), new_offers)

    orphaned = _orphaned(lineitem, "l_partkey", "l_suppkey", result)
    orphans, others = lineitem.filter(orphaned), lineitem.filter(pc.invert(orphaned))
    refresh_seed = int(dice.integers(2**32))
    refresh = orders_and_lines(orders, others, fraction * 2 / 3, refresh_seed, scattered=True)
    placed, lines = refresh["orders"], refresh["lineitem"]
    # A line of an order that RF2 deletes goes with it, whoever delivered it.
    adopted = orphans.filter(pc.invert(_among(orphans["l_orderkey"], placed.deleted["o_orderkey"])))
    offer = {"l_partkey": "ps_partkey", "l_suppkey": "ps_suppkey"}
    result["orders"] = Change(
        deleted=placed.deleted,
        inserted=_referring(placed.inserted, new_customers, {"o_custkey": "c_custkey"}, 10, dice),
    )
    result["lineitem"] = Change(
        deleted=pa.concat_tables([lines.deleted, orphans]),
        inserted=pa.concat_tables(
            [
                _big(_referring(lines.inserted, new_offers, offer, 10, dice)),
                _referring(adopted, new_offers, offer, 1, dice),
            ]
        ),
    )
    return {
        name: _with_updates(name, tables[name], result[name], fraction, dice) for name in TABLES
    }


def _third(table: pa.Table, fraction: float) -> int:
    return max(1, round(fraction * len(table) / 3))


def _come_and_go(
    name: str, table: pa.Table, may_leave: pa.Table, fraction: float, dice: np.random.Generator
) -> Change:
    """Some of `may_leave` go; as many come: copies of others, but for their keys and an update."""
    count = _third(table, fraction)
    key = TABLES[name][0]
    highest = pc.max(table[key]).as_py()
    keys = range(highest + 1, highest + 1 + count)
    new = _with(_updated(name, _sample(table, count, dice), table, dice), **{key: keys})
    if name != "part":
        names = [f"{name.title()}#{number:09}" for number in keys]
        new = _with(new, **{key[0] + "_name": names})
    return Change(deleted=_sample(may_leave, count, dice), inserted=new)


def _orphaned(table: pa.Table, part: str, supplier: str, result: Mapping[str, Change]) -> Any:
    return pc.or_(
        _among(table[part], result["part"].deleted["p_partkey"]),
        _among(table[supplier], result["supplier"].deleted["s_suppkey"]),
    )


def _new_offers(
    tables: Mapping[str, pa.Table], result: Mapping[str, Change], dice: np.random.Generator
) -> pa.Table:
    """The partsupp rows by which new parts find suppliers, and new suppliers parts."""
    offers = tables["partsupp"]
    pairs: list[tuple[int, int]] = []
    suppliers = _staying(tables, result, "supplier")
    for part in result["part"].inserted["p_partkey"].to_pylist():
        count = min(_SUPPLIERS_OF_A_PART, len(suppliers))
        pairs += [(part, supplier) for supplier in dice.choice(suppliers, count, replace=False)]
    parts = _staying(tables, result, "part")
    for supplier in result["supplier"].inserted["s_suppkey"].to_pylist():
        count = min(len(offers) // len(tables["supplier"]), len(parts))
        pairs += [(part, supplier) for part in dice.choice(parts, count, replace=False)]
    like = offers.take(dice.integers(len(offers), size=len(pairs)))
    return _with(
        like,
        ps_partkey=[part for part, _ in pairs],
        ps_suppkey=[supplier for _, supplier in pairs],
    )


def _staying(tables: Mapping[str, pa.Table], result: Mapping[str, Change], name: str) -> Keys:
    key = TABLES[name][0]
    return np.setdiff1d(tables[name][key].to_numpy(), result[name].deleted[key].to_numpy())


def _referring(
    rows: pa.Table,
    newcomers: pa.Table,
    columns: Mapping[str, str],
    every: int,
    dice: np.random.Generator,
) -> pa.Table:
    """`rows`, of which one in `every` now refers to one of the newcomers."""
    chosen = pa.array(np.arange(len(rows)) % every == 0)
    picked = newcomers.take(dice.integers(len(newcomers), size=len(rows)))
    new = {mine: pc.if_else(chosen, picked[theirs], rows[mine]) for mine, theirs in columns.items()}
    return _with(rows, **new)


def _big(lines: pa.Table) -> pa.Table:
    """`lines`, with fifty pieces in each line of an order of seven lines, or query 18 sees none."""
    per_order = Counter(lines["l_orderkey"].to_pylist())
    quantities, prices = [], []
    for order, quantity, price in zip(
        *(lines[name].to_pylist() for name in ("l_orderkey", "l_quantity", "l_extendedprice")),
        strict=True,
    ):
        new = Decimal(50) if per_order[order] == _LINES_OF_A_BIG_ORDER else quantity
        quantities.append(new)
        prices.append(round(price / quantity * new, 2))
    return _with(lines, l_quantity=quantities, l_extendedprice=prices)


# --- updates --------------------------------------------------------------------------------------

_ELSEWHERE = object()  # the value that another row of the table has
_NEW = "NEW "  # in front of the name of a region or nation that is renamed


def _days_after(date: str, days: int) -> Callable[[pa.Table], Any]:
    return lambda rows: pc.add(rows[date].cast(pa.int32()), pa.scalar(days, pa.int32()))


def _renamed(name: str) -> Callable[[pa.Table], list[str]]:
    return lambda rows: [
        old.removeprefix(_NEW) if old.startswith(_NEW) else _NEW + old
        for old in rows[name].to_pylist()
    ]


# Each row of a sample gets one of its table's updates, in turn: columns, and a constant, a value
# from elsewhere in the table, or what a function makes of the rows. The constants are what the
# queries look for: values from elsewhere alone would pass by the rare ones.
_UPDATES: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "region": ({"r_name": _renamed("r_name")},),
    "nation": (
        {
            "n_name": _renamed("n_name"),
            "n_regionkey": lambda rows: (rows["n_regionkey"].to_numpy() + 1) % 5,
        },
    ),
    "supplier": (
        {"s_comment": "sleeps. Customer of the blithely final Complaints"},
        {"s_nationkey": 20},  # SAUDI ARABIA
        {"s_nationkey": 3},  # CANADA
        {"s_nationkey": 7},  # GERMANY
        {"s_nationkey": 6},  # FRANCE
        {"s_nationkey": 2},  # BRAZIL
        {"s_nationkey": _ELSEWHERE, "s_phone": _ELSEWHERE},
        {"s_comment": _ELSEWHERE},
        {"s_acctbal": _ELSEWHERE},
    ),
    "customer": (
        {"c_mktsegment": "BUILDING"},
        {"c_mktsegment": _ELSEWHERE},
        {"c_acctbal": _ELSEWHERE},
        {"c_nationkey": _ELSEWHERE, "c_phone": _ELSEWHERE},
    ),
    "part": (
        {"p_brand": "Brand#23", "p_container": "MED BOX"},
        {"p_brand": "Brand#12", "p_container": "SM CASE", "p_size": 5},
        {"p_type": "ECONOMY ANODIZED STEEL"},
        {"p_type": "LARGE PLATED BRASS", "p_size": 15},
        {"p_type": "PROMO BURNISHED COPPER"},
        {"p_name": "forest green lace azure thistle"},
        {"p_brand": _ELSEWHERE, "p_mfgr": _ELSEWHERE},
        {"p_type": _ELSEWHERE},
        {"p_size": _ELSEWHERE},
        {"p_name": _ELSEWHERE},
    ),
    "partsupp": ({"ps_supplycost": _ELSEWHERE}, {"ps_availqty": _ELSEWHERE}),
    "orders": (
        {"o_comment": "the special, bold requests"},
        {"o_comment": _ELSEWHERE},
        {"o_orderpriority": "1-URGENT"},
        {"o_orderpriority": _ELSEWHERE},
        {"o_orderstatus": "F"},
        {"o_custkey": _ELSEWHERE},
    ),
    "lineitem": (
        {"l_receiptdate": _days_after("l_commitdate", 30)},
        {"l_receiptdate": _days_after("l_shipdate", 1)},
        {"l_returnflag": "R"},
        {"l_returnflag": _ELSEWHERE},
        {"l_shipmode": "MAIL"},
        {"l_shipmode": "AIR", "l_shipinstruct": "DELIVER IN PERSON"},
        {"l_discount": _ELSEWHERE},
        {"l_quantity": Decimal(2)},
        {"l_partkey": _ELSEWHERE, "l_suppkey": _ELSEWHERE},
    ),
}


def _with_updates(
    name: str, table: pa.Table, change: Change, fraction: float, dice: np.random.Generator
) -> Change:
    """`change`, and updates of rows that it leaves alone; a few may make no difference."""
    key = TABLES[name][0]
    staying = table.filter(pc.invert(_among(table[key], change.deleted[key])))
    if name in ("region", "nation"):
        # Names that are never given back would leave many queries empty after a few changes.
        renamed = staying.filter(pc.starts_with(staying[key[0] + "_name"], _NEW))
        old = _sample(renamed if len(renamed) else staying, 1, dice)
    else:
        old = _sample(staying, max(_FEWEST_UPDATES, _third(table, fraction)), dice)
    # Columns that refer to a part and a supplier may only be taken from rows that stay.
    new = _updated(name, old, staying, dice)
    return Change(
        deleted=pa.concat_tables([change.deleted, old]),
        inserted=pa.concat_tables([change.inserted, new]),
    )


def _updated(name: str, rows: pa.Table, others: pa.Table, dice: np.random.Generator) -> pa.Table:
    updates = _UPDATES[name]
    first = int(dice.integers(len(updates)))
    written = []
    for number in range(len(updates)):
        share = rows.take(np.arange(number, len(rows), len(updates)))
        other = others.take(dice.integers(len(others), size=len(share)))
        new = {}
        for column, value in updates[(first + number) % len(updates)].items():
            if value is _ELSEWHERE:
                new[column] = other[column]
            else:
                new[column] = value(share) if callable(value) else [value] * len(share)
        written.append(_with(share, **new))
    return pa.concat_tables(written)


# --- tables ---------------------------------------------------------------------------------------


def _tuples(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in table.columns), strict=True)


def _among(column: Any, values: Any) -> Any:
    return pc.is_in(column, value_set=values if hasattr(values, "type") else pa.array(values))


def _sample(table: pa.Table, count: int, dice: np.random.Generator) -> pa.Table:
    return table.take(dice.choice(len(table), min(count, len(table)), replace=False))


def _with(table: pa.Table, **columns: Any) -> pa.Table:
    """`table` with new values in some columns, whose types stay."""
    for name, values in columns.items():
        place = table.schema.get_field_index(name)
        field = table.schema.field(place)
        array = values if isinstance(values, pa.ChunkedArray) else pa.array(values)
        table = table.set_column(place, field, array.cast(field.type))
    return table
