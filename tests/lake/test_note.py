"""What a commit says of itself survives the log."""

from springhouse.lake.note import FlowNote, Note
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


def test_a_note_of_a_later_release_is_read_as_far_as_it_is_known() -> None:
    told = Note(kind="append", at=Instant(1.0)).as_json() | {"from_the_future": [1]}
    assert Note.from_json(told) == Note(kind="append", at=Instant(1.0))
