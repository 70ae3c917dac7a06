"""`springhouse simulate workflow`, for people and for programs."""

import json

import pytest

FEW = ("simulate", "workflow", "--hours", "6")
ONE = (*FEW, "feedback-prioritization")


def told(springhouse, *arguments):
    answer = springhouse(*arguments, "--json")
    assert answer.code == 0, answer.err
    return json.loads(answer.out)


def test_three_workflows_by_four_methods(springhouse):
    answer = springhouse(*FEW)
    assert (answer.code, answer.err) == (0, "")
    header, *rows = answer.out.splitlines()
    assert header.split()[:4] == ["workflow", "processing", "median", "lag"]
    assert sum("Async/" in row or "Sync/" in row for row in rows) == 12
    assert rows[-1] == "run     6 h on 1000 machines, seed 1"


def test_the_same_seed_the_same_answer(springhouse):
    def untimed(*arguments):
        return [
            {key: value for key, value in each.items() if "planning" not in key}
            for each in told(springhouse, *ONE, *arguments)
        ]

    assert untimed("--seed", 7) == untimed("--seed", 7)
    assert untimed("--seed", 7) != untimed("--seed", 8)


def test_one_method_and_two_planners(springhouse):
    arguments = ("--method", "async-incr", "--algorithm", "dynamic", "--algorithm", "greedy")
    best, greedy = told(springhouse, *ONE, *arguments)
    assert (best["method"], best["algorithm"]) == ("Async/Incr", "DYN. PROG.")
    assert greedy["algorithm"] == "GREEDY"
    assert greedy["plans"] > best["plans"] > 0
    assert best["invocations"]["split: incremental"] == best["plans"]


def test_a_plot(springhouse, tmp_path):
    file = tmp_path / "lag.svg"
    assert springhouse(*ONE, "--plot", file).code == 0
    assert "Sync/Batch" in file.read_text()


def test_giving_up(springhouse):
    answer = springhouse(*ONE, "--method", "async-incr", "--give-up-after", 1e-9)
    assert answer.code == 0
    assert "gave up after 1e-09 s, at 0.0 of 6 h" in answer.err


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--hours", 0), "0 is not above 0"),
        (("--machines", -1), "-1 is not above 0"),
        (("--method", "fast"), '"fast" is not one of: async-incr, sync-incr'),
        (("--algorithm", "lucky"), '"lucky" is not one of: dynamic, greedy, random'),
        (("laundry",), '"laundry" is not one of: search-preprocessing'),
        (("--plot", "a.pdf"), "neither in .svg nor in .png"),
    ],
)
def test_mistakes(springhouse, arguments, problem):
    answer = springhouse(*FEW, *arguments)
    assert (answer.code, answer.out) == (2, "")
    assert problem in " ".join(answer.err.split())
