"""The algebra of a query, and the reasons for refusing one, with their lines."""

import pytest
from random_cases import case, describe
from scenario import View, schema

from springhouse.views.algebra.query_tree import (
    Aggregate,
    Constant,
    Filter,
    InnerJoin,
    Node,
    OuterJoin,
    Projection,
    Scan,
    SemiJoin,
    SetOperation,
    TopK,
    UnionAll,
    children,
    walk,
)
from springhouse.views.read.not_compilable import NotCompilable
from springhouse.views.read.parse_query import ParsedQuery, parse
from springhouse.views.sql.expressions import free_columns

SCHEMAS = {
    "t": schema("k int, a int, b bigint, s string, e date, x double, d decimal(12,2)"),
    "r": schema("k int, a int"),
    "u": schema("k int, a int"),
}


def parsed(text: str) -> ParsedQuery:
    return parse(text, SCHEMAS)


def refusal(text: str) -> NotCompilable:
    with pytest.raises(NotCompilable) as found:
        parsed(text)
    return found.value


def _ungrouped(name: str) -> str:
    return f"`{name}` is neither grouped by nor inside an aggregate"


# Refused queries. If the error names the line of a construct, the construct is on the second line.
# An error about a whole query names its first line.


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        # Rows that differ each time.
        ("SELECT\n rand() FROM t", 2, "`rand` gives another value each time"),
        ("SELECT k,\n now() FROM t", 2, "`now` gives another value each time"),
        ("SELECT\n uuid() FROM t", 2, "`uuid` gives another value each time"),
        (
            "SELECT k FROM t WHERE e <\n current_date()",
            2,
            "`current_date` gives another value each time",
        ),
        ("SELECT k\nFROM t TABLESAMPLE (5 ROWS)", 2, "TABLESAMPLE gives other rows each time"),
        ("SELECT k FROM t\nLIMIT 3", 1, "LIMIT without ORDER BY gives other rows each time"),
        # Names.
        ("SELECT k FROM t\nWHERE nope = 1", 2, "`nope` is no column that is known"),
        ("SELECT k FROM t\nWHERE r.k = 1", 2, "`r.k` is no column that is known"),
        ("SELECT *\nFROM r, t WHERE\n k = 1", 3, "`k` could be two columns"),
        ("SELECT * FROM\n other", 2, "`other` is not one of the inputs"),
        ("SELECT * FROM\n db.t", 2, "`db.t` is not one of the inputs"),
        ("SELECT\n q.* FROM t", 2, "`q.*` names no relation here"),
        ("SELECT\n * REPLACE (1 AS k) FROM t", 2, "`* REPLACE` is not understood"),
        (
            "SELECT q.k FROM (SELECT k FROM t) AS\n q(k, l)",
            1,
            "an alias names another number of columns than there are",
        ),
        ("SELECT sum(a) OVER\n w AS m FROM t", 1, "the window `w` is not declared"),
        # FROM.
        ("SELECT * FROM\n range(10)", 2, "`RANGE(10)` in FROM is not understood"),
        ("SELECT * FROM (t\n JOIN r ON t.k = r.k)", 1, "SUBQUERY is not understood"),
        (
            "SELECT k FROM t\nPIVOT (sum(a) FOR k IN (1, 2))",
            1,
            "PIVOT can't be kept incrementally",
        ),
        (
            "SELECT t.k FROM t,\nLATERAL (SELECT max(r.a) AS m FROM r WHERE r.k = t.k) q",
            2,
            "a LATERAL subquery can't be kept incrementally",
        ),
        (
            "WITH RECURSIVE w AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM w)\nSELECT n FROM w",
            1,
            "WITH RECURSIVE can't be kept incrementally",
        ),
        (
            "SELECT t.k FROM t LEFT JOIN\n r ON EXISTS (SELECT 1 FROM u WHERE u.k = t.k)",
            2,
            "a subquery in the ON of an outer join",
        ),
        (
            "SELECT k FROM t LEFT SEMI JOIN\n r ON t.k IN (SELECT u.k FROM u)",
            2,
            "a subquery in the ON of a semi join",
        ),
        (
            "SELECT k FROM t LEFT ANTI JOIN\n r ON EXISTS (SELECT 1 FROM u WHERE u.k = r.k)",
            2,
            "a subquery in the ON of a semi join",
        ),
        ("SELECT t.k FROM t JOIN r ON\n t.k = max(r.k)", 2, "an aggregate in the ON of a join"),
        (
            "SELECT * FROM VALUES\n (1), (2, 3)",
            2,
            "rows of VALUES have different numbers of columns",
        ),
        (
            "SELECT k, x FROM t LEFT JOIN LATERAL\n explode(array(k)) AS l(x)",
            2,
            "an outer join or an ON with LATERAL is not understood",
        ),
        # WHERE works on each row alone.
        ("SELECT k FROM t WHERE\n sum(a) > 1", 2, "an aggregate in WHERE"),
        (
            "SELECT k FROM t WHERE\n row_number() OVER (ORDER BY k) = 1",
            2,
            "a window function in WHERE",
        ),
        # Generators.
        (
            "SELECT\n explode(array(k)) AS x, explode(array(a)) AS y FROM t",
            2,
            "two generators in one SELECT list",
        ),
        ("SELECT\n explode(array(k)) + 1 AS x FROM t", 2, "a generator in the SELECT list"),
        (
            "SELECT k,\n explode(collect_list(a)) AS x FROM t GROUP BY k",
            2,
            "an aggregate in a generator",
        ),
        (
            "SELECT\n explode(array(1, 2)) AS x, count(*) AS n FROM t",
            2,
            "a generator in a SELECT list with aggregates or window functions",
        ),
        (
            "SELECT k FROM t LATERAL VIEW\n json_tuple(s, 'a')",
            2,
            "a generator without names for its columns",
        ),
        # Set operations.
        (
            "SELECT k FROM t\nUNION BY NAME SELECT k FROM r",
            1,
            "a set operation BY NAME is not understood",
        ),
        (
            "SELECT k FROM t\nUNION ALL SELECT k, a FROM r",
            1,
            "a set operation over different numbers of columns",
        ),
        # Groups and windows.
        ("SELECT k FROM t\nHAVING k > 1", 2, "HAVING without GROUP BY or an aggregate"),
        (
            "SELECT k, sum(a)\nFROM t GROUP BY CUBE (k, a, b, s, e, x, d)",
            2,
            "more than 64 grouping sets",
        ),
        (
            "SELECT k,\n grouping(a) FROM t GROUP BY ROLLUP (k)",
            2,
            "`grouping` of what is not grouped by",
        ),
        (
            "SELECT k,\n grouping_id(k) AS g FROM t GROUP BY ROLLUP (k, a)",
            2,
            "`grouping_id` of some of the keys",
        ),
        (
            "SELECT k,\n grouping(k) FROM t GROUP BY k",
            2,
            "`grouping` without GROUPING SETS, ROLLUP or CUBE",
        ),
        ("SELECT\n a, sum(b) AS m FROM t GROUP BY k", 2, _ungrouped("a")),
        ("SELECT\n r.a, sum(b) AS m FROM t JOIN r USING (k) GROUP BY k", 2, _ungrouped("a")),
        ("SELECT k FROM t GROUP BY k HAVING\n a > 1", 2, _ungrouped("a")),
        ("SELECT k FROM t GROUP BY k ORDER BY\n a LIMIT 1", 2, _ungrouped("a")),
        ("SELECT k,\n sum(max(a)) AS m FROM t GROUP BY k", 2, "an aggregate in an aggregate"),
        (
            "SELECT k, sum(a) AS m FROM t GROUP BY k HAVING\n rank() OVER (ORDER BY k) = 1",
            2,
            "a window function in HAVING",
        ),
        (
            "SELECT k FROM t\nQUALIFY rank() OVER (ORDER BY sum(a)) = 1",
            2,
            "an aggregate in QUALIFY of rows that are not grouped",
        ),
        (
            "SELECT k FROM t ORDER BY\n sum(a) LIMIT 1",
            2,
            "an aggregate in ORDER BY of rows that are not grouped",
        ),
        # Order.
        ("SELECT DISTINCT ON (k) k,\n a FROM t", 1, "DISTINCT ON is not understood"),
        (
            "SELECT DISTINCT k\nFROM t ORDER BY a LIMIT 1",
            1,
            "SELECT DISTINCT is ordered by what it does not select",
        ),
        ("SELECT k FROM t\nORDER BY k OFFSET 3", 1, "OFFSET without LIMIT"),
        ("SELECT k FROM t ORDER BY k\nLIMIT 1 + 1", 2, "LIMIT and OFFSET have to be numbers"),
        (
            "SELECT k FROM t UNION SELECT k FROM r\nORDER BY rank() OVER (ORDER BY k) LIMIT 1",
            1,
            "a window function in ORDER BY of a whole query",
        ),
        ("SELECT k, a AS k FROM t ORDER BY\n k LIMIT 1", 2, "`k` could be two columns"),
        # Subqueries.
        (
            "SELECT k FROM t WHERE a = (\nSELECT a FROM r)",
            2,
            "a scalar subquery that may give several rows",
        ),
        (
            "SELECT k FROM t WHERE a = (\nSELECT r.a FROM r WHERE r.k = t.k ORDER BY r.a LIMIT 1)",
            2,
            "LIMIT in a correlated subquery",
        ),
        (
            (
                "SELECT k FROM t WHERE k IN (\n"
                "WITH w AS (SELECT r.k FROM r WHERE r.k = t.a) SELECT k FROM w)"
            ),
            2,
            "a CTE reaches out of its query",
        ),
        (
            (
                "SELECT k FROM t WHERE k IN (\n"
                "SELECT r.k FROM r WHERE r.k = t.a UNION ALL SELECT r.k FROM r)"
            ),
            2,
            "a set operation reaches out of its subquery",
        ),
        (
            "SELECT k FROM t WHERE EXISTS (\nSELECT max(r.a) FROM r WHERE r.k = t.k)",
            2,
            "EXISTS over an aggregate, which always has a row",
        ),
        (
            "SELECT k,\n EXISTS (SELECT max(r.a) FROM r WHERE r.k = t.k) AS e FROM t",
            2,
            "EXISTS over an aggregate, which always has a row",
        ),
        (
            "SELECT k FROM t WHERE\n 0 IN (SELECT count(*) FROM r WHERE r.k = t.k)",
            2,
            "IN over an aggregate, which always has a row",
        ),
        (
            "SELECT k FROM t WHERE\n a NOT IN (SELECT max(r.a) FROM r WHERE r.k = t.k)",
            2,
            "IN over an aggregate, which always has a row",
        ),
        (
            (
                "SELECT k FROM t WHERE EXISTS (\n"
                "SELECT 1 FROM r WHERE r.k = t.k HAVING count(*) < 2)"
            ),
            2,
            "HAVING in a correlated subquery, which may leave a row of no rows",
        ),
        (
            (
                "SELECT k FROM t WHERE EXISTS (SELECT 1 FROM r WHERE r.k = t.k\n"
                "QUALIFY row_number() OVER (ORDER BY r.a) = 2)"
            ),
            2,
            "a window function in a correlated subquery",
        ),
        (
            (
                "SELECT k FROM t WHERE a > (\n"
                "SELECT count(*) + (SELECT max(u.a) FROM u) FROM r WHERE r.k = t.k)"
            ),
            2,
            "a subquery beside an aggregate of a correlated subquery",
        ),
        (
            "SELECT k FROM t WHERE a IN (\nSELECT DISTINCT r.a FROM r WHERE r.k = t.k)",
            2,
            "DISTINCT in a correlated subquery",
        ),
        (
            "SELECT k FROM t WHERE a > ALL (\nSELECT a FROM r)",
            2,
            "ANY and ALL over a subquery are not understood",
        ),
        (
            "SELECT k FROM t WHERE\n (k, a) IN (SELECT k FROM r)",
            2,
            "IN compares different numbers of columns",
        ),
        (
            "SELECT k FROM t WHERE\n (k, a) NOT IN (SELECT k, a FROM r)",
            2,
            "NOT IN over several columns",
        ),
        (
            "SELECT k FROM t WHERE\n (k IN (SELECT k FROM r)) IS NULL",
            2,
            "IN (SELECT …) inside an expression",
        ),
        ("SELECT\n k IN (SELECT k FROM r) AS i FROM t", 2, "IN (SELECT …) inside an expression"),
        (
            (
                "SELECT k FROM t WHERE EXISTS (SELECT 1 FROM r WHERE EXISTS (\n"
                "SELECT 1 FROM u WHERE u.k = t.k))"
            ),
            2,
            "a subquery that reaches out over two levels, or over a grouping",
        ),
        (
            (
                "SELECT k, count(*) AS n FROM t GROUP BY k HAVING EXISTS (\n"
                "SELECT 1 FROM r WHERE r.k = t.a)"
            ),
            2,
            "a subquery that reaches out over two levels, or over a grouping",
        ),
        # References out of a subquery that are impossible.
        *(
            (f"SELECT k FROM t WHERE EXISTS (\n{inner})", line, reason)
            for inner, line, reason in [
                (
                    "SELECT 1 FROM r LEFT JOIN u ON u.k = t.k",
                    2,
                    "the ON of an outer join reaches out of its subquery",
                ),
                (
                    "SELECT 1 FROM r LEFT SEMI JOIN u ON u.k = t.k",
                    2,
                    "the ON of a semi join reaches out of its subquery",
                ),
                (
                    "SELECT 1 FROM u JOIN r ON r.k = t.k RIGHT JOIN u v ON v.k = r.k",
                    2,
                    "a RIGHT JOIN in a correlated subquery",
                ),
                (
                    "SELECT 1 FROM r LATERAL VIEW explode(array(t.a)) l AS x WHERE x = r.a",
                    2,
                    "a generator reaches out of its subquery",
                ),
                (
                    "SELECT 1 FROM (SELECT r.k FROM r WHERE r.k = t.k) q",
                    2,
                    "a subquery in FROM reaches out to a query around it",
                ),
                (
                    "SELECT 1 FROM (SELECT r.k + t.k AS z FROM r) q",
                    2,
                    "the SELECT list reaches out of its subquery",
                ),
                ("SELECT 1 FROM VALUES (t.a) AS v(x)", 2, "VALUES holds more than constants"),
                (
                    "SELECT 1 FROM r GROUP BY t.a",
                    2,
                    "GROUP BY or PARTITION BY reaches out of its subquery",
                ),
                (
                    "SELECT rank() OVER (ORDER BY r.a + t.a) FROM r",
                    2,
                    "a window function reaches out of its subquery",
                ),
            ]
        ),
        # Texts that are no query of rows.
        ("INSERT INTO t\nSELECT 1", 1, "INSERT is not understood"),
        ("SELECT k FROM t\nCONNECT BY k = a", 1, "CONNECT is not understood"),
    ],
)
def test_what_is_refused_and_on_which_line(text: str, line: int, reason: str) -> None:
    refused = refusal(text)
    assert (refused.line, refused.reason) == (line, reason)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELEC k FRM t", "the query is not understood: Invalid expression"),
        ("SELECT k FROM t WHERE", "the query is not understood: Required keyword"),
        ("SELECT k FROM t WHERE k = :p", "PLACEHOLDER is not understood"),
        (
            "SELECT k, sum(a) AS m FROM t GROUP BY GROUPING SETS ((k), (k))",
            "the same grouping set twice",
        ),
        (
            "SELECT k FROM t WHERE a > (SELECT sum(r.a + t.a) FROM r)",
            "an aggregate of a subquery over columns of the query around it",
        ),
        (
            "SELECT k FROM t WHERE a > (SELECT max(r.a) FROM r WHERE r.k < t.k)",
            (
                "a subquery that aggregates is tied to the query around it by something other"
                " than an equality"
            ),
        ),
        (
            (
                "SELECT k FROM t WHERE EXISTS (SELECT 1 FROM r"
                " WHERE t.k = 1 OR EXISTS (SELECT 1 FROM u WHERE u.k = r.k))"
            ),
            "a subquery that reaches out over two levels",
        ),
        (
            "SELECT count(*) AS n FROM t GROUP BY (SELECT max(a) FROM r)",
            "a subquery in GROUP BY or PARTITION BY",
        ),
        (
            "SELECT sum(a) OVER (PARTITION BY (SELECT max(a) FROM r)) AS m FROM t",
            "a subquery in GROUP BY or PARTITION BY",
        ),
        (
            "SELECT sum((SELECT max(a) FROM r)) OVER (PARTITION BY k) AS m FROM t",
            "a subquery in a window function",
        ),
        ("SELECT sum((SELECT max(a) FROM r)) AS m FROM t", "a subquery in an aggregate"),
        ("SELECT k FROM t GROUP BY 9", "GROUP BY 9 is no place in the SELECT list"),
        ("SELECT k FROM t GROUP BY 0", "GROUP BY 0 is no place in the SELECT list"),
        ("SELECT k, sum(a) AS m FROM t GROUP BY 2", "an aggregate in GROUP BY"),
        ("SELECT k, sum(a) AS m FROM t GROUP BY m", "an aggregate in GROUP BY"),
        ("SELECT k FROM t ORDER BY 7 LIMIT 1", "ORDER BY 7 is no place in the SELECT list"),
        ("SELECT k FROM t ORDER BY k LIMIT 1.5", "LIMIT and OFFSET have to be numbers"),
    ],
)
def test_what_is_refused_without_saying_where(text: str, reason: str) -> None:
    assert refusal(text).reason.startswith(reason)


