"""This process does small work, Spark does large work, and one module knows the limits."""

import pytest

from springhouse.planner import placement
from springhouse.planner.placement import (
    CHANGE_ROWS,
    COMPARED_ROWS,
    GIVEN_ROWS,
    INPUT_BYTES,
    ONE_JOB_RELATIONS,
    ONE_JOB_ROWS,
    RESULT_ROWS,
    SCANNED_ROWS,
    SENT_TOGETHER_ROWS,
)


def test_a_limit_itself_is_still_small() -> None:
    assert placement.fits_here(INPUT_BYTES)
    assert not placement.fits_here(INPUT_BYTES + 1)
    assert placement.change_fits_here(CHANGE_ROWS)
    assert not placement.change_fits_here(CHANGE_ROWS + 1)
    assert placement.is_sent_together(SENT_TOGETHER_ROWS)
    assert not placement.is_sent_together(SENT_TOGETHER_ROWS + 1)


def test_a_search_needs_a_table_and_values_that_are_small() -> None:
    assert placement.searches_here(SCANNED_ROWS, GIVEN_ROWS)
    assert not placement.searches_here(SCANNED_ROWS + 1, 1)
    assert not placement.searches_here(1, GIVEN_ROWS + 1)


def test_one_job_joins_few_relations_of_few_rows() -> None:
    assert placement.is_one_job(ONE_JOB_RELATIONS, ONE_JOB_ROWS)
    assert not placement.is_one_job(ONE_JOB_RELATIONS + 1, 1)
    assert not placement.is_one_job(1, ONE_JOB_ROWS + 1)


def test_stored_rows_are_compared_here_where_results_are_not_read_back() -> None:
    assert RESULT_ROWS < COMPARED_ROWS
    assert placement.compares_here(RESULT_ROWS + 1)
    assert not placement.reads_result_back(RESULT_ROWS + 1)


@pytest.mark.parametrize("limit", [placement.WHOLE_ROWS, placement.FILTERED_ROWS])
def test_more_rows_are_filtered_than_taken_whole(limit: int) -> None:
    assert placement.filters_here(limit)
    assert placement.takes_whole(limit) == (limit <= placement.WHOLE_ROWS)
