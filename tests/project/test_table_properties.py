import pytest

from springhouse.project.declarations.contents import PlacedValue
from springhouse.project.declarations.declaration import Place, Promise, RefreshMode
from springhouse.project.declarations.names import Names
from springhouse.project.settings import Holder
from springhouse.project.table_properties import Properties, read_properties
from springhouse.units import Seconds


def read(holder: Holder, **properties: str) -> tuple[Properties, list[str]]:
    written = {
        key.replace("__", "."): PlacedValue(value, Place("a.sql", 2))
        for key, value in properties.items()
    }
    known, errors = read_properties("sales", holder, written, Names(database="shop"))
    return known, [str(error) for error in errors]


def test_without_properties_a_table_is_as_fresh_as_possible_and_strictly_consistent() -> None:
    assert read(Holder.VIEW) == (Properties(), [])
    assert Properties().promise == Promise(None, {}, Seconds(0), 1.0)


def test_the_promises_of_a_view() -> None:
    known, errors = read(
        Holder.VIEW,
        springhouse__staleness="1 minute",
        springhouse__staleness__Customers="1 day",
        springhouse__staleness__shop__orders="1h",
        springhouse__inconsistency="1 week",
        springhouse__priority="10",
        springhouse__refresh="incremental",
        owner__x="kept",
    )
    assert errors == []
    assert known.promise == Promise(
        Seconds(60), {"customers": Seconds(86_400), "orders": Seconds(3_600)}, Seconds(604_800), 10
    )
    assert known.refresh is RefreshMode.INCREMENTAL
    assert known.others == {"owner.x": "kept"}


def test_bounds_along_pathways() -> None:
    said = {"springhouse.staleness.Clicks > shop.score": "1 week", "springhouse.staleness.a>b": "x"}
    known, errors = read(Holder.VIEW, **{key.replace(".", "__"): v for key, v in said.items()})
    assert known.promise.staleness_by_pathway == {"clicks>score": Seconds(604_800)}
    assert known.promise.inconsistency_seconds == 604_800
    assert known.promise.named == {"clicks", "score"}
    assert len(errors) == 1
    assert "springhouse.staleness.a>b" in errors[0]


@pytest.mark.parametrize(
    ("course", "allowed"),
    [
        (("clicks", "score"), 5),
        (("clicks", "counts", "score"), 3),
        (("pages", "score"), 9),
        (("clicks", "counts", "other"), 7),
        (("score", "other"), 1),
        (("pages",), 1),
    ],
)
def test_the_bound_counts_that_names_the_most(course: tuple[str, ...], allowed: float) -> None:
    promise = Promise(
        Seconds(1),
        {
            "score": Seconds(9),
            "clicks>score": Seconds(5),
            "clicks>counts>score": Seconds(3),
            "counts": Seconds(7),
        },
    )
    assert promise.staleness_along(course, inputs={"score", "other", "pages"}) == allowed


def test_the_times_of_a_base_table() -> None:
    known, errors = read(
        Holder.TABLE,
        springhouse__timestamp="placed_at",
        springhouse__lateness="10 minutes",
        springhouse__period="5s",
    )
    assert errors == []
    assert (known.timestamp, known.lateness_seconds, known.period_seconds) == ("placed_at", 600, 5)


def test_how_the_flow_of_one_table_runs() -> None:
    said = {"springhouse.flows.policy": "minimum-memory", "springhouse.flows.pack-bytes": "100000"}
    known, errors = read(Holder.TABLE, **{key.replace(".", "__"): v for key, v in said.items()})
    assert (known.flow_settings, errors) == (said, [])


