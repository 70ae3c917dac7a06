"""The pages in bench/results/000 and 002 match the stored findings."""

import concurrent_requests
import etl_archetypes
import etl_mixed
from _finding import Page


def test_the_archetypes_as_they_were_measured_last_are_held():
    found = etl_archetypes.Found()
    told = [
        each
        for packs in etl_archetypes.TITLES
        for findings in (
            etl_archetypes.on_time,
            etl_archetypes.on_average_memory,
            etl_archetypes.on_most_memory,
        )
        for each in findings(found, packs)
    ]
    told += etl_archetypes.on_selectivity(found)
    assert Page("000-archetypes").problems(told) == []


def test_mixed_as_it_was_measured_last_is_held():
    assert Page("000-mixed").problems([*etl_mixed.findings(etl_mixed.Found())]) == []


def test_concurrent_requests_as_they_were_measured_last_are_held():
    told = [*concurrent_requests.findings(concurrent_requests.read())]
    assert Page("002-concurrent").problems(told) == []
