"""The note of a commit survives the way through the log."""

import pytest

from springhouse.lake.delta.note import FORMAT, FlowNote, GarbledNote, NewerNote, Note
from springhouse.planner.provenance import Provenance
from springhouse.units import Instant


def test_a_note_comes_back_from_json_as_it_was() -> None:
    note = Note(
        kind="merge",
        at=Instant(1700000000.25),
        before=Provenance.of(orders=3),
        after=Provenance({"orders": frozenset({3, 4})}),
        channel=True,
        freshness=Instant(1699999999.0),
        variant="scd 1",
        reason="new records",
        rows=10,
        rows_added=2,
        rows_removed=1,
        seconds=0.5,
        definition="abc",
        changes=("_changes/a.parquet",),
        state={"tombstones": ("_state/t.parquet",)},
        flows={"in": FlowNote({"springhouse/in/0": (0, 5)}, {"src": {"anchor": 1.5}}, 5, 1)},
        violations={"positive": 3},
    )
    assert Note.from_json(note.as_json()) == note


def test_nothing_changed_and_the_added_files_are_the_change_are_two_things() -> None:
    silent = Note.from_json(Note(kind="append", at=Instant(1.0), changes=()).as_json())
    adding = Note.from_json(Note(kind="append", at=Instant(1.0)).as_json())
    assert (silent.changes, silent.changes_data) == ((), False)
    assert (adding.changes, adding.changes_data) == (None, True)


def test_fields_of_a_newer_release_are_ignored_and_kept() -> None:
    flow = {"rows_in": 5, "colour": "red"}
    told = Note(kind="append", at=Instant(1.0)).as_json()
    told |= {"from_the_future": [1], "flows": {"in": flow}}
    note = Note.from_json(told)
    assert (note.kind, note.at, note.flows["in"].rows_in) == ("append", 1.0, 5)
    again = note.as_json()
    assert again["from_the_future"] == [1]
    assert again["flows"]["in"]["colour"] == "red"


def test_every_note_says_its_format() -> None:
    assert Note(kind="append", at=Instant(1.0)).as_json()["format"] == FORMAT


def test_a_note_from_before_formats_is_of_the_first() -> None:
    assert Note.from_json({"kind": "append", "at": 1}) == Note(kind="append", at=Instant(1.0))


def test_a_newer_format_is_refused() -> None:
    told = Note(kind="append", at=Instant(1.0)).as_json() | {"format": FORMAT + 1}
    with pytest.raises(NewerNote, match=f"format {FORMAT + 1}"):
        Note.from_json(told)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("format", "one"),
        ("format", 0),
        ("format", True),
        ("at", "yesterday"),
        ("at", None),
        ("at", 10**400),
        ("rows", 1.5),
        ("rows", True),
        ("kind", 1),
        ("channel", "yes"),
        ("changes", "a.parquet"),
        ("changes", [1]),
        ("after", {"orders": 3}),
        ("after", [3]),
        ("flows", []),
        ("flows", {"in": 1}),
        ("flows", {"in": {"offsets": {"a": [1]}}}),
        ("flows", {"in": {"offsets": {"a": [1, "2"]}}}),
        ("state", {"sums": 1}),
        ("holds", {"add": "many"}),
    ],
)
def test_a_field_of_the_wrong_type_is_named(field: str, value: object) -> None:
    told = Note(kind="append", at=Instant(1.0)).as_json() | {field: value}
    with pytest.raises(GarbledNote, match=field):
        Note.from_json(told)


@pytest.mark.parametrize("value", [None, 1, "text", [], {}, {"kind": "append"}])
def test_what_is_no_note_is_garbled(value: object) -> None:
    with pytest.raises(GarbledNote):
        Note.from_json(value)