# The names of the columns


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SELECT * FROM r", ["k", "a"]),
        ("SELECT R.* FROM r", ["k", "a"]),
        ("SELECT * EXCEPT (k) FROM r", ["a"]),
        ("SELECT * FROM r JOIN u USING (k)", ["k", "a", "a"]),
        ("SELECT * FROM r LEFT SEMI JOIN u ON r.k = u.k", ["k", "a"]),
        ("SELECT k, a AS b, a + 1, K AS Big FROM r", ["k", "b", "a + 1", "Big"]),
        ("SELECT q.x FROM (SELECT k, a FROM r) AS q(x, y)", ["x"]),
        ("WITH w(x, y) AS (SELECT k, a FROM r) SELECT * FROM w", ["x", "y"]),
        ("SELECT k FROM r UNION ALL SELECT a AS other FROM u", ["k"]),
        ("VALUES (1, 'one'), (2, 'two')", ["col1", "col2"]),
        ("SELECT posexplode(array(k, a)) FROM r", ["pos", "col"]),
        ("SELECT `k` AS `order by` FROM r", ["order by"]),
    ],
)
def test_what_columns_are_called(text: str, names: list[str]) -> None:
    assert list(parsed(text).names) == names


@pytest.mark.parametrize(
    "text",
    [
        "SELECT upper(w) AS u, count(*) AS n FROM t GROUP BY upper(w)",
        "SELECT upper(w) AS u, count(*) AS n FROM t GROUP BY u",
        "SELECT upper(w) AS u, count(*) AS n FROM t GROUP BY 1",
        "SELECT upper(w) AS u, count(*) AS n FROM t GROUP BY ALL",
    ],
)
def test_a_key_may_be_an_expression_an_alias_or_a_place(text: str) -> None:
    view = View(text, t=("w string", [("a",), ("b",)]))
    view.insert("t", ("b",))
    assert [row[-2:] for row in view.rows] == [("A", 1), ("B", 2)]


