"""Is Spark's checkpoint the one whose batches a table counts?

Structured Streaming numbers the batches of a flow, and its checkpoint keeps the numbers. A new
checkpoint begins again at 0, and its batches must not be mistaken for batches in the table. So each
commit of the flow holds the id of the checkpoint (`identity`), with these rules:

    the checkpoint is gone, or it is a different one
        the flow is refused, or begins again under an epoch of its own
    the table has no batch, and the checkpoint has finished some
        the table was created again: the checkpoint is deleted
    batches are finished, but neither staged nor in the table
        the flow is refused: the table was replaced by an older copy
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from springhouse.errors import SourceError
from springhouse.lake.ingest.identity import (
    IdentityPolicy,
    RecordedStreams,
    StreamNote,
    other_source_error,
)
from springhouse.lake.lake import Lake
from springhouse.lake.storage.storage import Storage
from springhouse.project.declarations.declaration import AppendFlow, Project, PythonQuery, Table
from springhouse.project.settings import RECREATED

_READS = "function:"


@dataclass(frozen=True)
class StreamingFlow:
    """A flow that Structured Streaming runs: its folder, and the number of committed batches."""

    flow: AppendFlow
    place: Storage
    epoch: str
    committed: int
    policy: IdentityPolicy

    @property
    def transaction(self) -> str:
        """The transaction whose version counts the batches in the table."""
        return batch_transaction(self.flow, self.epoch)

    def noted(self) -> dict[str, Mapping[str, str]]:
        """The note that names the checkpoint of the batches."""
        now = checkpoint_id(self.place)
        return {_name(self.flow): StreamNote(_READS, now or "", self.epoch).as_json()}


def batch_transaction(flow: AppendFlow, epoch: str = "") -> str:
    """The transaction whose version counts the micro-batches of a flow that are in its table."""
    return f"springhouse/{flow.name}{'~' if epoch else ''}{epoch}/batch"


def settled_stream(lake: Lake, project: Project, table: Table, flow: AppendFlow) -> StreamingFlow:
    """The state of the flow; an error if the table counts the batches of another checkpoint."""
    place = lake.storage.inside("streams", flow.name)
    policy = IdentityPolicy.of(project, table)
    recorded = RecordedStreams(lake.log(table.name), project.flows_into(table.name))
    _prove_not_renamed(lake, project, table, flow, recorded, policy)
    # In this order, so that a batch that another process commits meanwhile is not mistaken for a
    # lost one.
    done, staged, now = _done(place), _staged(place), checkpoint_id(place)
    noted = recorded.stream(_name(flow)) or StreamNote(_READS)
    stored = lake.find(table.name)
    committed = stored.offset(batch_transaction(flow, noted.epoch)) if stored else 0
    # An older release noted no id: its checkpoint counts as the right one, unless it is gone.
    is_same = now is not None and noted.id in ("", now)
    if committed and not is_same:
        if not policy.read_recreated:
            raise _refused(flow, f'the checkpoint of the flow "{flow.name}" is gone')
        if now is None:
            place.remove()
        return StreamingFlow(flow, place, _epoch_after(noted), 0, policy)
    lost = [number for number in done if number >= committed and number not in staged]
    if lost and committed:
        raise _refused(
            flow,
            f'the flow "{flow.name}" has read more than the table "{table.name}" has: an older '
            "copy of the table was put in its place",
        )
    if lost:
        place.remove()
    return StreamingFlow(flow, place, noted.epoch, committed, policy)


def _epoch_after(noted: StreamNote) -> str:
    """The epoch of a new checkpoint; it stays until the table has a batch of that checkpoint."""
    return hashlib.sha256(noted.id.encode()).hexdigest()[:8]


def checkpoint_id(place: Storage) -> str | None:
    """The id that Spark gave the checkpoint of a flow; None if there is none."""
    text = place.inside("checkpoint").read_text("metadata")
    return str(json.loads(text)["id"]) if text else None


def _name(flow: AppendFlow) -> str:
    return f"{flow.name}/stream"


def _done(place: Storage) -> list[int]:
    """The batches that Spark has finished, as far as its checkpoint remembers."""
    files = place.inside("checkpoint", "commits").files()
    return [int(info.base_name) for info in files if info.base_name.isdigit()]


def _staged(place: Storage) -> set[int]:
    return {int(name) for name in place.inside("staged").folders() if name.isdigit()}


def _prove_not_renamed(
    lake: Lake,
    project: Project,
    table: Table,
    flow: AppendFlow,
    recorded: RecordedStreams,
    policy: IdentityPolicy,
) -> None:
    """Raise an error if a new function may be a known function under another name.

    Only the function itself knows its sources, so the names can't be compared by source.
    """
    begun = {
        transaction.removeprefix("springhouse/").rpartition("/")[0].partition("~")[0]
        for commit in lake.log(table.name).commits()
        for transaction in commit.transactions
        if transaction.endswith("/batch")
    }
    declared = {
        each.name
        for each in project.flows_into(table.name)
        if isinstance(each, AppendFlow) and isinstance(each.query, PythonQuery)
    }
    gone = sorted(begun - declared)
    if flow.name not in begun and gone and not policy.reread:
        raise other_source_error(
            flow, [f'the function "{flow.name}"'], [f'the function "{name}"' for name in gone]
        )


def _refused(flow: AppendFlow, problem: str) -> SourceError:
    return SourceError(
        f"{problem}, so it is not known which rows of the flow the table already has",
        where=str(flow.place),
        hint=f'To create the table "{flow.target}" again from the present source: delete its '
        f"folder (tables/{flow.target} in the storage). To keep its rows and add all rows of the "
        f"present source: '{RECREATED.key}' = 'read' in its table_properties. Or put back the "
        "folder `streams` of the storage.",
    )
