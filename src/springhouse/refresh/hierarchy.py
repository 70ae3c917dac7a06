"""Who reads whom, and what passes from one to the other?

Periods pass downstream: a derived table has the longest period of its ancestors (001 section 2.4;
section 3.1 says descendants, a slip). Priorities and promises pass upstream, see `priority` and
`promise`. A change is told to the tables that it can reach and to no others.
"""

from collections.abc import Callable, Iterable

from springhouse.refresh.table_profile import TableProfile


class Hierarchy:
    """The tables and what they read; a name that nobody declared yet is waited for."""

    def __init__(self) -> None:
        self.tables: dict[str, TableProfile] = {}
        self._job_of: dict[str, str] = {}
        self._readers: dict[str, dict[str, None]] = {}

    def put(self, table: TableProfile) -> None:
        """Declare a table, or declare it anew."""
        self.remove(table.name)
        self.tables[table.name] = table
        for name in (table.name, *table.members):
            self._job_of[name] = table.name
        for read in table.upstream:
            self._readers.setdefault(read, {})[table.name] = None

    def remove(self, name: str) -> None:
        table = self.tables.pop(name, None)
        if table is None:
            return
        for each in (name, *table.members):
            if self._job_of.get(each) == name:
                del self._job_of[each]
        for read in table.upstream:
            self._readers[read].pop(name, None)

    def job_of(self, name: str) -> str | None:
        """The job that refreshes a table: its own, or that of several."""
        return self._job_of.get(name)

    def upstream(self, name: str) -> list[str]:
        """What a table reads, of what is declared."""
        found = (self._job_of.get(read) for read in self.tables[name].upstream)
        return [read for read in found if read is not None]

    def downstream(self, name: str) -> list[str]:
        """Who reads a table."""
        table = self.tables[name]
        if not table.members:
            return [*self._readers.get(name, ())]
        return [*{r: None for each in (name, *table.members) for r in self._readers.get(each, ())}]

    def ancestors_last(self, names: Iterable[str]) -> list[str]:
        """These tables and all that they are made of, each before what it reads."""
        return [*reversed(_sources_first(names, self.upstream))]

    def dependents_last(self, names: Iterable[str]) -> list[str]:
        """These tables and all that is made of them, each before who reads it."""
        return [*reversed(_sources_first(names, self.downstream))]


def _sources_first(names: Iterable[str], nexts: Callable[[str], list[str]]) -> list[str]:
    """Everything that can be reached, each after all that it leads to."""
    done: dict[str, None] = {}
    entered: set[str] = set()
    stack = [(name, False) for name in names]
    while stack:
        name, left = stack.pop()
        if left:
            done[name] = None
        elif name not in entered:
            entered.add(name)
            stack.append((name, True))
            stack += [(each, False) for each in nexts(name) if each not in entered]
    return [*done]
