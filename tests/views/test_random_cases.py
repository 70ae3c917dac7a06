"""Random cases are worth running: DuckDB can run them all, and no operator is missing."""

from collections import Counter
from collections.abc import Callable, Iterator

import duckdb
import pyarrow as pa
import pytest
import sqlglot
from random_cases import Case, case, describe, states
from random_queries import OPERATORS
from random_tables import literal
from sqlglot import exp

Tree = exp.Expression
Rows = list[tuple[object, ...]]
ARROW = {
    "int": pa.int32(),
    "bigint": pa.int64(),
    "decimal(12,2)": pa.decimal128(12, 2),
    "double": pa.float64(),
    "string": pa.string(),
    "date": pa.date32(),
    "boolean": pa.bool_(),
    "array<int>": pa.list_(pa.int32()),
}


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return [case(seed) for seed in range(400)]


@pytest.fixture(scope="module")
def trees(cases: list[Case]) -> list[Tree]:
    return [_tree(each) for each in cases]


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    # One thread: starting more takes longer than these queries do.
    with duckdb.connect(config={"threads": 1}) as connection:
        yield connection


def _tree(of: Case) -> Tree:
    return sqlglot.parse_one(of.query, read="spark")


def _in_duckdb(sql: str) -> str:
    return sqlglot.transpile(sql, read="spark", write="duckdb")[0]


def _answers(database: duckdb.DuckDBPyConnection, of: Case) -> list[Rows]:
    """The rows of the query at first, and after each change."""
    query = _in_duckdb(of.query)
    answers = []
    for state in states(of):
        for table, columns in of.tables.items():
            names, types = list(columns), [ARROW[type_] for type_ in columns.values()]
            values = [[row[at] for row in state[table]] for at in range(len(names))]
            arrays = map(pa.array, values, types)
            database.register(table, pa.table(dict(zip(names, arrays, strict=True))))
        answer = database.execute(query)
        names = [column[0] for column in answer.description]
        assert len(set(names)) == len(names), describe(of)
        answers.append(answer.fetchall())
    return answers


def test_a_seed_always_makes_the_same_case() -> None:
    assert [case(seed) for seed in range(40)] == [case(seed) for seed in range(40)]
    assert [case(1, name) for name in OPERATORS] == [case(1, name) for name in OPERATORS]


def test_an_operator_that_nobody_knows_is_refused() -> None:
    with pytest.raises(ValueError, match='"pivot" is not an operator'):
        case(1, "pivot")


def test_every_case_runs_at_every_state_and_most_have_rows_that_change(
    cases: list[Case], database: duckdb.DuckDBPyConnection
) -> None:
    # The oracle checks that all other cases run.
    answers = [_answers(database, each) for each in cases[:150]]
    assert sum(any(every) for every in answers) > 0.7 * len(answers)
    bags = [[sorted(map(repr, rows)) for rows in every] for every in answers]
    assert sum(any(bag != every[0] for bag in every) for every in bags) > 0.6 * len(answers)


@pytest.mark.parametrize("operator", OPERATORS)
def test_an_operator_alone_runs_and_is_there(
    operator: str, database: duckdb.DuckDBPyConnection
) -> None:
    for seed in range(3):
        alone = case(seed, operator)
        assert PRESENT[operator](_tree(alone)), describe(alone)
        assert len(_answers(database, alone)) == len(alone.changes) + 1


def test_every_operator_is_present(trees: list[Tree]) -> None:
    assert set(PRESENT) >= set(OPERATORS)
    found = {name: sum(map(present, trees)) for name, present in PRESENT.items()}
    assert min(found.values()) >= 3, found


def test_queries_are_up_to_four_levels_deep(trees: list[Tree]) -> None:
    depths = [max(map(_depth, tree.find_all(exp.Select))) for tree in trees]
    assert {1, 2, 3, 4} <= set(depths)
    assert sum(depth >= 3 for depth in depths) > 0.2 * len(depths)


