"""A plug-in without our base class still has the defaults of that class."""

from typing import Any

from springhouse.lake.sinks.sink import Changes, Sink
from springhouse.lake.sources.adapted import adapted
from springhouse.lake.sources.source import Range, Source


class Counter:
    """A source with some methods of its own; others are missing."""

    largest_range = 10

    def __init__(self) -> None:
        self.memory: dict[str, Any] = {"read": 0}
        self.folder_is_there = False

    @property
    def warning(self) -> str | None:
        return None if self.folder_is_there else "the folder is not there"

    def latest(self) -> dict[str, int]:
        return {"0": 7}

    def read(self, spark: object, ranges: object) -> str:
        self.memory["read"] += 1
        return "rows"

    def size(self, ranges: object) -> int:
        return 100


def source(plugin: object) -> Source:
    return adapted(Source, plugin)  # type: ignore[type-abstract]


def test_what_a_plugin_has_comes_from_the_plugin() -> None:
    counter = Counter()
    adapter = source(counter)
    assert (adapter.latest(), adapter.size({}), adapter.largest_range) == ({"0": 7}, 100, 10)
    assert adapter.warning == "the folder is not there"
    counter.folder_is_there = True
    assert adapter.warning is None


def test_the_defaults_use_what_the_plugin_has() -> None:
    adapter = source(Counter())
    assert adapter.glance(None, {}) == "rows"  # type: ignore[arg-type,comparison-overlap]
    assert adapter.memory == {"read": 1}


def test_what_is_set_is_set_in_the_plugin() -> None:
    counter = Counter()
    source(counter).memory = {"read": 9}
    assert counter.memory == {"read": 9}


def test_a_subclass_stays_as_it_is() -> None:
    class Pager(Sink):
        def write(self, changes: Changes, versions: Range) -> None: ...

    pager = Pager()
    assert adapted(Sink, pager) is pager  # type: ignore[type-abstract]
    pager.close()


def test_a_sink_without_close_can_be_closed() -> None:
    class Pager:
        def __init__(self) -> None:
            self.taken: list[Range] = []

        def write(self, changes: Changes, given: Range) -> None:
            self.taken.append(given)

    pager = Pager()
    sink = adapted(Sink, pager)  # type: ignore[type-abstract]
    sink.write([], Range(0, 3))  # type: ignore[arg-type]
    sink.close()
    assert pager.taken == [Range(0, 3)]
    assert type(sink).__name__ == "Pager"
