"""Which refreshes are best done from one scan of the change that they all read?

Section 2.1 of 001: it may be more efficient to scan the partitions of a table that changed once,
and to refresh all tables that are made from them in one job. What is shared is a change, from one
version of a table to another. For a change of r rows that n views read, seconds are

    each alone    n × r × scan
    one scan      START + r × (scan + KEEP) + n × r × KEPT

    scan          READ, and NET beyond it where several commits, or rewritten files, have to be
                  weighed up against each other

What the process itself can read costs less, and nothing to keep; and if it is little, the process
remembers it anyway. One job runs on one track, view after view. So it is chosen only where it saves
a good part of what the refreshes take.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from statistics import fmean

from springhouse.planner.logs import Logs, newest_note
from springhouse.planner.placement import change_fits_here, may_remember_change
from springhouse.planner.refresh_plan import OneScan, RefreshPlan
from springhouse.planner.search.operators import WidgetVariant
from springhouse.planner.way.refresh_cost import WAYS
from springhouse.units import Seconds

# In the seconds of `refresh_cost`: about 1.8 times the processor time that was measured.
_START = 0.2
_READ, _NET, _KEEP, _KEPT = 0.6e-6, 2.0e-6, 0.8e-6, 0.3e-6
_READ_HERE, _NET_HERE = 0.25e-6, 1.0e-6

_ROW_BYTES = 50
"""What a row takes in a file, where nobody says how many there are."""

_LEAST_SHARE = 0.1
"""Which part of what the refreshes should take one scan has to save."""

_MOST_SHARE = 0.8
"""Reading the change is at most this part of a refresh, whatever the formula says."""

_UNKNOWN = 1.0
"""What a refresh takes of which nothing is known."""

_MADE_ANEW = WAYS[WidgetVariant.BATCH]


@dataclass(frozen=True)
class TableChange:
    """The rows of a table that are other ones in version `until` than in version `since`.

    It is read `here`, by the process, or by Spark. It has to be `netted` where several commits may
    have changed the same row.
    """

    table: str
    since: int
    until: int
    rows: int
    netted: bool
    here: bool = False

    def saved(self, views: int) -> float:
        """The seconds that one scan saves so many views."""
        if self.here:
            return (views - 1) * self.rows * (_READ_HERE + self.netted * _NET_HERE)
        scan = self.rows * (_READ + self.netted * _NET)
        return views * scan - (_START + scan + self.rows * (_KEEP + views * _KEPT))


def from_one_scan(
    logs: Logs, lead: RefreshPlan, others: Iterable[RefreshPlan]
) -> list[RefreshPlan]:
    """A refresh, and those of the others that are best done with it, from one scan.

    Each of them says what it shares, and with whom. It stays alone where that would not save
    enough; the others are looked at only if it takes a large change in.
    """
    changes = _large_changes(logs, lead)
    waiting = list(others) if changes else []
    job, most = [lead], 0.0
    for change in changes:
        found = [lead, *(each for each in waiting if _reads(logs, each, change))]
        usual = fmean(each.seconds or _UNKNOWN for each in found)
        saved = change.saved(len(found)) * fmean(map(_pace, found))
        saved = min(saved, _MOST_SHARE * usual * (len(found) - 1))
        if saved > max(_LEAST_SHARE * usual * len(found), most):
            names = tuple(each.table for each in found)
            scan = OneScan(change.table, change.since, change.until, names, Seconds(saved))
            job, most = [replace(each, scan=scan) for each in found], saved
    return job


def pays_for_rest(plan: RefreshPlan, left: float) -> bool:
    """Whether its scan saves a refresh as much as it costs to start before it has to.

    With so much of its rest `left`, it comes that much more often.
    """
    saved = plan.scan.saved_by_each if plan.scan is not None else 0.0
    return left * (plan.seconds or _UNKNOWN) <= saved


def _pace(plan: RefreshPlan) -> float:
    """How many times as long as the formulas say a refresh takes here, as far as that is known."""
    return plan.decision.cost.correction if plan.decision is not None else 1.0


def _large_changes(logs: Logs, plan: RefreshPlan) -> list[TableChange]:
    """The changes that a refresh takes in, without those that are remembered anyway."""
    ranges = ((key, *versions) for key in plan.versions if (versions := _range(logs, plan, key)))
    changes = (_change(logs, *each) for each in ranges)
    return [each for each in changes if each is not None and not may_remember_change(each.rows)]


def _reads(logs: Logs, plan: RefreshPlan, change: TableChange) -> bool:
    # What can't be is seen without a look at the log of the view.
    if plan.versions.get(change.table) != change.until:
        return False
    return _range(logs, plan, change.table) == (change.since, change.until)


def _range(logs: Logs, plan: RefreshPlan, key: str) -> tuple[int, int] | None:
    """Between which versions of an input a refresh takes the change in; None if it does not."""
    if plan.way == _MADE_ANEW or plan.first or plan.driver not in (None, key):
        return None
    note = newest_note(logs, plan.table)
    since = note.read.get(key) if note is not None else None
    until = plan.versions[key]
    return (since, until) if since is not None and since < until else None


def _change(logs: Logs, key: str, since: int, until: int) -> TableChange | None:
    """What the log of a table says of a change; None if it does not tell all of it."""
    between = [each for each in logs.log(key).commits() if since < each.version <= until]
    if len(between) != until - since:
        return None
    changing = [each for each in between if each.changes_data]
    rows = 0
    for each in changing:
        note, whole = each.note, each.appends_only
        # Rows of rewritten files go, and come again, and most of them are the same.
        guessed = each.size // _ROW_BYTES * (1 if whole else 2)
        rows += guessed if note is None else note.rows_added + note.rows_removed
    all_ours = all(each.note is not None for each in changing)
    netted = not all(each.appends_only for each in changing) and not (
        all_ours and len(changing) == 1
    )
    return TableChange(key, since, until, rows, netted, all_ours and change_fits_here(rows))
