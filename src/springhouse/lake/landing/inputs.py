"""Which rows does a name in a query stand for, in this refresh?

A refresh reads its inputs as of chosen versions. `RefreshInputs` returns the DataFrame for each
name, follows temporary views, and remembers the tables that the query read: a Python function may
read a table that its source code does not show.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from springhouse.errors import LakeError
from springhouse.lake.delta.tables import TableVersion
from springhouse.lake.lake import QUARANTINE, Lake
from springhouse.lake.spark.queries import frame
from springhouse.planner.delta_logs import ids_of, marks_of
from springhouse.project.declarations.declaration import (
    Project,
    Query,
    ReadMode,
    Reference,
    SqlQuery,
)
from springhouse.project.declarations.names import Names
from springhouse.project.lineage.keys import input_key

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class NotThereYet(LakeError):
    """A query reads a table that no refresh has created yet; `key` is that table."""

    def __init__(self, key: str, where: str) -> None:
        super().__init__(
            f'"{key}" is read here, and no refresh has created it yet',
            where=where,
            hint="`springhouse run --once` creates it; `springhouse status` shows what failed.",
        )
        self.key = key


class RefreshInputs:
    """The inputs of one refresh: chosen versions, and the rows of each stream that it reads."""

    def __init__(
        self,
        lake: Lake,
        project: Project,
        versions: Mapping[str, int],
        streams: "Mapping[Reference, DataFrame] | None" = None,
    ) -> None:
        self._lake = lake
        self._project = project
        self._versions = versions
        self._streams = streams or {}
        self._opened: dict[str, TableVersion] = {}
        self.read: dict[str, int] = {}
        # The refresh looks up the id of a table before it opens the table. So a table that is
        # created again in the meantime is not mistaken for the one that the refresh read.
        self.ids: dict[str, str] = {}
        self.marks: dict[str, str] = {}
        self.size = 0

    @property
    def session(self) -> "SparkSession":
        return self._lake.spark.session()

    def frame(self, query: Query) -> "DataFrame":
        """The rows of a query over these inputs."""
        return frame(self.session, query, self.resolve, self._lake.folder)

    def resolve(self, reference: Reference) -> "DataFrame | None":
        """The rows of one reference; None if Spark itself has to read it."""
        if reference in self._streams:
            return self._streams[reference]
        if reference.reading is ReadMode.OTHER:
            return None
        name = self.own_name(reference.name)
        temporary = self._project.temporary_views.get(name)
        if temporary is not None:
            return self.frame(temporary.query)
        if reference.reading is ReadMode.DELTA:
            return self._table(input_key(ReadMode.DELTA, reference.name), reference)
        if self.is_declared(name):
            return self._table(name, reference)
        return None

    def opened(self, query: Query) -> dict[str, TableVersion] | None:
        """The version of each table that a SQL query reads; None if it reads anything else."""
        opened: dict[str, TableVersion] = {}
        return opened if self._open_all(query, opened) else None

    def _open_all(self, query: Query, opened: dict[str, TableVersion]) -> bool:
        if not isinstance(query, SqlQuery):
            return False
        for reference in query.references:
            name = self.own_name(reference.name)
            temporary = self._project.temporary_views.get(name)
            if reference.reading is ReadMode.TABLE and temporary is not None:
                if not self._open_all(temporary.query, opened):
                    return False
            elif reference.reading is ReadMode.DELTA:
                key = input_key(ReadMode.DELTA, reference.name)
                opened[key] = self._open(key, reference)
            elif reference.reading is ReadMode.TABLE and self.is_declared(name):
                opened[name] = self._open(name, reference)
            else:
                return False
        return True

    def own_name(self, name: str) -> str:
        """A name without the project's own catalog and database."""
        return names_of(self._project).parse(name)

    def is_declared(self, name: str) -> bool:
        """Whether `name` is a table or a view of the project, or the quarantine of one."""
        project = self._project
        base = name.removesuffix(QUARANTINE)
        return name in project.tables or base in project.tables or base in project.views

    def _table(self, key: str, reference: Reference) -> "DataFrame":
        return self._open(key, reference).read(self.session, scans=self._lake.remote_scans)

    def _open(self, key: str, reference: Reference) -> TableVersion:
        if key in self._opened:
            return self._opened[key]
        version = self._versions.get(key)
        if version is None:
            newest = self._lake.log(key).newest()
            if newest is None:
                raise NotThereYet(key, str(reference.place))
            version = newest.version
        ids, marks = ids_of(self._lake, {key: version}), marks_of(self._lake, {key: version})
        opened = self._lake.as_of(key, version)
        if opened is None:
            raise NotThereYet(key, str(reference.place))
        self.read[key] = version
        self.ids |= ids
        self.marks |= marks
        self.size += opened.size
        self._opened[key] = opened
        return opened


def names_of(project: Project) -> Names:
    """The rules for names in this project."""
    return Names(project.catalog or Names.catalog, project.database or Names.database)
