"""What did one file say?

Each reader turns a file into `Contents`: the declarations of the file, in order, and its errors.
One bad statement does not hide the others. It becomes an error. If its name could be read, the name
is `broken`, so that no second error says that the table is missing.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from springhouse.errors import DeclarationError
from springhouse.project.declarations.declaration import (
    AppendFlow,
    CdcFlow,
    Place,
    Table,
    TemporaryView,
    View,
)

Declaration = Table | View | TemporaryView | AppendFlow | CdcFlow

KINDS: dict[type, str] = {Table: "table", View: "view", TemporaryView: "temporary view"}


@dataclass(frozen=True)
class PlacedValue:
    """A value in a file, and its place there."""

    value: str
    place: Place


def read_text(path: Path, shown: str) -> str:
    """The text of a project's file, without a byte order mark; `shown` names it in errors."""
    try:
        content = path.read_bytes()
    except OSError as error:
        problem = f"this file can't be read: {error.strerror}"
        raise DeclarationError(problem, where=f"{shown}:1") from None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        problem = f"this file is not UTF-8 text: it has the byte 0x{content[error.start]:02x}"
        hint = "Save it as UTF-8."
        raise DeclarationError(problem, where=f"{shown}:{line}", hint=hint) from None


@dataclass(frozen=True)
class Plugin:
    """A class that a project's file registered as a source or a sink."""

    name: str
    cls: type
    place: Place
    kind: str = "source"


@dataclass
class Contents:
    """The declarations and errors of one file, or of several.

    `unread` says that some part could not be read at all, so names may be missing.
    """

    declarations: list[Declaration] = field(default_factory=list)
    settings: dict[str, PlacedValue] = field(default_factory=dict)
    plugins: list[Plugin] = field(default_factory=list)
    errors: list[DeclarationError] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)
    unread: bool = False

    def add(self, other: "Contents") -> None:
        """Append the contents of another file."""
        self.declarations += other.declarations
        self.settings |= other.settings
        self.plugins += other.plugins
        self.errors += other.errors
        self.broken |= other.broken
        self.unread = self.unread or other.unread

    def named(self) -> Iterator[Table | View | TemporaryView]:
        """The declarations that queries can read by name, in order."""
        for declaration in self.declarations:
            if isinstance(declaration, Table | View | TemporaryView):
                yield declaration
