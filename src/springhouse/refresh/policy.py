"""Which scheduling policy does a warehouse use?

A policy has six parts: the basic algorithm, how tables share the tracks, how priority is inherited,
how much one refresh loads, whether a long refresh may take the last free track, and whether
promises count. The `read_*` functions parse the words of `configuration:`, and `str` of a policy
writes the same words.

    basic        whittle | max-benefit | lookahead | edf | edf-p | random | fifo | round-robin
    tracks       global | edf-partitioned [aggressive]
                 | proportional [basic | all | TRACKS] [aggressive] [k=10]
    inheritance  none | sum | max | max-plus(1.5) | chain
    chopping     none | a number of periods, at least 1 [fixed]
    last-track   weigh | take
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from springhouse.refresh.inheritance.priority import Inheritance, Rule
from springhouse.refresh.ranking.basic import Basic
from springhouse.refresh.ranking.chopping import Chopping
from springhouse.refresh.tracks.edf_partitioned import edf_partitioned
from springhouse.refresh.tracks.proportional import proportional
from springhouse.refresh.tracks.track_layout import TrackLayout, TrackLoad, one_lane


@dataclass(frozen=True)
class Global:
    """Every table may run on every track."""

    def layout(self, loads: Sequence[TrackLoad], tracks: Sequence[int]) -> TrackLayout:
        return one_lane(loads, tracks)

    def __str__(self) -> str:
        return "global"


@dataclass(frozen=True)
class EdfPartitioned:
    """Tracks on which no table misses a deadline, with promotion to other tracks."""

    aggressive: bool = False

    def layout(self, loads: Sequence[TrackLoad], tracks: Sequence[int]) -> TrackLayout:
        return edf_partitioned(loads, tracks, aggressive=self.aggressive)

    def __str__(self) -> str:
        return "edf-partitioned" + " aggressive" * self.aggressive


@dataclass(frozen=True)
class Proportional:
    """Tracks in proportion to load; `allotted` of them: None is all, 0 the fewest possible."""

    allotted: int | None = None
    aggressive: bool = True
    k: float = 10.0

    def layout(self, loads: Sequence[TrackLoad], tracks: Sequence[int]) -> TrackLayout:
        return proportional(
            loads, tracks, allotted=self.allotted, aggressive=self.aggressive, k=self.k
        )

    def __str__(self) -> str:
        share = "all" if self.allotted is None else str(self.allotted or "basic")
        return f"proportional {share}{' aggressive' * self.aggressive} k={self.k:g}"


TrackRule = Global | EdfPartitioned | Proportional


@dataclass(frozen=True)
class Policy:
    """How refreshes are scheduled. `PAPER` is the policy that the paper found best.

    The default adds our own rules: benefit over time (`ranking.patience`), chains
    (`inheritance.priority`), cuts only if they pay (`ranking.chopping`), promises
    (`promises.urgency`), and a condition for the last track (`foresight.last_track`).
    """

    basic: Basic = Basic.WHITTLE
    tracks: TrackRule = field(default_factory=Global)
    inheritance: Inheritance = field(default_factory=Inheritance)
    chopping: Chopping | None = field(default_factory=Chopping)
    heed_promises: bool = True
    weigh_last_track: bool = True

    def __str__(self) -> str:
        inherited = self.inheritance.rule.value
        if self.inheritance.rule is Rule.MAX_PLUS:
            inherited = f"max-plus({self.inheritance.k:g})"
        chopping = "none" if self.chopping is None else str(self.chopping)
        return (
            f"{self.basic.value}; tracks {self.tracks}; "
            f"inheritance {inherited}; chopping {chopping}; "
            f"last-track {'weigh' if self.weigh_last_track else 'take'}"
        )


PAPER = Policy(
    Basic.MAX_BENEFIT,
    Proportional(),
    inheritance=Inheritance(Rule.MAX),
    chopping=Chopping(3.0, fixed=True),
    weigh_last_track=False,
)
"""Max Benefit; Proportional with all tracks, aggressive; the largest priority; parts of three
periods."""


def read_basic(text: str) -> Basic:
    """The basic algorithm of that name; a ValueError lists the names."""
    try:
        return Basic(text.strip().lower())
    except ValueError:
        raise _unknown(text, [each.value for each in Basic]) from None


def read_tracks(text: str) -> TrackRule:
    """The rule by which tables share the tracks.

    >>> str(read_tracks("proportional basic k=2"))
    'proportional basic k=2'
    """
    name, *words = text.lower().split() or [""]
    aggressive = "aggressive" in words
    rest = [word for word in words if word != "aggressive"]
    if name == "global" and not words:
        return Global()
    if name == "edf-partitioned" and not rest:
        return EdfPartitioned(aggressive)
    if name != "proportional":
        raise _unknown(text, ["global", "edf-partitioned [aggressive]", _PROPORTIONAL])
    if not words:
        return Proportional()
    allotted, k = None, Proportional.k
    for word in rest:
        if word.startswith("k="):
            k = _number(text, word.removeprefix("k="), above=0.0)
        elif word == "basic":
            allotted = 0
        elif word.isdecimal():
            allotted = int(word)
        elif word != "all":
            raise _unknown(text, [_PROPORTIONAL])
    return Proportional(allotted, aggressive, k)


_PROPORTIONAL = "proportional [basic | all | TRACKS] [aggressive] [k=NUMBER]"


def read_inheritance(text: str) -> Inheritance:
    """The rule by which priority is inherited.

    >>> read_inheritance("max-plus(2)").k
    2.0
    """
    name, _, factor = text.strip().lower().partition("(")
    known = {rule.value: rule for rule in Rule}
    if name not in known or (factor and (name != "max-plus" or not factor.endswith(")"))):
        raise _unknown(text, ["none", "sum", "max", "max-plus(NUMBER)", "chain"])
    if not factor:
        return Inheritance(known[name])
    return Inheritance(known[name], _number(text, factor.removesuffix(")"), above=1.0))


def read_chopping(text: str) -> Chopping | None:
    """How many periods of data one refresh loads at most.

    >>> read_chopping("2.5 fixed")
    Chopping(periods=2.5, fixed=True)
    """
    words = text.strip().lower()
    if words == "none":
        return None
    periods = _number(text, words.removesuffix(" fixed"), above=0.0)
    if periods < 1.0:
        raise _unknown(text, ["none", "a number of at least 1 [fixed]"])
    return Chopping(periods, words.endswith(" fixed"))


def _number(text: str, part: str, above: float) -> float:
    try:
        number = float(part)
    except ValueError:
        number = above
    if above < number < float("inf"):
        return number
    raise _unknown(text, [f"a number above {above:g}"])


def _unknown(text: str, known: Sequence[str]) -> ValueError:
    return ValueError(f'"{text}" is none of: {", ".join(known)}')
