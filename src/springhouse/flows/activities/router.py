"""Which way does each row go?

A router is a boundary of subflows (000 section 5.1): many flows can stem from it. Expectations are
a router too: what stays, and what goes to quarantine, in the same pass.
"""

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from springhouse.flows.activities.each import set_aside
from springhouse.flows.expressions import Compiled, column
from springhouse.flows.graph import FlowError, Output


class Router:
    """Each row leaves by the first port whose condition holds, or by the last port if none does."""

    def __init__(self, conditions: Sequence[Compiled]) -> None:
        self._conditions = conditions

    def take(self, port: int, pack: pa.RecordBatch) -> Iterable[Output]:
        left = pack
        outputs: list[Output] = []
        for way, condition in enumerate(self._conditions):
            if not left.num_rows:
                return outputs
            holds = pc.fill_null(column(condition(left), left.num_rows), False)
            chosen = left.filter(holds)
            if chosen.num_rows:
                outputs.append((way, chosen))
                left = left.filter(pc.invert(holds))
        if left.num_rows:
            outputs.append((len(self._conditions), left))
        return outputs

    def end(self, port: int) -> Iterable[Output]:
        return ()


class Judge:
    """Expectations as a router of the same pass: 0 are the rows that stay, 1 the quarantine.

    `expected` gives for each name its condition, whether a broken row is "kept", "dropped", "set
    aside" or a "failure", and the condition's text. `violations` counts the rows that broke each.
    """

    def __init__(self, name: str, expected: Mapping[str, tuple[Compiled, str, str]]) -> None:
        self._name = name
        self._expected = expected
        self.violations: dict[str, int] = dict.fromkeys(expected, 0)

    def take(self, port: int, pack: pa.RecordBatch) -> Iterable[Output]:
        outputs: list[Output] = []
        gone = pa.repeat(pa.scalar(False), pack.num_rows)
        for name, (condition, fate, text) in self._expected.items():
            holds = pc.fill_null(column(condition(pack), pack.num_rows), False)
            broken = pc.and_not(pc.invert(holds), gone)
            count = pc.sum(pc.invert(holds)).as_py() or 0
            self.violations[name] += count
            if count and fate == "failure":
                raise FlowError(
                    f'{count} row{"s" if count != 1 else ""} in "{self._name}" broke the '
                    f'expectation "{name}": {text}'
                )
            if fate == "set aside" and pc.any(broken).as_py():
                reason = f"expectation {name}: {text}"
                outputs.append((1, set_aside(pack.filter(broken), reason, self._name)))
            if fate in ("set aside", "dropped"):
                gone = pc.or_(gone, broken)
        staying = pack.filter(pc.invert(gone)) if pc.any(gone).as_py() else pack
        if staying.num_rows:
            outputs.append((0, staying))
        return outputs

    def end(self, port: int) -> Iterable[Output]:
        return ()