def test_an_order_without_a_limit_says_nothing() -> None:
    assert not isinstance(parsed("SELECT k FROM r ORDER BY a").root, TopK)
    assert isinstance(parsed("SELECT k FROM r ORDER BY k LIMIT 2 OFFSET 1").root, TopK)


def test_a_subquery_under_an_alias_is_joined_once() -> None:
    root = parsed(
        "SELECT (SELECT sum(a) FROM r WHERE r.k = t.k) AS m, m + 1 AS n FROM t ORDER BY -m LIMIT 1"
    ).root
    assert sum(isinstance(node, OuterJoin) for node in walk(root)) == 1


def test_a_cte_that_is_read_twice_is_one_node() -> None:
    root = parsed(
        "WITH w AS (SELECT k, max(a) AS m FROM r GROUP BY k)"
        " SELECT x.k FROM w x JOIN w y ON x.m = y.k"
    ).root
    assert sum(isinstance(node, Aggregate) for node in walk(root)) == 1
    assert sum(isinstance(node, Scan) for node in walk(root)) == 1


def test_a_cte_may_hide_an_input() -> None:
    root = parsed("WITH r AS (SELECT k AS z FROM r) SELECT z FROM r").root
    assert [node.input for node in walk(root) if isinstance(node, Scan)] == ["r"]