def test_a_query_that_needs_recomputing_says_so(cases: list[Case], trees: list[Tree]) -> None:
    present = PRESENT["recomputed_aggregate"]
    assert [each.recomputed for each in cases] == [present(tree) for tree in trees]


def test_changes_delete_what_is_there_and_always_do_something(cases: list[Case]) -> None:
    for each in cases:
        assert 2 <= len(each.changes) <= 5
        before, *later = states(each)
        for change, after in zip(each.changes, later, strict=True):
            assert change, describe(each)
            for table, delta in change.items():
                assert delta.deleted or delta.inserted, describe(each)
                assert Counter(delta.deleted) <= Counter(before[table]), describe(each)
                left = Counter(before[table]) - Counter(delta.deleted)
                assert Counter(after[table]) == left + Counter(delta.inserted), describe(each)
            before = after


def test_changes_are_of_many_kinds(cases: list[Case]) -> None:
    seen: Counter[str] = Counter()
    for each in cases:
        before, *later = states(each)
        for change, after in zip(each.changes, later, strict=True):
            deltas = change.values()
            seen["one table"] += len(change) == 1
            seen["some tables"] += len(change) > 1
            seen["only inserts"] += not any(delta.deleted for delta in deltas)
            seen["only deletes"] += not any(delta.inserted for delta in deltas)
            seen["both"] += any(delta.deleted and delta.inserted for delta in deltas)
            seen["a copy"] += any(
                set(delta.inserted) & set(after[t]) for t, delta in change.items()
            )
            seen["a table is emptied"] += any(before[t] and not after[t] for t in change)
            seen["all is emptied"] += any(before.values()) and not any(after.values())
            seen["a table is refilled"] += any(after[t] and not before[t] for t in change)
            before = after
    assert min(seen.values()) >= 20, seen


def test_data_has_duplicates_nulls_empty_tables_and_all_types(cases: list[Case]) -> None:
    tables = [rows for each in cases for rows in each.rows.values()]
    assert max(map(len, tables)) == 30
    assert sum(not rows for rows in tables) >= 20
    assert sum(len(set(rows)) < len(rows) for rows in tables) > 0.5 * len(tables)
    assert sum(any(None in row for row in rows) for rows in tables) > 0.5 * len(tables)
    schemas = [schema for each in cases for schema in each.tables.values()]
    assert {len(schema) for schema in schemas} == {2, 3, 4, 5}
    assert {type_ for schema in schemas for type_ in schema.values()} == set(ARROW)


def test_a_description_shows_the_case_and_how_to_see_it_again() -> None:
    shown = case(3, "top_k")
    text = describe(shown)
    assert "".join(shown.query.split()) in "".join(text.split())
    assert all(f"table {table} (" in text for table in shown.tables)
    assert f"change {len(shown.changes)}\n" in text
    assert "random_cases.case(3, only='top_k')" in text


def test_a_literal_is_read_back_as_it_was(database: duckdb.DuckDBPyConnection) -> None:
    for table, columns in case(5, "explode_column").tables.items():
        for row in case(5, "explode_column").rows[table]:
            texts = map(literal, row, columns.values())
            (back,) = database.execute(_in_duckdb(f"SELECT {', '.join(texts)}")).fetchall()
            assert tuple(tuple(v) if isinstance(v, list) else v for v in back) == row


# --- features of a query --------------------------------------------------------------------------

Present = Callable[[Tree], bool]


def _has(*kinds: type[Tree], where: Callable[[Tree], object] = lambda node: True) -> Present:
    return lambda tree: any(where(node) for node in tree.find_all(*kinds))


def _join(side: str, kind: str = "", condition: str = "on") -> Present:
    def fits(join: Tree) -> bool:
        kinds = (join.text("side"), join.text("kind").replace("OUTER", ""))
        return kinds == (side, kind) and (not condition or bool(join.args.get(condition)))

    return _has(exp.Join, where=fits)


def _set_operation(kind: type[Tree], distinct: bool) -> Present:
    return _has(kind, where=lambda node: bool(node.args.get("distinct")) == distinct)


