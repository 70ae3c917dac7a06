"""How much work are statements? From the statements and numbers of rows alone."""

from springhouse.views.compile import compile_view
from springhouse.views.effort import Effort, effort_of, read_again

SCHEMAS = {"sales": {"shop": "int", "amount": "int"}, "shops": {"id": "int"}}


def again(query: str, rows: dict[str, float]) -> float:
    return read_again(compile_view(query, SCHEMAS), rows)


def test_a_refresh_is_its_queries_and_the_relations_that_they_read() -> None:
    query = "SELECT shop, amount FROM sales JOIN shops ON shop = id"
    view = compile_view(query, SCHEMAS)
    rows = {"sales": 1_000.0, "shops": 10.0, "": 1_000.0}
    one = effort_of(view.refresh(frozenset({"sales"})), {"sales": 5.0}, rows)
    assert (one.queries, one.changed, one.made) == (1, 5, 0)
    few = effort_of(view.refresh(frozenset({"shops"})), {"shops": 2.0}, rows)
    assert few == Effort(1, one.relations, 2, made=2 * 100 - 2)


def test_hidden_columns_are_made_of_what_is_read_anyway() -> None:
    assert again("SELECT shop, sum(amount) AS a FROM sales GROUP BY shop", {"sales": 1e6}) == 0.0


def test_a_hidden_table_is_read_for_again() -> None:
    average = "(SELECT avg(amount) FROM sales WHERE shop = s.shop)"
    # Averages, then sales and averages: all sales twice, as the plain query does.
    assert again(f"SELECT * FROM sales s WHERE amount > {average}", {"sales": 1e6}) == 0.0
    # Shops again, only for the averages that the query needs.
    query = f"SELECT * FROM sales s, shops WHERE id = 7 AND shop = id AND amount > {average}"
    assert again(query, {"sales": 0, "shops": 1e6}) == 1.0
