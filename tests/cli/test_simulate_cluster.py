"""`springhouse simulate cluster`, for people and for programs."""

import json

from springhouse.cluster import election

FEW = ("simulate", "cluster", "--seeds", "5")


def test_a_few_seeds(springhouse):
    answer = springhouse(*FEW)
    assert (answer.code, answer.err) == (0, "")
    header, *rows = answer.out.splitlines()
    assert header.split() == ["a", "run", "average", "at", "most"]
    assert rows[-1] == "no law was broken: 5 nodes, 10 units, seed 1 to 5"


def test_json_tells_every_run(springhouse):
    answer = springhouse(*FEW, "--nodes", 3, "--json")
    told = json.loads(answer.out)
    assert (told["nodes"], told["broken"]) == (3, 0)
    assert [run["seed"] for run in told["runs"]] == [1, 2, 3, 4, 5]
    assert all(run["elections"] >= 1 for run in told["runs"])


def test_the_story_of_one_seed(springhouse):
    answer = springhouse("simulate", "cluster", "--seed", 7, "--story")
    assert answer.code == 0
    assert "leads in term" in answer.out
    assert "all troubles end" in answer.out


def test_a_broken_law_says_how_to_see_it_again(springhouse, monkeypatch):
    monkeypatch.setattr(election, "is_up_to_date", lambda candidate, own: True)
    answer = springhouse("simulate", "cluster", "--seeds", 200, "--seed", 1)
    assert answer.code == 1
    assert "a law is broken (nothing lost)" in answer.err
    assert "replay it with: springhouse simulate cluster --nodes 5 --units 10 --seed" in answer.err
    assert "Traceback" not in answer.err


def test_wrong_usage_is_told(springhouse):
    assert springhouse("simulate", "cluster", "--nodes", 0).code == 2
    told = springhouse(*FEW, "--story")
    assert told.code == 2
    assert "a story needs one seed, not several" in told.err
