"""Which blocks need not be looked at?

Sections 6.2 and 6.3 of 004; each rule has its switch.

* Old blocks. The frontier of an output is what its consumers hold; that of a channel above it, the
  part of it that comes from there. Nothing before the newest base at or before the frontier is of
  use any more. On an output that takes deltas and that nobody else reads, nothing at or before the
  frontier is.
* Compulsory chains. Deltas that abut are one, unless a base lies between them or the frontier does.
* Overkill. A block is not planned if one of its kind exists that is older and good enough. And a
  channel of which a base is good enough for all who read it rests: nothing is planned on it, and
  what lies above it need not be looked at, unless somebody else needs it.
* Long term. A block is not planned if a fresher one of its kind is planned: what is refreshed at
  all is refreshed fully, so that it can rest for longer. The paper compares all pathways; here a
  block is not outdated by one that also moves what it leaves alone. Whether to move that at all is
  for costs to decide, or else an asynchronous refresh would never stand against one of all inputs.
  Of bases that exist, the newest is read, unless consistency needs an older one.

For the last two only blocks that speak of the same pathways are compared: a delta of one side of a
union is not "older" than one of both.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from springhouse.planner.blocks import BASE, Block, Kind
from springhouse.planner.plan import Situation
from springhouse.planner.provenance import Provenance
from springhouse.planner.workflow import Workflow


@dataclass(frozen=True)
class Switches:
    """What narrows the search; the basic algorithm of section 6.1 has none of it.

    `plans_per_block` is how many plans are kept for one block: Algorithm 1 keeps one. Plans share
    steps, and the cheapest plan of a block need not be part of the cheapest plan of two, so only
    with None, which keeps all that could matter, is the answer always the cheapest. With
    `stop_early`, the search ends when all that is wanted can be had; and it ends in any case after
    `most_blocks`, with what it has.
    """

    old_blocks: bool = True
    compulsory_chains: bool = True
    propagate: bool = True
    overkill: bool = True
    long_term: bool = True
    plans_per_block: int | None = 1
    stop_early: bool = True
    most_blocks: int | None = 100_000


BASIC = Switches(
    old_blocks=False,
    compulsory_chains=False,
    propagate=False,
    overkill=False,
    long_term=False,
    plans_per_block=None,
    stop_early=False,
    most_blocks=None,
)
"""Section 6.1: nothing is pruned, and the plan is the cheapest that there is."""


def narrowed(
    switches: Switches, situation: Situation, seen: Mapping[str, Sequence[Provenance]]
) -> dict[str, list[Block]]:
    """The blocks of the channels with these frontiers, without old ones, and with chains."""
    found = {}
    for channel, frontier in seen.items():
        blocks = list(situation.blocks.get(channel, ()))
        if switches.old_blocks:
            blocks = without_old(blocks, frontier)
        if switches.compulsory_chains:
            blocks = chained(blocks, frontier)
        found[channel] = blocks
    return found


def frontiers(
    workflow: Workflow, held: Mapping[str, Provenance], among: Sequence[str]
) -> dict[str, tuple[Provenance, ...]]:
    """What consumers hold of each channel, seen through what they read (section 6.2.1).

    `among` is in the order of the workflow.
    """
    found: dict[str, dict[Provenance, None]] = {each: {} for each in among}
    for channel in reversed(among):
        if channel in held:
            found[channel][held[channel]] = None
        for read in workflow.reads[channel]:
            if read in found:
                for each in found[channel]:
                    found[read][workflow.projected(channel, read, each)] = None
    return {channel: tuple(each) for channel, each in found.items()}


def without_old(blocks: Sequence[Block], frontier: Sequence[Provenance]) -> list[Block]:
    """The blocks that may still be of use (section 6.2.1)."""
    if not frontier:
        return list(blocks)
    reached = [
        block.end
        for block in blocks
        if block.start is None and all(_at_or_before(block.end, each) for each in frontier)
    ]
    if not reached:
        return list(blocks)
    if len(reached) == 1:
        (end,) = reached
        return [each for each in blocks if each.end is end or not each.end.precedes(end)]
    newest = [end for end in reached if not any(end.precedes(other) for other in reached)]
    return [each for each in blocks if not all(each.end.precedes(end) for end in newest)]


def without_delivered(blocks: Sequence[Block], held: Provenance) -> list[Block]:
    """The blocks that bring something to consumers who hold this."""
    return [each for each in blocks if not _at_or_before(each.end, held)]


def chained(blocks: Sequence[Block], frontier: Sequence[Provenance]) -> list[Block]:
    """The blocks, with deltas that abut put together where nothing lies between (section 6.2.2)."""
    by_kind: dict[Kind, list[Block]] = {}
    for block in blocks:
        if block.start is not None:
            by_kind.setdefault(block.kind, []).append(block)
    links: list[tuple[Block, Block]] = []
    for deltas in by_kind.values():
        if len(deltas) > 1:
            links += _links(deltas)
    if not links:
        return list(blocks)
    between = {each.latest for each in frontier}
    between |= {block.end.latest for block in blocks if block.start is None}
    following = {id(one): other for one, other in links if one.end.latest not in between}
    if not following:
        return list(blocks)
    inside = {id(block) for block in following.values()}
    kept = [block for block in blocks if block.start is None]
    for block in blocks:
        if block.start is None or id(block) in inside:
            continue  # A delta inside is part of a chain that begins earlier.
        chain = [block]
        while (link := following.get(id(chain[-1]))) is not None:
            chain.append(link)
        kept.append(block if len(chain) == 1 else joined(chain))
    return kept


def _links(deltas: Sequence[Block]) -> list[tuple[Block, Block]]:
    """Each delta of one kind with the one that begins where it ends, where there is no other."""
    if all(one.end == other.start for one, other in pairwise(deltas)):
        return list(pairwise(deltas))  # Mostly they lie there as they came.
    before: dict[Provenance, Block | None] = {}
    after: dict[Provenance | None, Block | None] = {}
    for block in deltas:
        before[block.end] = None if block.end in before else block
        after[block.start] = None if block.start in after else block
    pairs = ((one, after.get(end)) for end, one in before.items())
    return [(one, other) for one, other in pairs if one is not None and other is not None]


def joined(chain: Sequence[Block]) -> Block:
    """A chain of deltas as one."""
    first, last = chain[0], chain[-1]
    versions = None
    if first.versions is not None and last.versions is not None:
        versions = (first.versions[0], last.versions[1])
    rows = sum(each.rows for each in chain)
    return Block(first.channel, first.kind, last.end, first.start, rows, versions)


def superseded_bases(blocks: Mapping[str, Sequence[Block]]) -> set[Block]:
    """The bases of which a newer one exists on the same channel."""
    found = set()
    for on_channel in blocks.values():
        bases = [block for block in on_channel if block.kind == BASE]
        if len(bases) > 1:
            ends = [base.end for base in bases]
            found |= {base for base in bases if any(is_older(base.end, end) for end in ends)}
    return found


def reached_by_all(frontier: Sequence[Provenance]) -> dict[str, int]:
    """How far all consumers are on each pathway: what is further was moved."""
    found: dict[str, int] = {}
    for each in frontier:
        for pathway, versions in each.reflected.items():
            newest = max(versions)
            found[pathway] = min(newest, found.get(pathway, newest))
    return found


def is_outdated(one: Provenance, other: Provenance, reached: Mapping[str, int]) -> bool:
    """Whether `other` moves what `one` moves, and moves it further (section 6.3)."""
    if one.reflected.keys() != other.reflected.keys():
        return False
    further = False
    for pathway, versions in one.reflected.items():
        mine, theirs = max(versions), max(other.reflected[pathway])
        if mine == theirs:
            continue
        if theirs < mine or mine <= reached.get(pathway, -1):
            return False
        further = True
    return further


def is_older(one: Provenance, other: Provenance) -> bool:
    """Whether `one ≺ other`, and both speak of the same pathways."""
    return one.reflected.keys() == other.reflected.keys() and one.precedes(other)


def _at_or_before(end: Provenance, frontier: Provenance) -> bool:
    ahead = frontier.reflected
    for pathway, versions in end.reflected.items():
        theirs = ahead.get(pathway)
        if theirs is None or max(versions) > max(theirs):
            return False
    return True
