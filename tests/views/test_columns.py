"""Columns of queries as `check` sees them: it never refuses a query that runs."""

import re
from pathlib import Path
from random import Random

from random_cases import case

from springhouse.errors import ProjectErrors
from springhouse.project.load import load

CASES = 60
PIPELINE = "name: shop\nstorage: storage\nlibraries:\n  - glob:\n      include: all/**\n"


def refused(folder: Path, tables: str, queries: list[str]) -> dict[int, str]:
    """The lines of the queries that `check` refuses, with its messages; each query has one line."""
    views = "".join(f"CREATE MATERIALIZED VIEW v{at} AS {q};\n" for at, q in enumerate(queries))
    (folder / "all").mkdir(parents=True, exist_ok=True)
    (folder / "spark-pipeline.yml").write_text(PIPELINE)
    (folder / "all" / "a.sql").write_text(tables + "\n" + views)
    try:
        load(folder)
    except ProjectErrors as found:
        return {int(str(e.where).rpartition(":")[2]) - 2: e.problem for e in found.errors}
    return {}


def test_a_query_that_runs_is_accepted_and_a_misspelt_column_is_not(tmp_path: Path) -> None:
    found = 0
    for seed in range(CASES):
        made = case(seed)
        tables = "".join(
            f"CREATE STREAMING TABLE {name} ({', '.join(f'{c} {t}' for c, t in columns.items())})"
            f" AS SELECT * FROM STREAM read_files('{name}', format => 'json', schema => "
            f"'{', '.join(f'{c} {t}' for c, t in columns.items())}'); "
            for name, columns in made.tables.items()
        )
        query = " ".join(made.query.split())
        assert refused(tmp_path, tables, [query]) == {}, (seed, query)
        named = list(re.finditer(r"\b(q\d+)\.(\w+)\b", query))
        if not named:
            continue
        chosen = Random(seed).choice(named)
        wrong = f"{query[: chosen.start(2)]}zzz{query[chosen.end(2) :]}"
        told = refused(tmp_path, tables, [wrong])
        found += bool(told)
        assert all("zzz" in problem or chosen[2] in problem for problem in told.values()), wrong
    # Some queries make names that a declaration does not show.
    assert found > CASES * 0.6
