"""Who reads whom?

The project as a directed graph. Its vertices are tables and views, and an edge says that one reads
another. Temporary views store nothing, so they are no vertices: a reader of a temporary view reads
what the temporary view reads. To read the quarantine of a table is to depend on the table.

A pathway of a view (004, section 2.1) is one way from a base table to it: a view that reads a table
twice, once directly and once through another view, has two.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter

from springhouse.project.declarations.declaration import CdcFlow, Flow, Project, ReadMode, Reference

QUARANTINE = "_quarantine"


@dataclass(frozen=True, order=True)
class Input:
    """One input and how it is read; `name` is the name of the `Reference`."""

    name: str
    reading: ReadMode


Pathway = tuple[str, ...]


class Graph:
    """The graph of one project. The order of the project's files changes no answer."""

    def __init__(self, project: Project) -> None:
        self._project = project

    def inputs(self, name: str) -> tuple[Input, ...]:
        """What a table or view reads, through temporary views, without repetition, as mentioned."""
        references = self._through_temporary_views(self._references(name), frozenset())
        return tuple(dict.fromkeys(Input(r.name, r.reading) for r in references))

    def flow_inputs(self, flow: Flow) -> tuple[Input, ...]:
        """What one flow reads, through temporary views, without repetition, as mentioned."""
        references = self._through_temporary_views(flow_references(flow), frozenset())
        return tuple(dict.fromkeys(Input(r.name, r.reading) for r in references))

    def tables_read(self, name: str) -> tuple[str, ...]:
        """The tables and views of the project, and their quarantines, that `name` reads."""
        readings = (ReadMode.TABLE, ReadMode.STREAM)
        return tuple(dict.fromkeys(i.name for i in self.inputs(name) if i.reading in readings))

    def dependents(self, name: str) -> tuple[str, ...]:
        """The tables and views that read `name` or its quarantine, in topological order."""
        return self._readers.get(name, ())

    def downstream(self, name: str) -> tuple[str, ...]:
        """Everything that a change of `name` can reach, in topological order."""
        return self._reached(name, self.dependents)

    def upstream(self, name: str) -> tuple[str, ...]:
        """Everything in the project that `name` is made from, in topological order."""
        return self._reached(name, lambda reader: self._edges.get(reader, ()))

    @cached_property
    def order(self) -> tuple[str, ...]:
        """All tables and views, each after what it reads; ties go by name."""
        sorter = _sorter_without_cycles(self._edges)
        ordered: list[str] = []
        while sorter.is_active():
            ready = sorted(sorter.get_ready())
            ordered += ready
            sorter.done(*ready)
        return tuple(ordered)

    @cached_property
    def position(self) -> dict[str, int]:
        """The position of each table and view in the order."""
        return {name: at for at, name in enumerate(self.order)}

    @cached_property
    def _readers(self) -> dict[str, tuple[str, ...]]:
        """The readers of each table and view, in topological order."""
        readers: dict[str, list[str]] = {}
        for reader in self.order:
            for name in self._edges.get(reader, ()):
                readers.setdefault(name, []).append(reader)
        return {name: tuple(names) for name, names in readers.items()}

    def pathways(self, name: str) -> tuple[Pathway, ...]:
        """Every way to the view `name` from a base table or a Delta table of others."""
        if name not in self._project.views:
            return ((name,),)
        tracked = (ReadMode.TABLE, ReadMode.DELTA)
        inputs = dict.fromkeys(i.name for i in self.inputs(name) if i.reading in tracked)
        return tuple((*pathway, name) for read in inputs for pathway in self.pathways(read))

    @cached_property
    def cycles(self) -> tuple[Pathway, ...]:
        """The circles of names that read each other, temporary views included: `(a, b, a)`."""
        reads = {
            name: tuple(dict.fromkeys(self._owner(r.name) for r in references if _is_named(r)))
            for name, references in self._all_references()
        }
        return _cycles(reads)

    @cached_property
    def _edges(self) -> dict[str, tuple[str, ...]]:
        """The stored tables and views that each of them reads, without repetition."""
        edges = {}
        for name in sorted(self._stored):
            owners = map(self._owner, self.tables_read(name))
            edges[name] = tuple(dict.fromkeys(o for o in owners if o in self._stored))
        return edges

    @cached_property
    def _stored(self) -> frozenset[str]:
        return frozenset(self._project.tables) | frozenset(self._project.views)

    def _owner(self, name: str) -> str:
        """The table whose quarantine `name` is, or `name` itself."""
        owner = name.removesuffix(QUARANTINE)
        return owner if name not in self._stored and owner in self._stored else name

    def _references(self, name: str) -> tuple[Reference, ...]:
        project = self._project
        if name in project.views:
            return project.views[name].query.references
        if name in project.temporary_views:
            return project.temporary_views[name].query.references
        return tuple(r for flow in project.flows_into(name) for r in flow_references(flow))

    def _all_references(self) -> Iterator[tuple[str, tuple[Reference, ...]]]:
        project = self._project
        for name in sorted({*project.tables, *project.views, *project.temporary_views}):
            yield name, self._references(name)

    def _through_temporary_views(
        self, references: Iterable[Reference], seen: frozenset[str]
    ) -> Iterator[Reference]:
        for reference in references:
            name = reference.name
            view = self._project.temporary_views.get(name) if _is_named(reference) else None
            if view is None:
                yield reference
            elif name not in seen:
                yield from self._through_temporary_views(view.query.references, seen | {name})

    def _reached(self, name: str, neighbours: Callable[[str], Iterable[str]]) -> tuple[str, ...]:
        reached: set[str] = set()
        ahead = list(neighbours(name))
        while ahead:
            next_name = ahead.pop()
            if next_name not in reached:
                reached.add(next_name)
                ahead += neighbours(next_name)
        return tuple(sorted(reached & self.position.keys(), key=self.position.__getitem__))


def _sorter_without_cycles(edges: Mapping[str, Iterable[str]]) -> TopologicalSorter[str]:
    """A sorter of the graph, less one edge of each cycle; `checks/` reports the cycles."""
    reads = {reader: set(names) - {reader} for reader, names in edges.items()}
    while True:
        sorter = TopologicalSorter(reads)
        try:
            sorter.prepare()
        except CycleError as error:
            read, reader, *_ = error.args[1]
            reads[reader].discard(read)
        else:
            return sorter


def flow_references(flow: Flow) -> tuple[Reference, ...]:
    """What a flow reads, as written."""
    return (flow.source,) if isinstance(flow, CdcFlow) else flow.query.references


def _is_named(reference: Reference) -> bool:
    return reference.reading in (ReadMode.TABLE, ReadMode.STREAM)


def _cycles(reads: Mapping[str, Iterable[str]]) -> tuple[Pathway, ...]:
    """One circle for each group of names that read each other, starting at its first name."""
    cycles: list[Pathway] = []
    covered: set[str] = set()
    for name in reads:
        # graphlib names some circle; the shortest one from the first name is easier to mend.
        if name not in covered and (cycle := _shortest_cycle(name, reads)):
            cycles.append(cycle)
            covered.update(cycle)
    return tuple(cycles)


def _shortest_cycle(start: str, reads: Mapping[str, Iterable[str]]) -> Pathway | None:
    """The shortest way from `start` back to itself, by breadth-first search."""
    paths: list[Pathway] = [(start,)]
    seen: set[str] = set()
    for path in paths:
        for read in reads.get(path[-1], ()):
            if read == start:
                return (*path, start)
            if read not in seen:
                seen.add(read)
                paths.append((*path, read))
    return None
