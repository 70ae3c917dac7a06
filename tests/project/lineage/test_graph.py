from collections.abc import Callable

from springhouse.project.declarations.declaration import Project, ReadMode
from springhouse.project.lineage.graph import Graph, Input

SHOP = """
    CREATE STREAMING TABLE orders AS SELECT * FROM STREAM read_files('o', format => 'json');
    CREATE STREAMING TABLE customers AS SELECT * FROM STREAM read_files('c', format => 'json');
    CREATE STREAMING TABLE big AS SELECT * FROM STREAM(orders) JOIN customers USING (id);
    CREATE TEMPORARY VIEW known AS SELECT * FROM orders JOIN customers USING (id);
    CREATE TEMPORARY VIEW better_known AS SELECT * FROM known;
    CREATE MATERIALIZED VIEW daily AS SELECT * FROM better_known;
    CREATE MATERIALIZED VIEW top AS SELECT * FROM daily JOIN orders USING (id) JOIN delta.`x`;
    CREATE MATERIALIZED VIEW bad AS SELECT * FROM orders_quarantine, range(3);
"""

Load = Callable[[str], Project]


def test_inputs_are_seen_through_temporary_views(project: Load) -> None:
    graph = Graph(project(SHOP))
    assert graph.inputs("daily") == (
        Input("orders", ReadMode.TABLE),
        Input("customers", ReadMode.TABLE),
    )
    assert graph.tables_read("daily") == ("orders", "customers")


def test_the_inputs_of_a_table_are_those_of_its_flows(project: Load) -> None:
    declared = project(SHOP)
    graph = Graph(declared)
    assert graph.inputs("big") == (
        Input("orders", ReadMode.STREAM),
        Input("customers", ReadMode.TABLE),
    )
    assert graph.flow_inputs(declared.flows_into("orders")[0]) == (
        Input("read_files", ReadMode.SOURCE),
    )


def test_everything_comes_after_what_it_reads_and_ties_go_by_name(project: Load) -> None:
    order = Graph(project(SHOP)).order
    assert order == ("customers", "orders", "bad", "big", "daily", "top")


def test_the_order_does_not_depend_on_the_order_of_declarations(project: Load) -> None:
    backwards = ";".join(reversed(SHOP.split(";")))
    assert Graph(project(backwards)).order == Graph(project(SHOP)).order


def test_downstream_and_upstream(project: Load) -> None:
    graph = Graph(project(SHOP))
    assert graph.dependents("orders") == ("bad", "big", "daily", "top")
    assert graph.dependents("daily") == ("top",)
    assert graph.downstream("customers") == ("big", "daily", "top")
    assert graph.upstream("top") == ("customers", "orders", "daily")
    assert graph.downstream("top") == ()


def test_a_pathway_for_every_way_from_a_base_table(project: Load) -> None:
    graph = Graph(project(SHOP))
    assert graph.pathways("orders") == (("orders",),)
    assert graph.pathways("big") == (("big",),)
    assert graph.pathways("top") == (
        ("orders", "daily", "top"),
        ("customers", "daily", "top"),
        ("orders", "top"),
        ("x", "top"),
    )
    assert graph.pathways("bad") == (("orders_quarantine", "bad"),)