def _window(*functions: type[Tree], rows: bool = False) -> Present:
    def fits(window: Tree) -> bool:
        frame = window.args.get("spec")
        return isinstance(window.this, functions) and rows == (frame is not None)

    return _has(exp.Window, where=fits)


RANKS = (exp.RowNumber, exp.Rank, exp.DenseRank)


def _is_negated(node: Tree) -> bool:
    return isinstance(node.parent, exp.Not)


def _is_subquery(node: Tree) -> bool:
    return isinstance(node, exp.Exists) or bool(node.args.get("query"))


def _is_scalar(query: Tree) -> bool:
    return isinstance(query, exp.Subquery) and not isinstance(
        query.parent, exp.From | exp.Join | exp.In | exp.Exists
    )


def _is_correlated(query: Tree) -> bool:
    own = {node.alias_or_name for node in query.find_all(exp.Table)}
    own |= {alias.name for alias in query.find_all(exp.TableAlias)}
    return any(column.table and column.table not in own for column in query.find_all(exp.Column))


def _reads_a_table_twice(select: Tree) -> bool:
    sources = [select.args.get("from_"), *(select.args.get("joins") or [])]
    tables = [each.this.name for each in sources if each and isinstance(each.this, exp.Table)]
    return len(set(tables)) < len(tables)


def _is_global(select: Tree) -> bool:
    aggregates = [
        node
        for output in select.expressions
        for node in output.find_all(exp.AggFunc)
        if node.find_ancestor(exp.Select, exp.Window) is select
    ]
    return bool(aggregates) and not select.args.get("group") and not _is_scalar(select.parent)


def _is_kept_by_rank(window: Tree) -> bool:
    outer = window.parent_select and window.parent_select.parent_select
    kept = outer and outer.args.get("where")
    names = [column.name for column in kept.find_all(exp.Column)] if kept else []
    return isinstance(window.this, RANKS) and window.parent.alias in names


def _is_by_alias(having: Tree) -> bool:
    aliases = {item.alias for item in having.parent.expressions}
    return any(not c.table and c.name in aliases for c in having.find_all(exp.Column))


def _is_by_aggregate(order: Tree) -> bool:
    return isinstance(order.parent, exp.Select) and order.find(exp.AggFunc) is not None


def _depth(select: Tree) -> int:
    outer = select.parent_select
    return 1 + (_depth(outer) if outer else 0)