def test_what_all_branches_of_an_or_share_is_a_condition_of_the_join() -> None:
    root = parsed(
        "SELECT 1 AS one FROM r, u WHERE (r.k = u.k AND r.a = 1) OR (r.k = u.k AND u.a = 2)"
    ).root
    (join,) = [node for node in walk(root) if isinstance(node, InnerJoin)]
    assert len(join.conditions) == 2
    assert len(join.children) == 2


def test_joins_in_a_row_are_one_join() -> None:
    root = parsed("SELECT 1 AS one FROM r JOIN t ON r.k = t.k JOIN u ON t.a = u.a").root
    (join,) = [node for node in walk(root) if isinstance(node, InnerJoin)]
    assert len(join.children) == 3


# The one rule of the algebra: every column has one name in the whole query


def unknown(node: Node) -> frozenset[str]:
    """The columns that a node mentions and that none of its children has."""
    own = {name for child in children(node) for name in child.columns}
    match node:
        case Filter() | InnerJoin() | OuterJoin():
            mentioned = [*node.conditions]
        case Projection():
            mentioned = [value for _, value in node.outputs]
        case Aggregate():
            mentioned = [value for _, value in node.measures]
        case TopK():
            mentioned = [*node.order]
        case SemiJoin():
            mentioned = [c for partner in node.partners for c in partner.conditions]
        case _:
            mentioned = []
    return frozenset().union(*map(free_columns, mentioned)) - own


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_every_column_has_one_name_and_comes_from_below(first: int) -> None:
    for seed in range(first, first + 50):
        given = case(seed)
        root = parse(given.query, given.tables).root
        for node in walk(root):
            assert len(set(node.columns)) == len(node.columns), describe(given)
            assert not unknown(node), describe(given)
            if isinstance(node, UnionAll | SetOperation):
                assert {child.columns for child in children(node)} == {node.columns}
            if isinstance(node, Constant):
                assert {len(row) for row in node.rows} == {len(node.columns)}