@pytest.mark.parametrize(
    ("holder", "key", "value", "message"),
    [
        (
            Holder.VIEW,
            "springhouse__stalenes",
            "1m",
            (
                'unknown property "springhouse.stalenes"\n'
                '  hint: Did you mean "springhouse.staleness"?'
            ),
        ),
        (
            Holder.VIEW,
            "springhouse__timestamp",
            "t",
            (
                '"springhouse.timestamp" belongs on a streaming table, and "sales" is a '
                "materialized "
                "view\n  hint: The properties of a materialized view are "
                "springhouse.flows.pack-bytes, springhouse.flows.policy, "
                "springhouse.flows.queue-packs, "
                "springhouse.inconsistency, "
                "springhouse.priority, springhouse.refresh, springhouse.sink.<name>, "
                "springhouse.staleness."
            ),
        ),
        (
            Holder.TABLE,
            "springhouse__refresh",
            "full",
            (
                '"springhouse.refresh" belongs on a materialized view, and "sales" is a streaming '
                "table\n  hint: The properties of a streaming table are "
                "springhouse.flows.pack-bytes, springhouse.flows.policy, "
                "springhouse.flows.queue-packs, "
                "springhouse.inconsistency, springhouse.lateness, springhouse.period, "
                "springhouse.priority, springhouse.recreated, springhouse.reread, "
                "springhouse.sink.<name>, springhouse.staleness, springhouse.timestamp."
            ),
        ),
        (
            Holder.TEMPORARY_VIEW,
            "springhouse__staleness",
            "1m",
            (
                '"springhouse.staleness" belongs on a streaming table or a materialized view, and '
                '"sales" is a view that is not stored\n'
                "  hint: A view that is not stored has no promises: make it a materialized view."
            ),
        ),
        (
            Holder.VIEW,
            "springhouse__staleness",
            "soon",
            (
                '"springhouse.staleness" is "soon", which is not a duration\n  hint: Write it like '
                '"5 minutes", "90s", "1h 30m", "1 day" or "INTERVAL 2 HOURS".'
            ),
        ),
        (
            Holder.VIEW,
            "springhouse__priority",
            "high",
            (
                '"springhouse.priority" is "high", which is not a number above 0\n'
                "  hint: The weight of this table. "
                "A table of priority 10 counts as ten tables of priority 1."
            ),
        ),
        (
            Holder.VIEW,
            "springhouse__priority",
            "nan",
            (
                '"springhouse.priority" is "nan", which is not a number above 0\n'
                "  hint: The weight of this table. "
                "A table of priority 10 counts as ten tables of priority 1."
            ),
        ),
        (
            Holder.VIEW,
            "springhouse__refresh",
            "sometimes",
            (
                '"springhouse.refresh" is "sometimes", which is not one of auto, incremental, '
                "full\n"
                "  hint: How the view is refreshed. With `incremental`, a view that can only be "
                "recomputed is an error; `full` always recomputes it."
            ),
        ),
        (
            Holder.TABLE,
            "springhouse__timestamp",
            " ",
            (
                '"springhouse.timestamp" is " ", which is not the name of a column\n'
                "  hint: The column that dates the records of the table."
            ),
        ),
        (
            Holder.TABLE,
            "springhouse__period",
            "0",
            (
                '"springhouse.period" is "0", which is not a duration above 0\n  hint: Write it '
                'like "5 minutes", "90s", "1h 30m", "1 day" or "INTERVAL 2 HOURS".'
            ),
        ),
        (
            Holder.TABLE,
            "springhouse__flows__policy",
            "fastest",
            (
                '"springhouse.flows.policy" is "fastest", which is not one of locality, '
                "minimum-cost, minimum-memory, mixed, round-robin\n"
                "  hint: The rule that picks the activity of a flow that runs next."
            ),
        ),
        (
            Holder.VIEW,
            "springhouse__flows__pack-bytes",
            "0",
            (
                '"springhouse.flows.pack-bytes" is "0", which is not a whole number of 1 or '
                "more\n  hint: The size of a row pack."
            ),
        ),
        (
            Holder.TABLE,
            "springhouse__flows__pack_bytes",
            "100",
            (
                'unknown property "springhouse.flows.pack_bytes"\n'
                '  hint: Did you mean "springhouse.flows.pack-bytes"?'
            ),
        ),
    ],
)
def test_a_wrong_property_is_named_and_placed(
    holder: Holder, key: str, value: str, message: str
) -> None:
    known, errors = read(holder, **{key: value})
    assert errors == [f"a.sql:2: {message}"]
    assert known == Properties()


def test_all_wrong_properties_are_reported_at_once() -> None:
    _, errors = read(
        Holder.VIEW, springhouse__staleness="x", springhouse__priority="x", springhouse__refresh="x"
    )
    assert len(errors) == 3


def test_a_sink_is_a_plugin_by_name_with_options_that_may_have_dots() -> None:
    known, errors = read(
        Holder.VIEW,
        **{
            "springhouse.sink.out": "kafka",
            "springhouse.sink.out.topic": "sales",
            "springhouse.sink.out.kafka.bootstrap.servers": "127.0.0.1:9092",
            "springhouse.sink.audit": "positioned_file",
        },
    )
    assert not errors
    assert [(sink.name, sink.plugin, dict(sink.options)) for sink in known.sinks] == [
        ("out", "kafka", {"topic": "sales", "kafka.bootstrap.servers": "127.0.0.1:9092"}),
        ("audit", "positioned_file", {}),
    ]


@pytest.mark.parametrize(
    ("key", "problem"),
    [
        ("springhouse.sink.out.topic", 'the sink "out" has options but no plug-in'),
        ("springhouse.sink.my-sink", '"springhouse.sink.my-sink": "my-sink" can\'t name a sink'),
    ],
)
def test_a_sink_that_makes_no_sense_is_named(key: str, problem: str) -> None:
    _, errors = read(Holder.TABLE, **{key: "sales"})
    assert problem in errors[0]
    assert len(errors) == 1
