"""Why can't a view be refreshed incrementally?

A construct that the algebra can't express is not an error. Springhouse then refreshes the view in
full, and `explain` names the construct and its line.
"""

from sqlglot import exp


class NotCompilable(Exception):
    """The compiler can't express a construct; `line` counts from the first line of the query."""

    def __init__(self, reason: str, at: exp.Expr | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line_of(at) if at is not None else None


def line_of(expression: exp.Expr) -> int | None:
    """The first line of an expression in the query's text, if it is known."""
    lines = [each.meta["line"] for each in expression.walk() if "line" in each.meta]
    return min(lines, default=None)
