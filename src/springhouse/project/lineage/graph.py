"""Who reads whom?

The project as a directed graph: vertices are tables and views, an edge says that one reads another.
Temporary views store nothing, so they are no vertices: whoever reads one reads what it reads. The
quarantine of a table is a vertex of its own that nobody declares; it comes after its table.

A pathway of a view (004, section 2.1) is one way from a base table to it: a view that reads a table
twice, once directly and once through another view, has two.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from springhouse.project.declarations.declaration import CdcFlow, Flow, Project, ReadMode, Reference

QUARANTINE = "_quarantine"


@dataclass(frozen=True, order=True)
class Input:
    """What is read, and how; `name` as in `Reference`."""

    name: str
    reading: ReadMode


Pathway = tuple[str, ...]


class Graph:
    """The edges of one project. All answers are in a fixed order, whatever the files' order."""

    def __init__(self, project: Project) -> None:
        self._project = project

    def inputs(self, name: str) -> tuple[Input, ...]:
        """What a table or view reads, through temporary views, each once, in order of mention."""
        references = self._through_temporary_views(self._references(name), frozenset())
        return tuple(dict.fromkeys(Input(r.name, r.reading) for r in references))

    def flow_inputs(self, flow: Flow) -> tuple[Input, ...]:
        """What one flow reads, through temporary views, each once, in order of mention."""
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
        """Everything in the project that `name` is made of, in topological order."""
        return self._reached(name, lambda each: self._edges.get(each, ()))

    @cached_property
    def order(self) -> tuple[str, ...]:
        """All tables and views, each after what it reads; ties go by name."""
        waiting = {name: len(set(reads) - {name}) for name, reads in self._edges.items()}
        ready = sorted(name for name, count in waiting.items() if not count)
        ordered: list[str] = []
        while waiting:
            # A cycle is reported by the checker; here it must only not hang.
            ready = ready or sorted(waiting)[:1]
            freed: list[str] = []
            for name in ready:
                ordered.append(name)
                del waiting[name]
            for reader in (each for name in ready for each in self._read_by.get(name, ())):
                if reader in waiting:
                    waiting[reader] -= 1
                    if not waiting[reader]:
                        freed.append(reader)
            ready = sorted(freed)
        return tuple(ordered)

    @cached_property
    def position(self) -> dict[str, int]:
        """Where each table and view stands in the order."""
        return {name: place for place, name in enumerate(self.order)}

    @cached_property
    def _read_by(self) -> dict[str, list[str]]:
        """Who reads each table or view, but for those that read themselves; in no order."""
        found: dict[str, list[str]] = {}
        for reader, reads in self._edges.items():
            for name in set(reads) - {reader}:
                found.setdefault(name, []).append(reader)
        return found

    @cached_property
    def _readers(self) -> dict[str, tuple[str, ...]]:
        """Who reads each table or view, in topological order."""
        found: dict[str, list[str]] = {}
        for reader in self.order:
            for name in dict.fromkeys(self._edges.get(reader, ())):
                found.setdefault(name, []).append(reader)
        return {name: tuple(readers) for name, readers in found.items()}

    def pathways(self, name: str) -> tuple[Pathway, ...]:
        """Every way from a base table, or a Delta table of others, to the view `name`."""
        if name not in self._project.views:
            return ((name,),)
        tracked = (ReadMode.TABLE, ReadMode.DELTA)
        inputs = dict.fromkeys(i.name for i in self.inputs(name) if i.reading in tracked)
        return tuple((*pathway, name) for each in inputs for pathway in self.pathways(each))

    @cached_property
    def cycles(self) -> tuple[Pathway, ...]:
        """The circles of names that read each other, temporary views too: `(a, b, a)`."""
        reads = {
            name: tuple(dict.fromkeys(self._owner(r.name) for r in references if _is_named(r)))
            for name, references in self._all_references()
        }
        return _cycles(reads)

    @cached_property
    def _edges(self) -> dict[str, tuple[str, ...]]:
        return {
            name: tuple(
                dict.fromkeys(
                    owner
                    for each in self.tables_read(name)
                    if (owner := self._owner(each)) in self._stored
                )
            )
            for name in sorted(self._stored)
        }

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

    def _reached(self, name: str, step: Callable[[str], Iterable[str]]) -> tuple[str, ...]:
        reached: set[str] = set()
        ahead = list(step(name))
        while ahead:
            each = ahead.pop()
            if each not in reached:
                reached.add(each)
                ahead += step(each)
        return tuple(sorted(reached & self.position.keys(), key=self.position.__getitem__))


def flow_references(flow: Flow) -> tuple[Reference, ...]:
    """What a flow reads, as written."""
    return (flow.source,) if isinstance(flow, CdcFlow) else flow.query.references


def _is_named(reference: Reference) -> bool:
    return reference.reading in (ReadMode.TABLE, ReadMode.STREAM)


def _cycles(reads: dict[str, tuple[str, ...]]) -> tuple[Pathway, ...]:
    """One circle for each group of names that read each other, starting at its first name."""
    found: list[Pathway] = []
    done: set[str] = set()
    for name in reads:
        if name not in done and (circle := _circle_through(name, reads)):
            found.append(circle)
            done.update(circle)
    return tuple(found)


def _circle_through(start: str, reads: dict[str, tuple[str, ...]]) -> Pathway | None:
    """The shortest way from `start` back to itself, breadth first."""
    ways: list[Sequence[str]] = [(start,)]
    seen: set[str] = set()
    for way in ways:
        for each in reads.get(way[-1], ()):
            if each == start:
                return (*way, start)
            if each not in seen:
                seen.add(each)
                ways.append((*way, each))
    return None
