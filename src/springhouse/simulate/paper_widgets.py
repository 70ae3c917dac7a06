"""Which variants do the operations of the paper's workflows have?

Section 3 of 004. Each function makes the operators of one operation, as a `Widget`.

    operation                  variants
    stateless, split           on a base; on a delta
    distributive aggregation   batch; increments (weak deltas) from a strong delta; group recompute
    distinct                   a count per row by distributive aggregation, then those above zero
    join                       batch; incremental on both sides; asynchronous, driven by either side
    bag union                  batch; incremental; asynchronous: only one side is looked at
    opaque                     batch only

An operation over more than two inputs is a cascade of operations over two.
"""

from collections.abc import Callable, Sequence

from springhouse.planner.search.blocks import BASE, INCREMENTS, STRONG
from springhouse.planner.search.converters import WeakDelta, increments
from springhouse.planner.search.operators import (
    Operator,
    Output,
    WidgetVariant,
    base_and_delta_of,
    base_of,
    delta_and_new_base_of,
    delta_of,
    nothing_of,
)
from springhouse.planner.search.widgets import (
    Widget,
    driven_operator,
    operator_name,
    widget_operator,
)


def stateless(name: str, source: str, *, makes: WeakDelta | None = None) -> Widget:
    """A function of each row alone; with `makes`, it turns deltas into weak ones of that kind."""
    kind = makes.kind if makes else STRONG
    return Widget(
        (
            widget_operator(name, WidgetVariant.BATCH, [base_of(source)], BASE),
            widget_operator(name, WidgetVariant.INCREMENTAL, [delta_of(source)], kind),
        ),
        ((name, makes),) if makes else (),
    )


def split(name: str, source: str, parts: Sequence[str]) -> Widget:
    """Each row goes to one of the parts."""
    made = tuple(Output(part, BASE) for part in parts)
    moved = tuple(Output(part, STRONG) for part in parts)
    return Widget(
        (
            Operator(
                operator_name(name, WidgetVariant.BATCH),
                WidgetVariant.BATCH,
                (base_of(source),),
                made,
            ),
            Operator(
                operator_name(name, WidgetVariant.INCREMENTAL),
                WidgetVariant.INCREMENTAL,
                (delta_of(source),),
                moved,
                keeps_monotone=True,
            ),
        )
    )


def distributive_aggregation(name: str, source: str, *, group_recompute: bool = False) -> Widget:
    """Figure 3: an aggregate of the new rows and the old result, such as a count."""
    operators = [
        widget_operator(name, WidgetVariant.BATCH, [base_of(source)], BASE),
        widget_operator(name, WidgetVariant.INCREMENTAL, [delta_of(source)], INCREMENTS),
    ]
    if group_recompute:
        ports = [delta_and_new_base_of(source)]
        operators.append(widget_operator(name, WidgetVariant.GROUP_RECOMPUTE, ports, STRONG))
    return Widget(tuple(operators), ((name, increments),))


def distinct(name: str, source: str) -> Widget:
    """The distinct rows: those with a count above zero."""
    counts = f"{name} counts"
    return distributive_aggregation(counts, source) + stateless(name, counts)


def join(name: str, left: str, right: str) -> Widget:
    """Figure 4: four variants."""
    both = [base_and_delta_of(left), base_and_delta_of(right)]
    return Widget(
        (
            widget_operator(
                name, WidgetVariant.BATCH, [base_of(left), base_of(right)], BASE, together=True
            ),
            widget_operator(name, WidgetVariant.INCREMENTAL, both, STRONG, together=True),
            driven_operator(name, left, [delta_of(left), base_of(right)]),
            driven_operator(name, right, [base_of(left), delta_of(right)]),
        )
    )


def union(name: str, left: str, right: str) -> Widget:
    """Figure 5: an asynchronous union leaves the provenance of its other side empty."""
    both = [delta_of(left), delta_of(right)]
    return Widget(
        (
            widget_operator(
                name, WidgetVariant.BATCH, [base_of(left), base_of(right)], BASE, together=True
            ),
            widget_operator(name, WidgetVariant.INCREMENTAL, both, STRONG, together=True),
            driven_operator(name, left, [delta_of(left), nothing_of(right)]),
            driven_operator(name, right, [nothing_of(left), delta_of(right)]),
        )
    )


def cascade(make: Callable[[str, str, str], Widget], name: str, sources: Sequence[str]) -> Widget:
    """A cascade of a widget over two inputs: the first two, their result and the third, and so on.

    >>> [each.outputs[0].channel for each in cascade(union, "all", ["a", "b", "c"]).operators[::4]]
    ['all of 2', 'all']
    """
    assert len(sources) >= 2, "a cascade has at least two inputs"
    widget, so_far = Widget(()), sources[0]
    for number, source in enumerate(sources[1:], 2):
        made = name if number == len(sources) else f"{name} of {number}"
        widget += make(made, so_far, source)
        so_far = made
    return widget


def opaque(name: str, sources: Sequence[str], *, together: bool = False) -> Widget:
    """A batch job of unknown content; it may need inputs that are consistent `together`."""
    ports = [base_of(source) for source in sources]
    return Widget((widget_operator(name, WidgetVariant.BATCH, ports, BASE, together=together),))
