"""A source needs two methods; all other methods have a default."""

from collections.abc import Mapping
from typing import Any

import pytest

from springhouse.lake.sources.adapted import adapted
from springhouse.lake.sources.source import Range, Source, SourceContext

RANGES = {"0": Range(3, 5)}


class Small(Source):
    def latest(self) -> Mapping[str, int]:
        return {"0": 5}

    def read(self, spark: Any, ranges: Mapping[str, Range]) -> Any:
        return spark, ranges


class Plain:
    """The same methods without a base class."""

    def latest(self) -> Mapping[str, int]:
        return {"0": 5}

    def read(self, spark: Any, ranges: Mapping[str, Range]) -> Any:
        return spark, ranges


@pytest.fixture(params=["subclass", "other class"])
def source(request: pytest.FixtureRequest) -> Source:
    if request.param == "subclass":
        return Small()
    return adapted(Source, Plain())  # type: ignore[type-abstract]


def test_every_optional_method_has_a_default(source: Source) -> None:
    source.admit()
    source.begin_anew()
    source.sync(RANGES)
    assert source.glance("spark", RANGES) == ("spark", RANGES)  # type: ignore[arg-type]
    assert source.size(RANGES) == 0
    assert source.incarnation() is None
    assert source.mark(5) is None
    assert source.has_mark("5:abc")
    assert source.stepped_back(7, 5) is None


def test_every_optional_value_has_a_default(source: Source) -> None:
    values = (source.memory, source.warning, source.largest_range, source.identified_by)
    assert values == (None, None, None, None)
    assert not source.must_be_there
    assert not source.reads_recreated


def test_offsets_identify_the_records_of_a_source_without_a_memory(source: Source) -> None:
    assert source.identity(RANGES) == RANGES
    source.memory = {}
    assert source.identity(RANGES) is None


class SmallWithContext(Small):
    def __init__(self, context: SourceContext) -> None:
        self.context = context


class PlainWithContext(Plain):
    def __init__(self, context: SourceContext) -> None:
        self.context = context


def test_offsets_do_not_identify_the_records_of_a_source_with_a_context(
    context: SourceContext,
) -> None:
    assert SmallWithContext(context).identity(RANGES) is None
    plain = adapted(Source, PlainWithContext(context))  # type: ignore[type-abstract]
    assert plain.identity(RANGES) is None


def test_a_class_without_the_two_methods_is_no_source() -> None:
    class Silent(Source):
        def latest(self) -> Mapping[str, int]:
            return {}

    with pytest.raises(TypeError, match="read"):
        Silent()  # type: ignore[abstract]
