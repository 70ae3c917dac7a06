"""Does a refreshed view equal its query? One random case, step by step.

`python tests/views/replay.py 17 [top_k]` prints the case, its compiled statements, and the first
step after which the view differs from its query.
"""

import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from random_cases import Case, case, describe

from springhouse.views.compile import compile_view
from springhouse.views.delta.statement import Bag, Keyed, Statement, Step, Top
from springhouse.views.read.not_compilable import NotCompilable
from warehouse import Row, Warehouse, shared_database


@dataclass(frozen=True)
class Verdict:
    """The result of a case: it is fine if the compiler accepts it and all rows are right."""

    seed: int
    only: str | None = None
    refused: str | None = None
    step: str = ""
    error: str = ""
    extra: "Counter[Row]" = field(default_factory=Counter)
    missing: "Counter[Row]" = field(default_factory=Counter)

    @property
    def is_wrong(self) -> bool:
        return bool(self.error or self.extra or self.missing)

    def __str__(self) -> str:
        lines = [f"wrong: {self.step}"]
        lines += [f"    extra    {row}" for row in self.extra.elements()]
        lines += [f"    missing  {row}" for row in self.missing.elements()]
        lines += [f"    {line}" for line in self.error.splitlines()]
        command = f"{self.seed} {self.only or ''}".rstrip()
        return "\n".join([*lines, f"replay: .venv/bin/python tests/views/replay.py {command}"])


def judged(seed: int, only: str | None = None) -> Verdict:
    """Run a case until its view differs from its query, or to its end."""
    given = case(seed, only)
    step = "compiling"
    try:
        warehouse = Warehouse(given.tables, given.query, database=shared_database())
        for step, perform in _steps(given, warehouse).items():
            perform()
            stored, wanted = warehouse.stored(), warehouse.recomputed()
            if stored != wanted:
                return Verdict(
                    seed, only, step=step, extra=stored - wanted, missing=wanted - stored
                )
    except NotCompilable as refused:
        return Verdict(seed, only, refused=refused.reason)
    except Exception:  # noqa: BLE001  whatever it is, the seed has to be known
        return Verdict(seed, only, step=step, error=traceback.format_exc())
    return Verdict(seed, only)


def all_judged(seeds: range, only: str | None = None) -> list[Verdict]:
    """The verdicts on some cases: the task of one process of a pool."""
    return [judged(seed, only) for seed in seeds]


def _steps(given: Case, warehouse: Warehouse) -> dict[str, Callable[[], None]]:
    """The steps of a case, in order."""
    deltas = [
        {name: (delta.deleted, delta.inserted) for name, delta in change.items()}
        for change in given.changes
    ]
    changes = {
        f"change {number}": partial(warehouse.change, each)
        for number, each in enumerate(deltas, start=1)
    }
    return {"building": partial(warehouse.load, given.rows), **changes}


def _statements(step: Step) -> dict[str, Statement | None]:
    match step:
        case Keyed():
            return {
                "increments": step.increments,
                "merge": step.merge,
                "recompute": step.recompute,
            }
        case Bag():
            return {"change": step.change}
        case Top():
            return {"candidates": step.candidates}


def _written(given: Case) -> Iterator[str]:
    """The statements that build the view, and those of its refreshes."""
    compiled = compile_view(given.query, given.tables)
    for step in compiled.build:
        yield f"-- {step.table or 'the view'}: build\n{step.build.sql}\n"
    for changed in dict.fromkeys(frozenset(change) & compiled.inputs for change in given.changes):
        if changed:
            yield f"-- after a change of {', '.join(sorted(changed))}\n"
        for step in compiled.refresh(changed).steps if changed else ():
            for name, statement in _statements(step).items():
                if statement is not None:
                    yield f"-- {step.table or 'the view'}: {name}\n{statement.sql}\n"


def replay(seed: int, only: str | None = None) -> Iterator[str]:
    """The full description of a case."""
    given, verdict = case(seed, only), judged(seed, only)
    yield describe(given)
    if verdict.refused:
        yield f"refused: {verdict.refused}"
        return
    # If the case does not even compile, the verdict says so.
    with suppress(Exception):
        yield from _written(given)
    yield str(verdict) if verdict.is_wrong else "the view is what its query gives, after each step"


if __name__ == "__main__":
    for text in replay(int(sys.argv[1]), *sys.argv[2:3]):
        sys.stdout.write(f"{text}\n")
