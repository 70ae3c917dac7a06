"""What went wrong, where, and what can the user do about it?

Every error that a user can cause is a `SpringhouseError`: a problem in the user's own nouns, the
place (`file:line`, a table, a path) and a hint. The command line prints these three and no
traceback. A bug of ours is an `AssertionError` or whatever Python raises, with its traceback.
"""

from collections.abc import Sequence

_CONCEALED: dict[str, str] = {}
_LEAST_CHARACTERS = 4
"""Shorter values are no secrets, and would be found in the midst of words."""


def conceal(value: str, reference: str) -> None:
    """Show `reference` wherever an error of this process would show `value`."""
    if len(value) >= _LEAST_CHARACTERS:
        _CONCEALED[value] = reference


def without_secrets(text: str) -> str:
    """The text with the reference in the place of each value that is to be concealed."""
    # A copy, because another thread may conceal one more; long first, because one may hold another.
    for value, reference in sorted(_CONCEALED.items(), key=lambda item: -len(item[0])):
        text = text.replace(value, reference)
    return text


class SpringhouseError(Exception):
    """Something that the user, or the world around the warehouse, has to mend."""

    def __init__(self, problem: str, *, where: str | None = None, hint: str | None = None) -> None:
        problem = without_secrets(problem)
        super().__init__(problem)
        self.problem = problem
        self.where = None if where is None else without_secrets(where)
        self.hint = None if hint is None else without_secrets(hint)

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        hint = f"\n  hint: {self.hint}" if self.hint else ""
        return f"{place}{self.problem}{hint}"


class DeclarationError(SpringhouseError):
    """A project's files say something that can't be."""


class ProjectErrors(SpringhouseError):
    """All that is wrong with a project, at once."""

    def __init__(self, errors: Sequence[SpringhouseError]) -> None:
        self.errors = tuple(errors)
        count = len(self.errors)
        super().__init__(f"{count} error{'s' if count != 1 else ''} in this project")

    def __str__(self) -> str:
        return "\n".join([*(str(error) for error in self.errors), self.problem])


class LakeError(SpringhouseError):
    """A Delta table can't be read or written as it should be."""


class SchemaError(LakeError):
    """Data does not fit the table that it is meant for, and waiting will not mend it."""


class SourceError(SpringhouseError):
    """A source can't give the records that it was asked for."""


class SinkError(SpringhouseError):
    """A sink can't take the changes that it was given."""


class ExpectationFailed(SpringhouseError):
    """A row broke an expectation that is declared ON VIOLATION FAIL UPDATE."""


class CommitConflict(LakeError):
    """Somebody else committed the same work first; nothing of ours was written."""


class NotOwned(LakeError):
    """The work belongs to another node by now; nothing of ours was written."""


def told(error: Exception) -> str:
    """An error in one text, for people."""
    if isinstance(error, SpringhouseError):
        return str(error)
    first_line = next(iter(str(error).splitlines()), "")
    return without_secrets(f"{type(error).__name__}: {first_line}")
