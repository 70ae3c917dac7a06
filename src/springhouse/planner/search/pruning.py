"""Which blocks can the search leave out?

Sections 6.2 and 6.3 of paper 004. Each rule has its switch.

* Old blocks. The frontier of an output is the provenance that its consumers hold. The frontier of a
  channel upstream is the part of it that comes from this channel. Blocks before the newest base at
  or before the frontier are useless. On an output that takes deltas and that no operator reads, all
  blocks at or before the frontier are useless.
* Compulsory chains. Deltas that abut become one, unless a base or the frontier lies between them.
* Overkill. A block is not planned if an older block of its kind exists that is good enough. A
  strong delta is not planned if a monotone delta with the same ends is at hand, because both hold
  the same rows. A channel rests if a base on it is good enough for all its readers: no block is
  planned on it, and the search leaves out the channels above it unless another channel needs them.
* Long term. A block is not planned if a fresher block of its kind is planned: a channel that is
  refreshed at all is refreshed fully, so that it can rest longer. The paper compares all pathways.
  Here a block that moves a further pathway does not outdate a block that leaves this pathway alone:
  costs decide whether to move the pathway. Else an asynchronous refresh would never win against a
  refresh from all inputs. Of existing bases an operator reads the newest, unless consistency needs
  an older one.

The last two rules compare only blocks of the same pathways: a delta of one side of a union is not
"older" than a delta of both sides.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from springhouse.planner.provenance import Provenance
from springhouse.planner.search.blocks import BASE, Block, Kind
from springhouse.planner.search.workflow import Workflow
from springhouse.planner.search.workflow_plan import Situation


@dataclass(frozen=True)
class Switches:
    """The rules that narrow the search; the basic algorithm of section 6.1 has none of them.

    `plans_per_block` is the number of plans kept for one block. Algorithm 1 keeps one. But plans
    share steps, and the cheapest plan for two blocks may contain the cheapest plan for neither.
    With None the search keeps all plans that could matter, and only then is its answer always the
    cheapest. With `stop_early` the search ends when it can grant every wish. It always ends after
    `most_blocks`.
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
"""Section 6.1: no rules, and the cheapest of all plans."""


def prune_blocks(
    switches: Switches, situation: Situation, frontier_of: Mapping[str, Sequence[Provenance]]
) -> dict[str, list[Block]]:
    """The blocks of channels with these frontiers, without old blocks, and with chains."""
    useful = {}
    for channel, frontier in frontier_of.items():
        blocks = list(situation.blocks.get(channel, ()))
        if len(blocks) > 1:
            if switches.old_blocks:
                blocks = without_old(blocks, frontier)
            if switches.compulsory_chains:
                blocks = chain_deltas(blocks, frontier)
        useful[channel] = blocks
    return useful


def frontiers(
    workflow: Workflow, held: Mapping[str, Provenance], among: Sequence[str]
) -> dict[str, tuple[Provenance, ...]]:
    """The provenance that consumers hold of each channel, directly or not (section 6.2.1).

    `among` is in the order of the workflow.
    """
    frontier_of: dict[str, dict[Provenance, None]] = {each: {} for each in among}
    for channel in reversed(among):
        if channel in held:
            frontier_of[channel][held[channel]] = None
        for read in workflow.reads[channel]:
            if read in frontier_of:
                for each in frontier_of[channel]:
                    frontier_of[read][workflow.projected(channel, read, each)] = None
    return {channel: tuple(each) for channel, each in frontier_of.items()}


def without_old(blocks: Sequence[Block], frontier: Sequence[Provenance]) -> list[Block]:
    """The blocks that may still be useful (section 6.2.1)."""
    if not frontier:
        return list(blocks)
    reached = _bases_reached(blocks, frontier)
    if not reached:
        return list(blocks)
    if len(reached) == 1:
        (end,) = reached
        return [each for each in blocks if each.end is end or not each.end.precedes(end)]
    newest = [end for end in reached if not any(end.precedes(other) for other in reached)]
    return [each for each in blocks if not all(each.end.precedes(end) for end in newest)]


def _bases_reached(blocks: Sequence[Block], frontier: Sequence[Provenance]) -> list[Provenance]:
    """The ends of the bases that all consumers have reached."""
    return [
        block.end
        for block in blocks
        if block.start is None and all(_at_or_before(block.end, each) for each in frontier)
    ]


