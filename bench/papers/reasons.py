"""Why do some ratios of Table 5 of 004 differ from the paper's?

The paper says that its rates, selectivities, costs and sizes were real ones, and does not give
them; ours differ. If that is the reason, a change of this assumption alone must move the ratio
towards the paper's. Each line of the result is one such change: the assumption, its new value, and
the resulting ratio beside the paper's.

The paper's own numbers reveal some of its assumptions:

* Two days of history. The lag of CrawlSelection, which reads whole tables, is 4.94 over twelve
  hours and 81.4 over ten weeks. If it grows with the fetched data, (b + 35 d) / (b + 0.25 d) is
  16.5 for a base of b and d a day, so b is two days.
* 72 CPU seconds to start an operator. SearchPreprocessing and FeedbackPrioritization are repaired
  by two steps each, on very different data, at nearly the same lag: 0.0399 and 0.0485.
* The output of converters is off by 50 %, too. Sync/Batch of FeedbackPrioritization costs 38 times
  Async/Batch at 1.4 times its lag: sizes drift, and few plans make most of the cost.

The page of Table 6 lists its own trials.

Run: `python bench/papers/reasons.py [--seeds 2] [--jobs 2]`.
"""

import argparse
import csv
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from statistics import fmean

import table5
from _finding import Finding, Page, add_hold_option, findings_table
from _table import RESULTS, UNLIMITED, Task, magnitude, measured
from table6 import clicks_of, dear_starts, two_days

from springhouse.simulate.workflow_model import Model
from springhouse.simulate.workflow_run import Method, WorkflowConditions

WEEK = 7 * 24.0
BEST = Method.ASYNC_INCR
_FIELDS = ("reason", "world", "who", "number", "ours", "paper", "seeds")


@dataclass(frozen=True)
class World:
    """A changed model, perhaps with more noise than ours."""

    said: str
    model: Callable[[Model], Model] | None = None
    noisy_converters: bool = False


@dataclass(frozen=True)
class Reason:
    """An assumption that changes step by step, and the ratios that should follow."""

    name: str
    workflow: str
    methods: Sequence[Method]
    numbers: Sequence[str]
    worlds: Sequence[World]
    hours: float


def clicks(times: float) -> World:
    """A click adds more data to read."""
    return World(
        f"a click is {times:g} times as much to read", lambda model: clicks_of(model, times)
    )


