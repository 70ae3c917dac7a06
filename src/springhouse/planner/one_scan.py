"""Which refreshes are best done from one scan of the change that they all read?

Section 2.1 of paper 001: it may be more efficient to scan the changed partitions of a table once,
and to refresh all tables made from them in one job. Here the views share a change: the rows between
two versions of a table. For a change of r rows that n views read, the seconds are

    each alone    n × r × scan
    one scan      START + r × (scan + KEEP) + n × r × KEPT

    scan          READ; plus NET if several commits may have changed the same row, or files were
                  rewritten

If the process itself can read the change, the scan costs less, and KEEP and KEPT are 0. The process
remembers a small change anyway. One job runs on one track, view after view. So the planner chooses
one job only if it saves a good part of the seconds of its refreshes.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from statistics import fmean

from springhouse.planner.delta_logs import Logs, newest_note
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
"""The bytes of a row in a file, where the number of rows is unknown."""

_LEAST_SHARE = 0.1
"""One scan has to save at least this part of the seconds of its refreshes."""

_MOST_SHARE = 0.8
"""Reading the change is at most this part of a refresh, whatever the formula says."""

_UNKNOWN = 1.0
"""The assumed seconds of a refresh without a known past."""

_MADE_ANEW = WAYS[WidgetVariant.BATCH]


@dataclass(frozen=True)
class TableChange:
    """The rows of a table that differ between the versions `since` and `until`.

    The process reads the change itself if it is `here`; else Spark does. The change has to be
    `netted` if several commits may have changed the same row.
    """

    table: str
    since: int
    until: int
    rows: int
    netted: bool
    here: bool = False

    def saved(self, views: int) -> float:
        """The seconds that one scan saves this number of views."""
        if self.here:
            return (views - 1) * self.rows * (_READ_HERE + self.netted * _NET_HERE)
        scan = self.rows * (_READ + self.netted * _NET)
        return views * scan - (_START + scan + self.rows * (_KEEP + views * _KEPT))


def from_one_scan(
    logs: Logs, lead: RefreshPlan, others: Iterable[RefreshPlan]
) -> list[RefreshPlan]:
    """A refresh, and those of the others that are best done with it, from one scan.

    Each plan in the answer names the shared change and the views that share it. The refresh stays
    alone if a shared scan saves too little. The others matter only if the refresh reads a large
    change.
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
    """Whether a shared scan saves a refresh at least as much as its early start costs.

    `left` is the remaining part of the view's rest: an early start makes refreshes that much more
    frequent.
    """
    saved = plan.scan.saved_by_each if plan.scan is not None else 0.0
    return left * (plan.seconds or _UNKNOWN) <= saved


def _pace(plan: RefreshPlan) -> float:
    """How many times longer a refresh takes than the formulas say; 1 if unknown."""
    return plan.decision.cost.correction if plan.decision is not None else 1.0


def _large_changes(logs: Logs, plan: RefreshPlan) -> list[TableChange]:
    """The changes that a refresh reads, without those that the process remembers anyway."""
    ranges = ((key, *versions) for key in plan.versions if (versions := _range(logs, plan, key)))
    changes = (_change(logs, *each) for each in ranges)
    return [each for each in changes if each is not None and not may_remember_change(each.rows)]


def _reads(logs: Logs, plan: RefreshPlan, change: TableChange) -> bool:
    # This check does not need the log of the view.
    if plan.versions.get(change.table) != change.until:
        return False
    return _range(logs, plan, change.table) == (change.since, change.until)


def _range(logs: Logs, plan: RefreshPlan, key: str) -> tuple[int, int] | None:
    """The versions between which a refresh reads the change of an input; None if it reads none."""
    if plan.way == _MADE_ANEW or plan.first or plan.driver not in (None, key):
        return None
    note = newest_note(logs, plan.table)
    since = note.read.get(key) if note is not None else None
    until = plan.versions[key]
    return (since, until) if since is not None and since < until else None


def _change(logs: Logs, key: str, since: int, until: int) -> TableChange | None:
    """A change, from the log of its table; None if commits are missing."""
    between = [each for each in logs.log(key).commits() if since < each.version <= until]
    if len(between) != until - since:
        return None
    changing = [each for each in between if each.changes_data]
    rows = 0
    for each in changing:
        note, whole = each.note, each.appends_only
        # The rows of a rewritten file count twice: as deleted and as added.
        guessed = each.size // _ROW_BYTES * (1 if whole else 2)
        rows += guessed if note is None else note.rows_added + note.rows_removed
    all_ours = all(each.note is not None for each in changing)
    netted = not all(each.appends_only for each in changing) and not (
        all_ours and len(changing) == 1
    )
    return TableChange(key, since, until, rows, netted, all_ours and change_fits_here(rows))