PRESENT: dict[str, Present] = {
    "filter": _has(exp.Where),
    "project": _has(exp.Alias),
    "derived_table": _has(exp.Subquery, where=lambda node: isinstance(node.parent, exp.From)),
    "cte": _has(exp.CTE),
    "values": _has(exp.Values),
    "inner_join": _join(""),
    "self_join": _has(exp.Select, where=_reads_a_table_twice),
    "comma_join": _join("", "CROSS", ""),
    "using_join": _has(exp.Join, where=lambda join: join.args.get("using")),
    "left_join": _join("LEFT"),
    "right_join": _join("RIGHT"),
    "full_join": _join("FULL"),
    "semi_join": _join("LEFT", "SEMI"),
    "anti_join": _join("LEFT", "ANTI"),
    "exists": _has(exp.Exists, where=lambda node: not _is_negated(node)),
    "not_exists": _has(exp.Exists, where=_is_negated),
    "in_subquery": _has(exp.In, where=lambda node: _is_subquery(node) and not _is_negated(node)),
    "not_in_subquery": _has(exp.In, where=lambda node: _is_subquery(node) and _is_negated(node)),
    "subquery_under_or": _has(
        *(exp.Exists, exp.In),
        where=lambda node: (
            _is_subquery(node) and isinstance(node.find_ancestor(exp.Or, exp.Select), exp.Or)
        ),
    ),
    "scalar_subquery": _has(
        exp.Subquery, where=lambda node: _is_scalar(node) and not _is_correlated(node)
    ),
    "correlated_scalar_subquery": _has(
        exp.Subquery, where=lambda node: _is_scalar(node) and _is_correlated(node)
    ),
    "few_ask": _has(exp.Subquery, where=lambda node: _is_scalar(node) and _is_correlated(node)),
    "group_by": _has(
        exp.Group, where=lambda group: any(isinstance(e, exp.Column) for e in group.expressions)
    ),
    "group_by_expression": _has(
        exp.Group,
        where=lambda group: (
            not any(
                isinstance(e, exp.Column | exp.Rollup | exp.Cube | exp.GroupingSets)
                for e in group.expressions[:1]
            )
        ),
    ),
    "having": _has(exp.Having),
    "distinct_aggregate": _has(
        exp.Distinct, where=lambda node: isinstance(node.parent, exp.AggFunc)
    ),
    "filtered_aggregate": _has(exp.Filter),
    "recomputed_aggregate": _has(exp.ArrayAgg, exp.Median),
    "global_aggregate": _has(exp.Select, where=_is_global),
    "distinct": _has(exp.Distinct, where=lambda node: isinstance(node.parent, exp.Select)),
    "grouping_sets": _has(exp.GroupingSets),
    "rollup": _has(exp.Rollup),
    "cube": _has(exp.Cube),
    "union_all": _set_operation(exp.Union, distinct=False),
    "union": _set_operation(exp.Union, distinct=True),
    "intersect": _set_operation(exp.Intersect, distinct=True),
    "intersect_all": _set_operation(exp.Intersect, distinct=False),
    "except": _set_operation(exp.Except, distinct=True),
    "except_all": _set_operation(exp.Except, distinct=False),
    "window_rank": _window(*RANKS),
    "window_lag": _window(exp.Lag, exp.Lead),
    "window_rows": _window(exp.AggFunc, rows=True),
    "window_aggregate": _window(exp.AggFunc),
    "top_k": _has(exp.Window, where=_is_kept_by_rank),
    "limit": _has(exp.Limit),
    "explode_array": _has(exp.Explode, where=lambda node: isinstance(node.this, exp.Array)),
    "explode_column": _has(exp.Explode, where=lambda node: isinstance(node.this, exp.Column)),
    # Features without an operator of their name.
    "CASE": _has(exp.Case),
    "CAST": _has(exp.Cast),
    "COALESCE": _has(exp.Coalesce),
    "LIKE": _has(exp.Like),
    "BETWEEN": _has(exp.Between),
    "IN list": _has(exp.In, where=lambda node: not _is_subquery(node)),
    "IS NULL": _has(exp.Is),
    "<=>": _has(exp.NullSafeEQ),
    "sum": _has(exp.Sum),
    "avg": _has(exp.Avg),
    "min": _has(exp.Min),
    "max": _has(exp.Max),
    "count": _has(exp.Count),
    "stddev_samp": _has(exp.StddevSamp),
    "var_pop": _has(exp.VariancePop),
    "bool_and": _has(exp.LogicalAnd),
    "bool_or": _has(exp.LogicalOr),
    "grouping": _has(exp.Grouping),
    "grouping_id": _has(exp.GroupingId),
    "OFFSET": _has(exp.Offset),
    "HAVING by an alias": _has(exp.Having, where=_is_by_alias),
    "ORDER BY an aggregate": _has(exp.Order, where=_is_by_aggregate),
    "no PARTITION BY": _has(exp.Window, where=lambda node: not node.args.get("partition_by")),
    "a join by inequality": _has(
        exp.Join, where=lambda join: isinstance(join.args.get("on"), exp.LT | exp.NEQ | exp.GTE)
    ),
    "a CTE read twice": lambda tree: any(
        sum(table.name == cte.alias for table in tree.find_all(exp.Table)) > 1
        for cte in tree.find_all(exp.CTE)
    ),
    "a count of what may be nothing": _has(
        exp.Subquery,
        where=lambda node: _is_scalar(node) and _is_correlated(node) and node.find(exp.Count),
    ),
}
