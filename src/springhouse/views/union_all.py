"""The change of a UNION ALL: the changes of its children, Δ(R + S) = ΔR + ΔS."""

from springhouse.views.algebra import UnionAll, column
from springhouse.views.rows import Near, Rows, Side, Touched, Writer, indented


def change(node: UnionAll, needed: frozenset[str], writer: Writer) -> list[Rows]:
    return [rows for child in node.children for rows in writer.change(child, needed)]


def snapshot(
    node: UnionAll,
    side: Side,
    needed: frozenset[str],
    near: tuple[Near, ...],
    touched: Touched | None,
    writer: Writer,
) -> Rows:
    names = [name for name in node.columns if name in needed] or list(node.columns[:1])
    parts = [
        writer.snapshot(child, side, frozenset(names), near, touched) for child in node.children
    ]
    body = "\nUNION ALL\n".join(part.select(names) for part in parts)
    source = f"(\n{indented(body)}\n) AS {writer.alias(node)}"
    return Rows(source, {name: column(name) for name in names})
