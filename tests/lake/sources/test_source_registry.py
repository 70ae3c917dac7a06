"""The registry finds a source by name, and calls it only with arguments that it accepts."""

from importlib.metadata import EntryPoint
from typing import Any

import pytest

from springhouse.errors import SourceError
from springhouse.lake.sources import plugins
from springhouse.lake.sources.source import Source, SourceContext
from springhouse.lake.sources.source_registry import (
    SOURCES,
    SourceSignature,
    known_sources,
    open_source,
    signature_of,
)
from springhouse.project.declarations.declaration import Place, SourceCall

PLACE = Place("transformations/weather.sql", 3)


def call(plugin: str, *arguments: str, **options: str) -> SourceCall:
    return SourceCall(plugin, arguments, options, PLACE)


class Weather(Source):
    def __init__(self, city: str, rate: str = "1") -> None:
        self.city = city
        if not rate.isdigit():
            raise ValueError(f"rate is a number, not {rate!r}")
        self.rate = int(rate)

    def latest(self) -> dict[str, int]:
        return {"0": self.rate}

    def read(self, spark: object, ranges: object) -> Any: ...


class Sensor(Weather):
    def __init__(self, context: SourceContext, city: str) -> None:
        super().__init__(city)
        self.context = context


class Cities(Weather):
    def __init__(self, *cities: str, **options: str) -> None:
        super().__init__(" and ".join(cities))
        self.options = options


class Silent:
    def latest(self) -> dict[str, int]:
        return {}


class SilentSubclass(Silent, Source):  # type: ignore[misc]
    """A class that inherits `read` without defining it."""


class Plain:
    """A class with the methods of a source that does not subclass `Source`."""

    identified_by = ("First",)

    def __init__(self, first: str, password: str = "") -> None:
        self.first, self.password = first, password

    def latest(self) -> dict[str, int]:
        return {"0": int(self.first)}

    def read(self, spark: object, ranges: object) -> str:
        return f"{ranges} on {spark}"


OWN: dict[str, type] = {
    "weather": Weather,
    "sensor": Sensor,
    "cities": Cities,
    "silent": Silent,
    "silent_subclass": SilentSubclass,
    "plain": Plain,
}


def test_a_projects_own_source_gets_its_arguments_and_options(context: SourceContext) -> None:
    source = open_source(call("weather", "Oslo", rate="10"), OWN, context)
    assert isinstance(source, Weather)
    assert (source.city, source.latest()) == ("Oslo", {"0": 10})


def test_names_and_options_ignore_case_as_sql_does(context: SourceContext) -> None:
    source = open_source(call("WEATHER", CITY="Oslo"), OWN, context)
    assert isinstance(source, Weather)
    assert source.city == "Oslo"


def test_the_context_is_given_to_whoever_takes_it(context: SourceContext) -> None:
    source = open_source(call("sensor", "Oslo"), OWN, context)
    assert isinstance(source, Sensor)
    assert (source.city, source.context) == ("Oslo", context)


def test_a_class_may_take_any_arguments(context: SourceContext) -> None:
    source = open_source(call("cities", "Oslo", "Bergen", unit="C"), OWN, context)
    assert isinstance(source, Cities)
    assert (source.city, source.options) == ("Oslo and Bergen", {"unit": "C"})


def test_a_projects_own_source_comes_before_a_built_in_one(context: SourceContext) -> None:
    assert isinstance(open_source(call("sample", "Oslo"), {"sample": Weather}, context), Weather)


