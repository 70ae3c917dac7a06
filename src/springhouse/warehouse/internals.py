"""Which parts does an open warehouse have?

The parts are for the rooms of Springhouse, its tests and its benchmarks. They may change with every
release; users use `Warehouse`.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from springhouse.errors import DeclarationError, ProjectErrors
from springhouse.lake.lake import Lake
from springhouse.lake.sinks.sink_registry import known_sinks
from springhouse.lake.sources.source_registry import known_sources
from springhouse.lake.spark.session import LazySession, Spark
from springhouse.lake.storage.storage import Storage
from springhouse.project.declarations.declaration import Place, Project
from springhouse.project.declarations.secrets import Configuration
from springhouse.project.from_yaml import read_pipeline_file
from springhouse.project.load import load
from springhouse.project.settings import NODE_NAME, check_setting
from springhouse.units import Instant
from springhouse.warehouse.node.permits import Permits
from springhouse.warehouse.watch import Watch

_ALONE = "local"
"""The name of a node that is not part of a cluster."""


@dataclass(frozen=True)
class Internals:
    """The parts of an open warehouse: its project, its lake, and the watch over both."""

    project: Project
    lake: Lake
    watch: Watch

    @property
    def node(self) -> str:
        """The name of this node."""
        return node_name(self.project.configuration)


@dataclass(frozen=True)
class Opening:
    """How a warehouse is opened; with `read_only`, Spark does not write its log either."""

    clock: Callable[[], Instant]
    on_spark_start: Callable[[], None]
    permits: Permits | None = None
    read_only: bool = False


def node_name(configuration: Mapping[str, str]) -> str:
    """The name of this node, as configured."""
    return NODE_NAME.find(configuration) or _ALONE


def open_internals(folder: Path, configuration: Mapping[str, str], opening: Opening) -> Internals:
    """Load a project and open its lake; raises all errors of the project at once."""
    _check(configuration)
    # A Python file of the project may use Spark while it is loaded, so Spark has to be ready first.
    # The pipeline file has all settings that Spark needs.
    location = folder.resolve()
    settings = Configuration({}, location)
    lakes: list[Lake] = []
    with suppress(DeclarationError):  # `load` raises it again, with all other errors.
        pipeline = read_pipeline_file(location)
        written = {key: each.value for key, each in pipeline.configuration.items()}
        settings = settings.overridden(written).overridden(configuration)
        lakes.append(_open_lake(pipeline.name, pipeline.storage, settings, opening))
    session = LazySession(lambda: lakes[0].spark.session())  # noqa: PLW0108  perhaps none
    declared = load(folder, session, known_sources({}), known_sinks({}))
    settings = settings.overridden(declared.configuration).overridden(configuration)
    project = replace(declared, configuration=settings)
    (lake,) = lakes
    watch = Watch(project, lake, opening.clock, node_name(settings), opening.permits)
    return Internals(project, lake, watch)


def _open_lake(name: str, storage: str, settings: Configuration, opening: Opening) -> Lake:
    place = Storage.at(storage, settings.folder)
    # The nodes of a cluster share the storage, but the Spark of each node has a log of its own.
    node = NODE_NAME.find(settings)
    file = f"spark-{node}.log" if node else "spark.log"
    is_logged = "://" not in place.root and not opening.read_only
    spark = Spark(
        settings,
        f"springhouse {name}",
        Path(place.root) / "logs" / file if is_logged else None,
        on_start=opening.on_spark_start,
        folder=settings.folder,
    )
    return Lake(place, spark, settings.folder, opening.clock)


def _check(configuration: Mapping[str, str]) -> None:
    """Raise every error in the settings of the caller."""
    place = Place("configuration", 0)
    found = (check_setting(key, value, place) for key, value in configuration.items())
    errors = [error for error in found if error is not None]
    if errors:
        raise ProjectErrors(errors)
