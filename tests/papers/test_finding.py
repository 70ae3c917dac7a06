"""A finding that moved fails, whether the paper agrees with it or not."""

import pytest
from _finding import Finding, Number, Page, findings_table

PAPER = "GREEDY's lag is 426 times DYN. PROG.'s."


def finding(times, *, agrees=False, why="It takes fewer steps here.", tolerance=0.1):
    return Finding(PAPER, f"{times:g} times", agrees, why, {"times": times}, tolerance)


@pytest.fixture
def page(tmp_path):
    held = Page("a", tmp_path)
    held.hold([finding(20.0)])
    return Page("a", tmp_path)


@pytest.mark.parametrize("times", [18.2, 20.0, 21.9])
def test_within_its_tolerance_a_finding_may_differ(page, times):
    assert page.problems([finding(times)]) == []


@pytest.mark.parametrize("times", [0.0, 18.1, 22.1, 426.0, float("nan"), float("inf")])
def test_a_number_that_leaves_its_tolerance_fails_in_either_direction(page, times):
    (told,) = page.problems([finding(times)])
    assert told.startswith(f'"{PAPER}" moved: times was 20 ± 10% and is ')


def test_what_was_held_decides_and_not_what_the_script_would_allow_now(page):
    assert page.problems([finding(30.0, tolerance=1.0)])


def test_a_verdict_that_changes_fails_though_its_number_did_not_move(page):
    assert page.problems([finding(20.0, agrees=True)]) == [f'"{PAPER}": differs before, agrees now']


def test_a_finding_that_differs_needs_a_reason_but_in_a_small_run(page, tmp_path):
    (told,) = page.problems([finding(20.0, why="")])
    assert "no reason is known" in told
    assert Page("a", tmp_path, is_small=True).problems([finding(20.0, why="")]) == []


def test_what_is_not_held_and_what_is_gone_fail(page):
    new = Finding("RANDOM is worst.", "it is", agrees=True, numbers={"times": 7.0})
    told = page.problems([new])
    assert any("is not held" in each for each in told)
    assert any("nobody finds it now" in each for each in told)


def test_a_finding_has_to_rest_on_a_number(page):
    told = page.problems([finding(20.0), Finding("It is good.", "it is", agrees=True)])
    assert told == ['"It is good." rests on no number']


def test_nothing_is_about_as_large_as_nothing():
    assert not Number(0.0, 0.5, "agrees").has_moved(0.0)
    assert Number(0.0, 0.5, "agrees").has_moved(0.001)


def test_what_is_held_is_on_the_page(page):
    table = findings_table(page, [finding(21.0)])
    assert "| 21 times. It takes fewer steps here. | 20 (± 10%) | **differs** |" in table


def test_to_settle_says_what_moved(page, capsys):
    assert page.settle([finding(20.0)], hold=False)
    assert not page.settle([finding(40.0)], hold=False)
    assert "moved" in capsys.readouterr().out
    assert page.settle([finding(40.0)], hold=True)
    assert page.settle([finding(41.0)], hold=False)
