"""A refreshed view equals its query: random queries, data and changes, in DuckDB.

Every weight must also be +1 or -1, and a deleted row must exist: the warehouse raises otherwise. A
failure prints the command that replays it alone: `python tests/views/replay.py SEED`.
"""

import gc
import math
import multiprocessing
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor

import pytest
from random_cases import case, describe
from random_queries import OPERATORS
from replay import Verdict, all_judged

COMPARED = 2_000
MOST_REFUSED = 0.03
SEEDS = range(math.ceil(COMPARED / (1 - MOST_REFUSED)))
SHOWN = 3


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPoolExecutor]:
    """Processes that judge cases, one per core."""
    with ProcessPoolExecutor(
        max_workers=os.cpu_count(),
        # Not a fork: DuckDB and Arrow have threads, which do not survive one.
        mp_context=multiprocessing.get_context("spawn"),
        # A case makes some 100,000 short-lived objects: looking for cycles less often is faster.
        initializer=gc.set_threshold,
        initargs=(100_000,),
    ) as processes:
        yield processes


def judged(
    pool: ProcessPoolExecutor, seeds: range, only: str | None = None, size: int = 20
) -> list[Verdict]:
    """The verdicts on some cases, `size` of them at a time."""
    chunks = [seeds[start : start + size] for start in range(0, len(seeds), size)]
    found = pool.map(all_judged, chunks, [only] * len(chunks))
    return [verdict for each in found for verdict in each]


def fail_if_wrong(verdicts: Iterable[Verdict]) -> None:
    """Report errors: the first few cases in full, and the seeds of the others."""
    wrong = [verdict for verdict in verdicts if verdict.is_wrong]
    lines = [f"{describe(case(each.seed, each.only))}\n{each}\n" for each in wrong[:SHOWN]]
    lines += [f"also wrong: {[each.seed for each in wrong[SHOWN:]]}"] if wrong[SHOWN:] else []
    if lines:
        pytest.fail("\n".join(lines), pytrace=False)


def test_a_refreshed_view_is_its_query_recomputed(pool: ProcessPoolExecutor) -> None:
    verdicts = judged(pool, SEEDS)
    refused = Counter(verdict.refused for verdict in verdicts if verdict.refused)
    reasons = "\n".join(f"{count:5} {reason}" for reason, count in refused.most_common())
    sys.stdout.write(f"{refused.total()} of {len(verdicts)} cases are refused\n{reasons}\n")
    fail_if_wrong(verdicts)
    assert refused.total() <= MOST_REFUSED * len(verdicts), reasons
    assert len(verdicts) - refused.total() >= COMPARED


@pytest.mark.parametrize("operator", OPERATORS)
def test_an_operator_on_its_own(operator: str, pool: ProcessPoolExecutor) -> None:
    verdicts = judged(pool, range(10), operator, size=5)
    fail_if_wrong(verdicts)
    assert any(verdict.refused is None for verdict in verdicts)