AS_IT_IS = World("as it is")
SHORT = World("two days of history", two_days)
DEAR = World("two days of history, dear starts", dear_starts)
WANDERING = World("two days of history, noisy converters", two_days, noisy_converters=True)
REASONS = [
    Reason(
        "FeedbackPrioritization: batch reads a long history, whose size is known",
        "FeedbackPrioritization",
        (Method.SYNC_INCR, Method.ASYNC_BATCH, Method.SYNC_BATCH),
        ["lag", "cost"],
        [AS_IT_IS, SHORT, DEAR, WANDERING],
        10 * WEEK,
    ),
    Reason(
        "SearchPreprocessing: clicks cost little (two weeks)",
        "SearchPreprocessing",
        [Method.SYNC_INCR, Method.ASYNC_BATCH],
        ["cost"],
        [AS_IT_IS, clicks(30.0), clicks(300.0)],
        2 * WEEK,
    ),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--again", action="store_true", help="print the CSV, run nothing")
    add_hold_option(parser)
    options = parser.parse_args()
    if not options.again:
        with ProcessPoolExecutor(options.jobs) as pool:
            # By their numbers, because functions do not travel between processes.
            found = pool.map(tried, range(len(REASONS)), repeat(options.seeds))
            _write([row for rows in found for row in rows])
    rows = read()
    held, checked = page(), findings(rows)
    settled = held.settle(checked, hold=options.hold)
    text = told(rows[0]["seeds"], held, checked)
    print(text)
    (RESULTS / "reasons.md").write_text(text, encoding="utf-8")
    if not settled:
        sys.exit(1)


def tried(number_of_reason: int, seeds: int) -> list[dict[str, str]]:
    """A line for each world and method of one reason."""
    return list(_tried(REASONS[number_of_reason], range(1, seeds + 1)))


def _tried(reason: Reason, seeds: Sequence[int]) -> Iterator[dict[str, str]]:
    for world in reason.worlds:
        best = _means(reason, world, BEST, seeds)
        for method in reason.methods:
            ours = _means(reason, world, method, seeds)
            for name in reason.numbers:
                of, to = (
                    getattr(table5.PAPER[reason.workflow, each.value], name)
                    for each in (method, BEST)
                )
                ratios = (f"{each:.4g}" for each in (ours[name] / best[name], of / to))
                line = (reason.name, world.said, method.value, name, *ratios, str(len(seeds)))
                yield dict(zip(_FIELDS, line, strict=True))


def _means(
    reason: Reason, world: World, method: Method, seeds: Sequence[int]
) -> Mapping[str, float]:
    rows = [
        measured(
            Task(
                world.said,
                reason.workflow,
                method.value,
                WorkflowConditions(
                    reason.hours,
                    machines=UNLIMITED,
                    seed=seed,
                    noisy_converters=world.noisy_converters,
                ),
                method,
                change=world.model,
            )
        )
        for seed in seeds
    ]
    return {name: fmean(row[name] for row in rows) for name in reason.numbers}


def page() -> Page:
    return Page("004-reasons")


def findings(rows: Sequence[Mapping[str, str]]) -> list[Finding]:
    """Whether a ratio is near the paper's in a changed world, line by line."""
    return [
        Finding(
            f"{row['reason']}; {row['world']}: the {row['number']} of {row['who']} is "
            f"{float(row['paper']):,.4g} times Async/Incr's.",
            f"{float(row['ours']):,.3g} times",
            magnitude(float(row["ours"]), float(row["paper"])),
            "More than ten times apart",
            {"times": float(row["ours"])},
        )
        for row in rows
    ]


def told(seeds: str, held: Page, checked: Sequence[Finding]) -> str:
    """The page."""
    about = (
        f"`bench/papers/reasons.py`, average of {seeds} seeds, unlimited machines. One assumption "
        "of Table 5 at a time is changed, and nothing else; a ratio is of lag or cost to that of "
        "Async/Incr in the same changed world. The script says how two days of history, dear "
        "starts (72 CPU seconds) and noisy converters follow from the paper's own numbers. What "
        "was tried for Table 6 is on "
        "[its page](table6.md)."
    )
    return "\n".join(
        [
            "## What was changed to see whether it is the reason",
            "",
            about,
            "",
            findings_table(held, checked),
            "",
            MEANS,
        ]
    )


MEANS = """- **Clicks: the reason holds.** Where a click is 300 times as much to read, Sync/Incr of
  SearchPreprocessing costs 8.3 times Async/Incr (the paper: 7.4), and Async/Batch 830 times (286).
  A click of 30 kB is none; but something as large, that is done once a day and not with every
  batch, is most of what the paper's Async/Incr costs. What it was is not said.
- **History: it holds for lag, with dear starts.** With two days of history the lag of
  FeedbackPrioritization in batch falls from 281,000 to 79,000 times Async/Incr's (over ten weeks
  two days grow to 72), and with dear starts to 9,300: within ten times of the paper's 3,195. But in
  that world the lag of Sync/Incr is 3.4 times Async/Incr's, where the paper has 48.7: starts can't
  be most of its repairs.
- **Noisy converters** are the only change that makes Sync/Batch dearer than Async/Batch at about
  the same lag: 18 times (the paper: 38). They overshoot otherwise: Async/Batch then costs 11 times
  Async/Incr (5,051). So sizes probably wandered in the paper, by less than here.
"""


def read() -> list[dict[str, str]]:
    with (RESULTS / "reasons.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _write(rows: Sequence[Mapping[str, str]]) -> None:
    with (RESULTS / "reasons.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, _FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
