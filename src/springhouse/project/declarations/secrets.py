"""How does a project name a secret without containing it?

A value of `configuration:`, and an option of a source or a sink, may hold references:

    ${env:NAME}    the value of an environment variable
    ${file:PATH}   the text of a file, without the line end behind it; PATH is relative to the
                   project's folder

A project keeps the reference. So every text that shows, compares or stores a declaration has the
reference and not the secret. Only the code that passes a value to Spark, to a plug-in or to a
client resolves it. Each resolved value is registered with `errors.conceal`: an error that quotes
the value shows the reference instead.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from springhouse.errors import SpringhouseError, conceal

_REFERENCE = re.compile(r"\$\{(env|file):([^{}]*)\}")


def has_reference(text: str) -> bool:
    """Whether a value refers to a secret.

    >>> has_reference("${env:PASSWORD}"), has_reference("${spark.x}"), has_reference("plain")
    (True, False, False)
    """
    return _REFERENCE.search(text) is not None


def resolve(text: str, folder: Path) -> str:
    """The text with each reference replaced by its value, or an error that names the reference."""
    return _REFERENCE.sub(lambda reference: _value(reference, folder), text)


def secret_problem(text: str, folder: Path) -> SpringhouseError | None:
    """The error of a text that can't be resolved; None if it can."""
    try:
        resolve(text, folder)
    except SpringhouseError as error:
        return error
    return None


def _value(reference: re.Match[str], folder: Path) -> str:
    kind, name = reference.groups()
    value = _of_environment(name) if kind == "env" else _of_file(name, folder)
    conceal(value, reference[0])
    return value


def _of_environment(name: str) -> str:
    value = os.environ.get(name)
    if value is None:
        problem = f"the environment variable {name} is not set, and ${{env:{name}}} refers to it"
        raise SpringhouseError(problem, hint=f"Set it for this process: export {name}=…")
    return value


def _of_file(name: str, folder: Path) -> str:
    try:
        value = (folder / name).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        problem = f"${{file:{name}}} can't be read: {reason}"
        hint = "The path is relative to the project's folder."
        raise SpringhouseError(problem, hint=hint) from None
    return value.removesuffix("\n").removesuffix("\r")


class Configuration(Mapping[str, str]):
    """The settings of a project by key. A value is resolved when it is read."""

    def __init__(self, written: Mapping[str, str], folder: Path) -> None:
        self.written = dict(written)
        self.folder = folder

    def __getitem__(self, key: str) -> str:
        return resolve(self.written[key], self.folder)

    def __iter__(self) -> Iterator[str]:
        return iter(self.written)

    def __len__(self) -> int:
        return len(self.written)

    def __repr__(self) -> str:
        return f"Configuration({self.written!r})"

    def __eq__(self, other: object) -> bool:
        return self.written == getattr(other, "written", other)

    __hash__ = None  # type: ignore[assignment]  # like a dict

    def overridden(self, more: Mapping[str, str]) -> "Configuration":
        """These settings; `more` wins where both have a key."""
        written = more.written if isinstance(more, Configuration) else more
        return Configuration({**self.written, **written}, self.folder)
