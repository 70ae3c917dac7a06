"""Which tables can share a pass, and which stand at the same offsets? Without Spark."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from springhouse.flows.one_pass import NeedsOwnPass
from springhouse.lake.ingest.feeds import Feed
from springhouse.lake.ingest.sharing import Sharing, row_pipeline, same_records, sharing
from springhouse.lake.ingest.source_stream import Stream
from springhouse.lake.ingest.stream_names import Claim, Named
from springhouse.lake.sources.source import Range, Source
from springhouse.lake.sources.source_registry import known_sources
from springhouse.project.declarations.declaration import AppendFlow, Project
from springhouse.project.load import load

SQL = """
CREATE TEMPORARY VIEW paid AS
  SELECT id, amount, kind FROM STREAM read_files('data', format => 'json', schema => '{schema}')
  WHERE amount > 0;
CREATE STREAMING TABLE large AS SELECT id, amount * 2 AS twice FROM STREAM(paid) WHERE amount > 9;
CREATE STREAMING TABLE small (CONSTRAINT known EXPECT (kind IN ('a', 'b')) ON VIOLATION QUARANTINE)
  AS SELECT * FROM STREAM(paid) WHERE amount <= 9;
CREATE STREAMING TABLE every AS SELECT id FROM
  STREAM read_files('data', schema => '{schema}', FORMAT => 'json');
CREATE STREAMING TABLE others AS SELECT id FROM
  STREAM read_files('elsewhere', format => 'json', schema => '{schema}');
CREATE STREAMING TABLE each AS SELECT explode(array(id, amount)) AS n FROM STREAM(paid);
CREATE STREAMING TABLE largest AS SELECT id FROM STREAM(large) WHERE twice > 100;
CREATE STREAMING TABLE larger AS SELECT id AS number FROM STREAM large;
CREATE STREAMING TABLE several;
CREATE FLOW one AS INSERT INTO several BY NAME SELECT id FROM STREAM(large);
CREATE FLOW two AS INSERT INTO several BY NAME SELECT id FROM STREAM(small);
CREATE STREAMING TABLE latest;
CREATE FLOW changed AS AUTO CDC INTO latest FROM STREAM(large)
  KEYS (id) SEQUENCE BY twice STORED AS SCD TYPE 1;
""".replace("{schema}", "id BIGINT, amount BIGINT, kind STRING")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "transformations").mkdir()
    (tmp_path / "transformations" / "all.sql").write_text(SQL)
    (tmp_path / "spark-pipeline.yml").write_text(
        "name: shop\nstorage: storage\nlibraries:\n  - glob:\n      include: transformations/**\n"
    )
    return load(tmp_path, None, known_sources({}), frozenset())


def test_tables_over_one_source_share_it_also_through_temporary_views(project: Project) -> None:
    found = sharing(project)
    files = "read_files('data')"
    assert found["large"] == Sharing(files, ("small", "every"))
    assert found["small"] == Sharing(files, ("large", "every"))
    assert found["every"] == Sharing(files, ("large", "small"))
    assert found["largest"] == Sharing("large", ("larger",))


def test_who_needs_a_pass_of_its_own_is_told_why(project: Project) -> None:
    found = {name: each.why_not for name, each in sharing(project).items() if each.why_not}
    assert found == {
        "others": "no other table reads its source row by row",
        "each": "explode makes several rows of one",
        "several": "it has 2 flows",
        "latest": "changes are applied to it, by key",
    }


def test_a_chain_goes_from_the_source_to_the_table(project: Project) -> None:
    found = row_pipeline(project, project.tables["large"])
    assert [name for name, _ in found.steps] == ["paid", "flow large"]
    with pytest.raises(NeedsOwnPass, match="it has 2 flows"):
        row_pipeline(project, project.tables["several"])


class Numbers(Source):
    """A source without a memory: the same offsets give the same records."""

    def latest(self) -> Mapping[str, int]:
        return {}

    def read(self, spark: object, ranges: Mapping[str, Range]) -> Any: ...


class Remembering(Numbers):
    """A source with a memory, which it does not declare."""

    def __init__(self) -> None:
        self.memory: dict[str, Any] = {}


class Files(Numbers):
    """A source that identifies its records by content, whatever their offsets."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def identity(self, ranges: Mapping[str, Range]) -> object:
        return frozenset(self._names[ranges["0"].start : ranges["0"].end])


def feed(project: Project, table: str, source: Numbers) -> Feed:
    (flow,) = project.flows_into(table)
    assert isinstance(flow, AppendFlow)
    reference = row_pipeline(project, project.tables[table]).reference
    named = Named(table, Claim(flow.name, reference, table, {}, ""))
    return Feed(flow, (Stream(named, source),))


def ranges(table: str, **partitions: tuple[int, int]) -> dict[str, Range]:
    return {f"springhouse/{table}/{p[1:]}": Range(*given) for p, given in partitions.items()}


@pytest.mark.parametrize(
    ("lead", "waits", "taken"),
    [
        ({"p0": (3, 5)}, {"p0": (3, 5)}, {"p0": (3, 5)}),
        ({"p0": (3, 5)}, {"p0": (3, 9)}, {"p0": (3, 5)}),  # more data waits for the other one
        ({"p0": (3, 5)}, {"p0": (1, 5)}, None),  # the other one is behind
        ({"p0": (3, 5)}, {"p0": (4, 5)}, None),  # the other one is ahead
        ({"p0": (3, 5)}, {"p0": (3, 4)}, None),  # the other one has seen less
        ({"p0": (3, 5)}, {}, None),
        ({"p0": (3, 5), "p1": (0, 2)}, {"p0": (3, 5)}, None),  # the other partition is not ours
        ({"p0": (3, 5)}, {"p0": (3, 5), "p1": (0, 2)}, {"p0": (3, 5)}),
    ],
)
def test_they_stand_together_if_the_same_records_wait(
    project: Project,
    lead: dict[str, tuple[int, int]],
    waits: dict[str, tuple[int, int]],
    taken: dict[str, tuple[int, int]] | None,
) -> None:
    large, small = feed(project, "large", Numbers()), feed(project, "small", Numbers())
    found = same_records(large, ranges("large", **lead), small, ranges("small", **waits))
    assert found == (None if taken is None else ranges("small", **taken))


def test_a_source_that_remembers_and_does_not_tell_is_read_by_each(project: Project) -> None:
    large, small = feed(project, "large", Remembering()), feed(project, "small", Remembering())
    given = ranges("large", p0=(0, 1)), ranges("small", p0=(0, 1))
    assert same_records(large, given[0], small, given[1]) is None


def test_files_are_the_same_whatever_their_offsets(project: Project) -> None:
    large = feed(project, "large", Files("old", "a", "b"))
    small = feed(project, "small", Files("b", "a", "c"))
    found = same_records(
        large, ranges("large", p0=(1, 3)), small, ranges("small", p0=(0, 3))
    )  # fmt: skip
    assert found == ranges("small", p0=(0, 2))
    later = ranges("large", p0=(0, 2)), ranges("small", p0=(0, 3))
    assert same_records(large, later[0], small, later[1]) is None
