"""Which policy do these words mean?

The words are those of `springhouse.scheduler.*` in a project's `configuration:`, and those that
`str` of a policy returns: the basic algorithm and then, after semicolons, the other choices.
"""

from collections.abc import Mapping
from dataclasses import replace

from springhouse.errors import SpringhouseError
from springhouse.refresh.inheritance.priority import Inheritance, Rule
from springhouse.refresh.policy import (
    Global,
    Policy,
    read_basic,
    read_chopping,
    read_inheritance,
    read_tracks,
)
from springhouse.refresh.ranking.basic import Basic

FIFO = Policy(
    Basic.FIFO, Global(), Inheritance(Rule.NONE), None, heed_promises=False, weigh_last_track=False
)
"""First come, first served, on any free track: a warehouse without a scheduler."""

_HINT = 'Write it like "max-benefit; tracks proportional all; inheritance chain; chopping 3".'


def read_policy(text: str, usual: Policy | None = None) -> Policy:
    """The policy in words; choices that the words leave out are the usual ones.

    >>> str(read_policy("fifo; tracks global; chopping none"))
    'fifo; tracks global; inheritance chain; chopping none; last-track weigh'
    """
    choices: dict[str, str] = {}
    for clause in filter(None, (part.strip() for part in text.split(";"))):
        word, _, rest = clause.partition(" ")
        is_named = word in ("tracks", "inheritance", "chopping", "promises", "last-track")
        choices[word if is_named else "basic"] = rest if is_named else clause
    if not choices:
        raise SpringhouseError("the policy is empty", hint=_HINT)
    return _apply_choices(choices, usual or Policy())


def _apply_choices(choices: Mapping[str, str], policy: Policy) -> Policy:
    for choice, words in choices.items():
        try:
            policy = _apply_choice(policy, choice, words)
        except ValueError as error:
            raise SpringhouseError(f"in the policy, {choice}: {error}", hint=_HINT) from None
    return policy


def _apply_choice(policy: Policy, choice: str, words: str) -> Policy:
    match choice:
        case "basic":
            return replace(policy, basic=read_basic(words))
        case "tracks":
            return replace(policy, tracks=read_tracks(words))
        case "inheritance":
            return replace(policy, inheritance=read_inheritance(words))
        case "chopping":
            return replace(policy, chopping=read_chopping(words))
        case "promises" if words in ("heed", "ignore"):
            return replace(policy, heed_promises=words == "heed")
        case "last-track" if words in ("weigh", "take"):
            return replace(policy, weigh_last_track=words == "weigh")
    known = "heed, ignore" if choice == "promises" else "weigh, take"
    raise ValueError(f'"{words}" is not one of: {known}')
