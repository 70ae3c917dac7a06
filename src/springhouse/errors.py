"""What went wrong, where, and what can the user do about it?

Every error that a user can cause is a `SpringhouseError`. It has three parts: the problem in the
user's own words, the place (`file:line`, a table, a path), and a hint. The command line prints
these three and no traceback. A bug of Springhouse is an `AssertionError` or any other exception of
Python, with its traceback.
"""

from collections.abc import Sequence

_CONCEALED: dict[str, str] = {}
_LEAST_CHARACTERS = 4
"""A shorter value is not concealed, because it would also occur inside ordinary words."""


def conceal(value: str, reference: str) -> None:
    """From now on, show `reference` in every error of this process that contains `value`."""
    if len(value) >= _LEAST_CHARACTERS:
        _CONCEALED[value] = reference


def without_secrets(text: str) -> str:
    """The text with each concealed value replaced by its reference."""
    # A copy, because another thread may add a value. Long values first, because a long value may
    # contain a short one.
    for value, reference in sorted(_CONCEALED.items(), key=lambda item: -len(item[0])):
        text = text.replace(value, reference)
    return text


class SpringhouseError(Exception):
    """A problem that the user can solve, or that lies outside of the warehouse.

    `problem` is a sentence, `where` the place (`file:line`, a table, a path), and `hint` says what
    to do.
    """

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
    """The files of a project declare something that is wrong."""


class ProjectErrors(SpringhouseError):
    """All errors of a project together."""

    def __init__(self, errors: Sequence[SpringhouseError]) -> None:
        self.errors = tuple(errors)
        count = len(self.errors)
        super().__init__(f"{count} error{'s' if count != 1 else ''} in this project")

    def __str__(self) -> str:
        return "\n".join([*(str(error) for error in self.errors), self.problem])


class LakeError(SpringhouseError):
    """A Delta table can't be read or written."""


class SchemaError(LakeError):
    """Data does not fit the schema of its table. A retry would fail too."""


class SourceError(SpringhouseError):
    """A source can't deliver the requested records."""


class SinkError(SpringhouseError):
    """A sink can't write the changes of its table."""


class ExpectationFailed(SpringhouseError):
    """A row violates an expectation that is declared ON VIOLATION FAIL UPDATE."""


class CommitConflict(LakeError):
    """Another writer committed the same work first; this commit wrote nothing."""


class NotOwned(LakeError):
    """The work now belongs to another node; this commit wrote nothing."""


def error_text(error: Exception) -> str:
    """An error as one text for the user, without a traceback."""
    if isinstance(error, SpringhouseError):
        return str(error)
    first_line = next(iter(str(error).splitlines()), "")
    return without_secrets(f"{type(error).__name__}: {first_line}")
