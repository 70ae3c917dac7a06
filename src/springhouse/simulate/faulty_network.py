"""What goes wrong with nodes, and between them?

This network loses, delays, repeats and reorders messages, and its links fail in one direction or in
both. Some messages are so late that they arrive in another term. Now and then one of the troubles
below comes up; the dice of one seed choose all of it. The network also knows which nodes can hear
each other, because without a majority in touch no node may process anything.
"""

from collections.abc import Collection, Iterable, Sequence
from enum import Enum

from springhouse.units import Dice


class Trouble(Enum):
    """The kinds of trouble that a cluster may have."""

    CRASH = "crash"
    TORN = "crash in the middle of a step"
    AFTER_VOTE = "crash after the next vote, for one that is cut off then"
    CRASH_LEADER = "crash of the leader"
    CRASH_MANY = "crash of several"
    LOSE_DISK = "crash and an empty disk"
    PAUSE = "pause"
    DRAIN = "a node is drained, or wanted again"
    SPARK = "a node can't work for a while: its Spark has ended"
    SPLIT = "partition"
    CUT_OFF = "partition of the leader"
    LINK = "the link between two nodes fails"
    ONE_WAY = "one-way partition"
    HEAL = "all links heal"
    NETWORK = "other network"


_TROUBLES = (
    *(Trouble.CRASH,) * 2,
    *(Trouble.TORN,) * 2,
    *(Trouble.AFTER_VOTE,) * 2,
    *(Trouble.CRASH_LEADER,) * 2,
    Trouble.CRASH_MANY,
    *(Trouble.LOSE_DISK,) * 2,
    *(Trouble.PAUSE,) * 2,
    *(Trouble.DRAIN,) * 3,
    *(Trouble.SPARK,) * 3,
    *(Trouble.SPLIT,) * 2,
    *(Trouble.CUT_OFF,) * 2,
    *(Trouble.LINK,) * 3,
    *(Trouble.ONE_WAY,) * 2,
    *(Trouble.HEAL,) * 2,
    *(Trouble.NETWORK,) * 2,
)


class FaultyNetwork:
    """The network of one run, and when the next trouble comes. Times are in election time-outs."""

    def __init__(self, dice: Dice, names: Sequence[str], election_seconds: float) -> None:
        self._dice = dice
        self._names = tuple(names)
        self._unit = election_seconds
        # In some runs one trouble follows another at once, in some there is time to recover.
        self._pace = dice.pick((1.0, 2.0, 4.0))
        self._cut: set[tuple[str, str]] = set()
        self._loss = self._repeat = self._late = 0.0
        self._least, self._most = 0.002, 0.02
        self.change()

    def change(self) -> None:
        """Become another network: good or bad, fast or slow."""
        pick = self._dice.pick
        self._loss = pick((0.0, 0.0, 0.05, 0.3))
        self._repeat = pick((0.0, 0.05, 0.2))
        self._late = pick((0.0, 0.02, 0.1))
        self._most = pick((0.01, 0.05, 0.2))

    def repair(self) -> None:
        """Have no trouble any more."""
        self._cut.clear()
        self._loss = self._repeat = self._late = 0.0
        self._most = 0.02

    def arrivals(self, sender: str, to: str, *, large: bool = False) -> Iterable[float]:
        """The delays after which a message arrives: none, one, or two.

        Large messages arrive twice more often.
        """
        if self._cut and (sender, to) in self._cut:
            return ()
        between = self._dice.between
        roll = between(0.0, 1.0)
        if roll < self._loss:
            return ()
        if roll > 1.0 - (4 * self._repeat if large else self._repeat):
            # The second copy is often about something long past.
            return (self._delay(), self._unit * between(self._least, 4.0))
        return (self._delay(),)

    def _delay(self) -> float:
        between = self._dice.between
        if self._late and between(0.0, 1.0) < self._late:
            return self._unit * between(0.1, 4.0)
        return self._unit * between(self._least, self._most)

    # --- Links ----------------------------------------------------------------------------------

    def change_links(self, trouble: Trouble, central: Collection[str]) -> None:
        """Let links fail or heal."""
        match trouble:
            case Trouble.SPLIT:
                self.split(self.some(1, len(self._names) // 2))
            case Trouble.CUT_OFF:
                self.split(central)
            case Trouble.LINK:
                self._cut |= {(one, other) for one in central for other in central if one != other}
            case Trouble.ONE_WAY:
                self.cut_one_way()
            case Trouble.HEAL:
                self._cut.clear()
            case _:
                self.change()

    def split(self, apart: Collection[str]) -> None:
        """Cut these nodes from all others, and nothing else."""
        self._cut = {
            (one, other)
            for one in self._names
            for other in self._names
            if one != other and (one in apart) != (other in apart)
        }

    def cut_one_way(self) -> None:
        """Let some links fail in one direction."""
        for one in self._names:
            for other in self._names:
                if one != other and self._dice.between(0.0, 1.0) < 0.25:
                    self._cut.add((one, other))

    def in_touch(self, running: Collection[str]) -> int:
        """The most nodes that one node can talk with in both directions, including itself."""
        cut = self._cut
        if not cut:
            return len(running)
        return max(
            (
                sum(one == other or not ({(one, other), (other, one)} & cut) for other in running)
                for one in running
            ),
            default=0,
        )

    # --- Troubles -------------------------------------------------------------------------------

    def next_trouble(self) -> tuple[float, Trouble]:
        """The seconds until the next trouble, and its kind."""
        return self._unit * self._pace * self._dice.between(0.05, 0.7), self._dice.pick(_TROUBLES)

    def lasts(self) -> float:
        """The seconds for which a node is away."""
        return self._unit * self._dice.pick((0.02, 0.3, 1.0, 2.5)) * self._dice.between(0.5, 1.5)

    def some(self, least: int, most: int) -> list[str]:
        """Some nodes, at random."""
        left = list(self._names)
        count = min(least + int(self._dice.between(0, most - least + 1)), len(left))
        return [left.pop(int(self._dice.between(0, len(left)))) for _ in range(count)]
