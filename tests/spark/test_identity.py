"""What was made anew is not what it was: never skipped, never doubled, never a traceback."""

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from springhouse.house import House

FILES = """
CREATE STREAMING TABLE orders AS SELECT id FROM
  STREAM read_files('data', format => 'json', schema => 'id BIGINT');
"""


def put(folder: Path, name: str, *ids: int) -> None:
    (folder / "data").mkdir(exist_ok=True)
    (folder / "data" / name).write_text("".join(f'{{"id": {each}}}\n' for each in ids))


def make(place: Path, *commits: list[int]) -> None:
    """A Delta table of others with one commit per list, in the place of what is there."""
    shutil.rmtree(place, ignore_errors=True)
    for ids in commits:
        write_deltalake(place, pa.table({"id": pa.array(ids, pa.int64())}), mode="append")


def rows(folder: Path, table: str) -> list[int]:
    found = DeltaTable(folder / "storage" / "tables" / table).to_pyarrow_table()
    return sorted(next(iter(row.values())) for row in found.to_pylist())


def refreshed(folder: Path, **settings: str) -> dict[str, str]:
    """Bring everything up to date in a process of its own, as it were; what failed, and why."""
    house = House(folder, configuration=settings)
    return {name: failure.problem for name, failure in house.refresh().failures.items()}


def test_a_view_over_a_table_that_was_made_anew_with_as_many_versions(project: Any) -> None:
    folder = project(
        "CREATE MATERIALIZED VIEW total AS SELECT sum(id) AS n FROM delta.`rates`;"
        "CREATE MATERIALIZED VIEW shown AS SELECT n + 0 AS n FROM total;"
        "CREATE MATERIALIZED VIEW both AS "
        "  SELECT t.n + r.id AS n FROM total t CROSS JOIN delta.`rates` r;"
    )
    make(folder / "rates", [1], [2])
    house = House(folder)
    assert house.refresh().ok
    assert (rows(folder, "total"), rows(folder, "shown")) == ([3], [3])

    make(folder / "rates", [10], [20])
    assert house.refresh().ok
    assert (rows(folder, "total"), rows(folder, "shown")) == ([30], [30])
    assert rows(folder, "both") == [40, 50]

    make(folder / "rates", [100], [200])
    assert refreshed(folder) == {}
    assert (rows(folder, "total"), rows(folder, "shown")) == ([300], [300])
    assert rows(folder, "both") == [400, 500]
    # What says the same is not computed again and again.
    assert [done.committed for done in House(folder).refresh().done] == []
