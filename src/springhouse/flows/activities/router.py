"""Which way does each row go?

A router is a boundary of subflows (000 section 5.1), because several flows can begin at it.
Expectations are a router, too: one pass divides the kept rows from the quarantined rows.
"""

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from springhouse.flows.activities.per_pack import set_aside
from springhouse.flows.flow_graph import FlowError, Output
from springhouse.flows.row_expressions import CompiledExpression, column


class Router:
    """Each row leaves by the port of the first condition that holds, else by the last port."""

    def __init__(self, conditions: Sequence[CompiledExpression]) -> None:
        self._conditions = conditions

    def take(self, port: int, pack: pa.RecordBatch) -> Iterable[Output]:
        left = pack
        outputs: list[Output] = []
        if not pack.num_rows:
            return outputs
        for way, condition in enumerate(self._conditions):
            holds = column(condition(left), left.num_rows)
            count = holds.true_count
            if count == left.num_rows:
                outputs.append((way, left))
                return outputs
            if count:
                outputs.append((way, left.filter(holds)))
                left = left.filter(_not_true(holds))
        outputs.append((len(self._conditions), left))
        return outputs

    def end(self, port: int) -> Iterable[Output]:
        return ()


class ExpectationRouter:
    """Expectations as a router: port 0 gives the kept rows, port 1 the quarantined rows.

    `expected` has for each name the condition, the fate of a row that breaks it ("kept", "dropped",
    "set aside" or "failure"), and the condition's text. `violations` counts these rows by name.
    """

    def __init__(
        self, name: str, expected: Mapping[str, tuple[CompiledExpression, str, str]]
    ) -> None:
        self._name = name
        self._expected = expected
        self.violations: dict[str, int] = dict.fromkeys(expected, 0)

    def take(self, port: int, pack: pa.RecordBatch) -> Iterable[Output]:
        outputs: list[Output] = []
        gone: pa.BooleanArray | None = None
        for name, (condition, fate, text) in self._expected.items():
            holds = column(condition(pack), pack.num_rows)
            count = pack.num_rows - holds.true_count
            if not count:
                continue
            self.violations[name] += count
            if fate == "failure":
                raise FlowError(
                    f'{count} row{"s" if count != 1 else ""} in "{self._name}" broke the '
                    f'expectation "{name}": {text}'
                )
            broken = _not_true(holds)
            if gone is not None:
                broken = pc.and_not(broken, gone)
            if fate == "set aside" and broken.true_count:
                reason = f"expectation {name}: {text}"
                outputs.append((1, set_aside(pack.filter(broken), reason, self._name)))
            if fate in ("set aside", "dropped"):
                gone = broken if gone is None else pc.or_(gone, broken)
        staying = pack if gone is None else pack.filter(pc.invert(gone))
        if staying.num_rows:
            outputs.append((0, staying))
        return outputs

    def end(self, port: int) -> Iterable[Output]:
        return ()


def _not_true(holds: pa.BooleanArray) -> pa.BooleanArray:
    """The rows for which a condition is false or NULL."""
    return pc.invert(pc.fill_null(holds, False) if holds.null_count else holds)