def test_installed_packages_bring_sources(
    context: SourceContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    weather = EntryPoint("tides", "calendar:Calendar", SOURCES.group)
    broken = EntryPoint("broken", "no_such_module:Class", SOURCES.group)
    monkeypatch.setattr(plugins, "entry_points", lambda group: [weather, broken])
    assert {"tides", "broken"} <= known_sources({})
    with pytest.raises(SourceError, match="class Calendar behind the source"):
        open_source(call("tides"), {}, context)
    with pytest.raises(SourceError, match='can\'t be imported from "no_such_module:Class"'):
        open_source(call("broken"), {}, context)


@pytest.mark.parametrize(
    ("wrong", "problem", "hint"),
    [
        (
            call("read_fils", "data"),
            'there is no source "read_fils"',
            'Did you mean "read_files"?',
        ),
        (
            call("weather", "Oslo", rat="2"),
            'the source "weather" has no option "rat"',
            'Did you mean "rate"?',
        ),
        (
            call("weather", "Oslo", zone="2"),
            'the source "weather" has no option "zone"',
            "It is called as weather(city, rate => '1').",
        ),
        (
            call("weather"),
            'the source "weather" needs "city"',
            "It is called as weather(city, rate => '1').",
        ),
        (
            call("weather", "Oslo", "2", "3"),
            '3 arguments are too many for "weather"',
            "It is called as weather(city, rate => '1').",
        ),
        (
            call("weather", "Oslo", city="Bergen"),
            '"weather" is given "city" twice',
            "It is called as weather(city, rate => '1').",
        ),
        (
            call("weather", "Oslo", rate="often"),
            """the source "weather" can't be opened: rate is a number, not 'often'""",
            None,
        ),
        (
            call("sensor", "Oslo", context="x"),
            'the source "sensor" has no option "context"',
            "It is called as sensor(city).",
        ),
        (
            call("silent"),
            'the class Silent behind the source "silent" has no method `read`',
            "Subclass springhouse.Source: a source has latest() and read(spark, ranges).",
        ),
        (
            call("silent_subclass"),
            'the class SilentSubclass behind the source "silent_subclass" has no method `read`',
            "Subclass springhouse.Source: a source has latest() and read(spark, ranges).",
        ),
        (
            call("sample", rate="-1"),
            "rate => '-1' is not a number above 0",
            "Give rate as a number above 0.",
        ),
        (
            call("sample", partitions="0"),
            "partitions => '0' is not a whole number, at least 1",
            "Give partitions as a whole number, at least 1.",
        ),
        (
            call("sample", start="soon"),
            "start => 'soon' is not a timestamp such as 2026-01-31 12:00:00",
            "Give start as a timestamp such as 2026-01-31 12:00:00.",
        ),
        (
            call("read_files", "data"),
            "read_files needs a format",
            "Give format => one of json, csv, parquet, text, avro.",
        ),
        (
            call("read_files", "data", format="orc"),
            "format => 'orc' is not one of json, csv, parquet, text, avro",
            "Give format as one of json, csv, parquet, text, avro.",
        ),
        (
            call("read_files", "data", format="csv", heder="true"),
            'read_files has no option "heder" for the format csv',
            'Did you mean "header"?',
        ),
        (
            call("read_files", "data", format="csv", header="yes"),
            "header => 'yes' is not true or false",
            "Give header as true or false.",
        ),
    ],
)
def test_a_wrong_call_is_an_error_with_a_place_and_a_hint(
    wrong: SourceCall, problem: str, hint: str | None, context: SourceContext
) -> None:
    with pytest.raises(SourceError) as raised:
        open_source(wrong, OWN, context)
    assert (raised.value.problem, raised.value.hint) == (problem, hint)
    assert raised.value.where == "transformations/weather.sql:3"


def test_a_class_that_is_no_subclass_is_a_source_too(context: SourceContext) -> None:
    source = open_source(call("plain", "7"), OWN, context)
    assert isinstance(source, Source)
    assert source.latest() == {"0": 7}
    assert source.size({}) == 0


def test_a_class_says_which_of_its_arguments_identify_the_source() -> None:
    assert signature_of(call("plain"), OWN) == SourceSignature(("first", "password"), ("first",))
    assert signature_of(call("sensor"), OWN) == SourceSignature(("city",), None)
    assert signature_of(call("sample"), OWN) == SourceSignature()


def test_all_names_are_known() -> None:
    assert known_sources(OWN) >= {"read_delta", "read_files", "sample", "weather", "sensor"}