def without_delivered(blocks: Sequence[Block], held: Provenance) -> list[Block]:
    """The blocks with newer data than consumers hold."""
    return [each for each in blocks if not _at_or_before(each.end, held)]


def chain_deltas(blocks: Sequence[Block], frontier: Sequence[Provenance]) -> list[Block]:
    """The blocks; deltas that abut with nothing between them become one (section 6.2.2)."""
    deltas = [block for block in blocks if block.start is not None]
    if len(deltas) < 2:
        return list(blocks)
    bases = [block for block in blocks if block.start is None]
    between = [each.latest for each in frontier] + [base.end.latest for base in bases]
    # Usually the deltas are in order.
    chains = _chains_in_order(deltas, between) or _chains(deltas, between)
    if len(chains) == len(deltas):
        return list(blocks)
    return bases + [
        each[0] if len(each) == 1 else join_chain(each, each[0].kind) for each in chains
    ]


def _chains_in_order(
    deltas: Sequence[Block], between: Collection[Mapping[str, int]]
) -> list[list[Block]]:
    """Chains of deltas, if each delta begins at the end of the one before; else none."""
    chain = [deltas[0]]
    chains = [chain]
    for one, other in pairwise(deltas):
        if one.end != other.start or one.kind != other.kind:
            return []
        if one.end.latest in between:
            chain = []
            chains.append(chain)
        chain.append(other)
    return chains


def _chains(deltas: Sequence[Block], between: Collection[Mapping[str, int]]) -> list[list[Block]]:
    """Chains of deltas of a kind, joined where only one delta ends and only one begins."""
    before: dict[tuple[Kind, Provenance], Block | None] = {}
    after: dict[tuple[Kind, Provenance | None], Block | None] = {}
    for block in deltas:
        end, start = (block.kind, block.end), (block.kind, block.start)
        before[end] = None if end in before else block
        after[start] = None if start in after else block
    following = {
        id(one): other
        for end, one in before.items()
        if one is not None and (other := after.get(end)) and one.end.latest not in between
    }
    inside = {id(block) for block in following.values()}
    chains = []
    for block in deltas:
        if id(block) not in inside:
            chain = [block]
            while (link := following.get(id(chain[-1]))) is not None:
                chain.append(link)
            chains.append(chain)
    return chains


def join_chain(chain: Sequence[Block], kind: Kind) -> Block:
    """A chain of deltas as one delta."""
    first, last = chain[0], chain[-1]
    versions = None
    if first.versions is not None and last.versions is not None:
        versions = (first.versions[0], last.versions[1])
    rows = sum(each.rows for each in chain)
    return Block(first.channel, kind, last.end, first.start, rows, versions)


def superseded_bases(blocks: Mapping[str, Sequence[Block]]) -> set[Block]:
    """The bases of which a newer one exists on the same channel."""
    superseded = set()
    for on_channel in blocks.values():
        bases = [block for block in on_channel if block.kind == BASE]
        if len(bases) > 1:
            ends = [base.end for base in reversed(bases)]  # Usually the last one is the newest.
            superseded |= {base for base in bases if any(is_older(base.end, end) for end in ends)}
    return superseded


def reached_by_all(frontier: Sequence[Provenance]) -> dict[str, int]:
    """The version that all consumers have reached on each pathway."""
    reached: dict[str, int] = {}
    for each in frontier:
        for pathway, newest in each.latest.items():
            reached[pathway] = min(newest, reached.get(pathway, newest))
    return reached


def is_outdated(one: Provenance, other: Provenance, reached: Mapping[str, int]) -> bool:
    """Whether `other` moves the same pathways as `one`, and moves them further (section 6.3)."""
    if one.reflected.keys() != other.reflected.keys():
        return False
    further = False
    for pathway, mine in one.latest.items():
        theirs = other.latest[pathway]
        if mine == theirs:
            continue
        if theirs < mine or mine <= reached.get(pathway, -1):
            return False
        further = True
    return further


def is_older(one: Provenance, other: Provenance) -> bool:
    """Whether `one ≺ other`, and both have the same pathways."""
    return one.reflected.keys() == other.reflected.keys() and one.precedes(other)


def _at_or_before(end: Provenance, frontier: Provenance) -> bool:
    ahead = frontier.latest
    return all(newest <= ahead.get(pathway, -1) for pathway, newest in end.latest.items())
