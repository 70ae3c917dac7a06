"""Which table reads which?

Periods pass downstream: a derived table has the longest period of its ancestors (paper 001, section
2.4; section 3.1 says descendants, by mistake). Priorities and promises pass upstream (`priority`,
`promises.urgency`). A change affects only the tables that it can reach.
"""

from collections.abc import Callable, Iterable

from springhouse.refresh.table.table_profile import TableProfile


class Hierarchy:
    """The tables and what they read; a table may be declared after its readers."""

    def __init__(self) -> None:
        self.tables: dict[str, TableProfile] = {}
        self._readers: dict[str, dict[str, None]] = {}

    def put(self, table: TableProfile) -> None:
        """Declare a table, or change its declaration."""
        self.remove(table.name)
        self.tables[table.name] = table
        for read in table.upstream:
            self._readers.setdefault(read, {})[table.name] = None

    def remove(self, name: str) -> None:
        table = self.tables.pop(name, None)
        if table is None:
            return
        for read in table.upstream:
            self._readers[read].pop(name, None)

    def upstream(self, name: str) -> list[str]:
        """The declared tables that a table reads."""
        return [read for read in self.tables[name].upstream if read in self.tables]

    def downstream(self, name: str) -> list[str]:
        """The readers of a table."""
        return [*self._readers.get(name, ())]

    def ancestors_last(self, names: Iterable[str]) -> list[str]:
        """These tables and all tables above them, each before the tables that it reads."""
        return [*reversed(_sources_first(names, self.upstream))]

    def dependents_last(self, names: Iterable[str]) -> list[str]:
        """These tables and all tables below them, each before its readers."""
        return [*reversed(_sources_first(names, self.downstream))]


def _sources_first(names: Iterable[str], nexts: Callable[[str], list[str]]) -> list[str]:
    """All tables that can be reached by `nexts`, each after the tables that it leads to."""
    in_order: dict[str, None] = {}
    entered: set[str] = set()
    stack = [(name, False) for name in names]
    while stack:
        name, left = stack.pop()
        if left:
            in_order[name] = None
        elif name not in entered:
            entered.add(name)
            stack.append((name, True))
            stack += [(each, False) for each in nexts(name) if each not in entered]
    return [*in_order]
