"""What would it cost to refresh a view in one way or another?

The formula counts seconds on the machine on which the rates were measured:

    full          START + rows × ROW
    state         in addition: full × (rows read again / rows) + hidden rows × HIDDEN_ROW
    other ways    queries × QUERY + rows read × LOOKED_AT
                  + (changed rows × relations + rows that the changed rows meet) × CHANGED
                  + further rows of the view that come or go × MADE

`past_refreshes` corrects it in two ways: by the speed of this machine, one factor for all views,
and by a factor for the queries of this view.
"""

from dataclasses import dataclass, replace

from springhouse.planner.search.operators import WidgetVariant

WAYS = {
    WidgetVariant.BATCH: "full",
    WidgetVariant.INCREMENTAL: "incremental",
    WidgetVariant.GROUP_RECOMPUTE: "group recompute",
    WidgetVariant.ASYNCHRONOUS: "asynchronous",
}
"""The names of ways in logs and reports."""

_START = 0.25
_ROW = 0.6e-6
_QUERY = 0.12
_LOOKED_AT = 0.15e-6
_CHANGED = 1.5e-6
_MADE = 4.5e-6
_HIDDEN_ROW = 2e-6
_LEAST_AGAIN = 0.25
_LEAST_BUILDING = 0.5


@dataclass(frozen=True)
class WayCost:
    """The cost of refreshing a view in one way now.

    `rows_met` are rows of other tables that touched groups need. `rows_made` is a guess of the
    further rows that the view gains or loses, besides the changed rows. `state_seconds` are the
    additional seconds of a recomputation that also builds state.
    """

    way: WidgetVariant
    queries: int
    rows_read: int
    rows_changed: int = 0
    relations: int = 0
    rows_met: int = 0
    rows_made: int = 0
    state_seconds: float = 0.0
    correction: float = 1.0

    @property
    def estimate(self) -> float:
        """Seconds by the formula, without correction."""
        if self.way is WidgetVariant.BATCH:
            return _START + self.rows_read * _ROW + self.state_seconds
        changed = (self.rows_changed * self.relations + self.rows_met) * _CHANGED
        writing = self.rows_made * _MADE
        return self.queries * _QUERY + self.rows_read * _LOOKED_AT + changed + writing

    @property
    def seconds(self) -> float:
        return self.estimate * self.correction

    def __str__(self) -> str:
        queries = f"{self.queries} quer{'y' if self.queries == 1 else 'ies'}"
        read = f", {self.rows_read:,} rows read" if self.rows_read else ""
        changed = f", {self.rows_changed:,} changed" if self.rows_changed else ""
        become = self.rows_changed + self.rows_made
        result = f", which become {become:,}" if self.rows_made else ""
        return f"{WAYS[self.way]}: {queries}{read}{changed}{result}, about {self.seconds:.1f} s"


def with_state(plain: WayCost, read_again: float, hidden_rows: int) -> WayCost:
    """The cost of a recomputation that also builds state, from the cost of the plain one.

    Its extra steps read `read_again` times as many rows as the plain query, at least a quarter.
    """
    again = max(read_again, _LEAST_AGAIN) * plain.estimate
    beyond = max(again + hidden_rows * _HIDDEN_ROW, _LEAST_BUILDING)
    return replace(plain, state_seconds=beyond)
