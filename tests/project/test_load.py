from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from springhouse.errors import ProjectErrors
from springhouse.project.declarations.declaration import Project
from springhouse.project.load import load

Files = str | Mapping[str, str]

ORDERS = "CREATE STREAMING TABLE orders AS SELECT * FROM STREAM read_files('x', format => 'csv');\n"
YAML = """\
name: shop
storage: storage
catalog: main
database: shop
configuration: {springhouse.tracks: "2", spark.a: "1"}
libraries: [{glob: {include: all/**}}]
"""


def test_a_project_from_several_files(project: Callable[[Files], Project], tmp_path: Path) -> None:
    loaded = project(
        {
            "spark-pipeline.yml": YAML,
            "all/b.sql": "CREATE MATERIALIZED VIEW main.shop.v AS SELECT * FROM Shop.Orders",
            "all/a.sql": "SET spark.a = 2;" + ORDERS,
        }
    )
    assert (loaded.name, loaded.storage, loaded.folder) == ("shop", "storage", tmp_path.resolve())
    assert (loaded.catalog, loaded.database) == ("main", "shop")
    assert loaded.configuration == {"springhouse.tracks": "2", "spark.a": "2"}
    assert (list(loaded.tables), list(loaded.views)) == (["orders"], ["v"])
    assert loaded.views["v"].query.references[0].name == "orders"
    assert [flow.name for flow in loaded.flows_into("orders")] == ["orders"]


def test_everything_that_is_wrong_is_told_at_once_in_the_order_of_the_files(
    errors: Callable[[Files], list[str]],
) -> None:
    found = errors(
        {
            "spark-pipeline.yml": YAML.replace('"2"', "2"),
            "all/b.sql": "SET springhouse.track = 2;\nCREATE MATERIALIZED VIEW v AS SELECT (1",
            "all/a.sql": ORDERS + "DROP x;\n" + ORDERS,
            "all/c.py": "1 / 0\n",
        }
    )
    assert [message.split("\n")[0] for message in found] == [
        "all/a.sql:2: DROP is not a statement of a project",
        'all/a.sql:3: "orders" is declared twice',
        'all/b.sql:1: unknown configuration key "springhouse.track"',
        "all/b.sql:2: this ( is never closed",
        "all/c.py:1: ZeroDivisionError: division by zero",
        'spark-pipeline.yml:5: "springhouse.tracks" takes a text, and 2 is a number',
    ]


def test_a_folder_without_a_project_is_an_error_like_any_other(tmp_path: Path) -> None:
    with pytest.raises(ProjectErrors, match="1 error in this project"):
        load(tmp_path)


def test_sources_that_the_caller_knows_are_known(write: Callable[[Files], Path]) -> None:
    folder = write("CREATE STREAMING TABLE t AS SELECT * FROM STREAM read_weather('Oslo')")
    assert load(folder, known_sources={"read_weather"}).tables.keys() == {"t"}
    with pytest.raises(ProjectErrors):
        load(folder)


def test_a_file_that_is_not_text_is_an_error(write: Callable[[Files], Path]) -> None:
    folder = write(ORDERS)
    (folder / "all/b.sql").write_bytes(b"\xff\xfe")
    with pytest.raises(ProjectErrors) as caught:
        load(folder)
    assert [str(error) for error in caught.value.errors] == [
        "all/b.sql:1: this file is not UTF-8 text: it has the byte 0xff\n  hint: Save it as UTF-8."
    ]
