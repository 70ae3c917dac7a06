"""Which variants does an operation have?

Section 3 of 004. A widget is a few operators that do the same work in different ways, together with
the channels inside it and their converters. A planner picks one of them at a time.

    widget                     variants
    stateless, split           on a base; on a delta
    distributive aggregation   batch; increments (weak deltas) from a strong delta; group recompute
    algebraic aggregation      the parts by distributive aggregation, then a stateless last step
    distinct                   a count per row by distributive aggregation, then those above zero
    join                       batch; incremental on both sides; asynchronous, driven by either side
    bag union                  batch; incremental; asynchronous: only one side is looked at
    opaque                     batch only
    view                       of a warehouse: what its compiler offers, in place, over n inputs

A widget over more inputs than two is a cascade of those over two.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from springhouse.planner.search.blocks import BASE, INCREMENTS, MONOTONE, STRONG, Kind
from springhouse.planner.search.converters import WeakDelta, converters, increments
from springhouse.planner.search.operators import (
    Operator,
    Output,
    Port,
    WidgetVariant,
    base_and_delta_of,
    base_of,
    delta_and_new_base_of,
    delta_of,
    nothing_of,
)
from springhouse.planner.search.workflow import Workflow


@dataclass(frozen=True)
class Widget:
    """Operators between channels; `weak` are the weak deltas that lie on the channels it makes."""

    operators: tuple[Operator, ...]
    weak: tuple[tuple[str, WeakDelta], ...] = ()

    def __add__(self, other: "Widget") -> "Widget":
        return Widget(self.operators + other.operators, self.weak + other.weak)


def stateless(name: str, source: str, *, makes: WeakDelta | None = None) -> Widget:
    """A function of each row alone. It turns deltas into weak ones if it `makes` such."""
    kind = makes.kind if makes else STRONG
    return Widget(
        (
            _operator(name, WidgetVariant.BATCH, [base_of(source)], BASE),
            _operator(name, WidgetVariant.INCREMENTAL, [delta_of(source)], kind),
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
                _named(name, WidgetVariant.BATCH), WidgetVariant.BATCH, (base_of(source),), made
            ),
            Operator(
                _named(name, WidgetVariant.INCREMENTAL),
                WidgetVariant.INCREMENTAL,
                (delta_of(source),),
                moved,
                keeps_monotone=True,
            ),
        )
    )


def distributive_aggregation(name: str, source: str, *, group_recompute: bool = False) -> Widget:
    """Figure 3: what is combined from the new rows and the old result, as a count is."""
    operators = [
        _operator(name, WidgetVariant.BATCH, [base_of(source)], BASE),
        _operator(name, WidgetVariant.INCREMENTAL, [delta_of(source)], INCREMENTS),
    ]
    if group_recompute:
        ports = [delta_and_new_base_of(source)]
        operators.append(_operator(name, WidgetVariant.GROUP_RECOMPUTE, ports, STRONG))
    return Widget(tuple(operators), ((name, increments),))


def algebraic_aggregation(name: str, source: str, *, group_recompute: bool = False) -> Widget:
    """What is a function of distributive ones, as a mean is of a sum and a count."""
    parts = f"{name} parts"
    first = distributive_aggregation(parts, source, group_recompute=group_recompute)
    return first + stateless(name, parts)


def distinct(name: str, source: str) -> Widget:
    """The rows that occur at all: those with a count above zero."""
    counts = f"{name} counts"
    return distributive_aggregation(counts, source) + stateless(name, counts)


def join(name: str, left: str, right: str) -> Widget:
    """Figure 4: four variants."""
    both = [base_and_delta_of(left), base_and_delta_of(right)]
    return Widget(
        (
            _operator(
                name, WidgetVariant.BATCH, [base_of(left), base_of(right)], BASE, together=True
            ),
            _operator(name, WidgetVariant.INCREMENTAL, both, STRONG, together=True),
            _driven(name, left, [delta_of(left), base_of(right)]),
            _driven(name, right, [base_of(left), delta_of(right)]),
        )
    )


def union(name: str, left: str, right: str) -> Widget:
    """Figure 5: an asynchronous union leaves the provenance of its other side empty."""
    both = [delta_of(left), delta_of(right)]
    return Widget(
        (
            _operator(
                name, WidgetVariant.BATCH, [base_of(left), base_of(right)], BASE, together=True
            ),
            _operator(name, WidgetVariant.INCREMENTAL, both, STRONG, together=True),
            _driven(name, left, [delta_of(left), nothing_of(right)]),
            _driven(name, right, [nothing_of(left), delta_of(right)]),
        )
    )


def cascade(make: Callable[[str, str, str], Widget], name: str, sources: Sequence[str]) -> Widget:
    """A widget over two inputs, again and again: over the first two, that and the third, ….

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
    """A batch job that nobody can look into; it may want inputs that are consistent `together`."""
    ports = [base_of(source) for source in sources]
    return Widget((_operator(name, WidgetVariant.BATCH, ports, BASE, together=together),))


def view(
    name: str,
    inputs: Sequence[str],
    variants: Iterable[WidgetVariant],
    *,
    drivers: Iterable[str] = (),
    alone: Collection[str] = (),
    grows: bool = False,
    strict: bool = True,
) -> Widget:
    """A view of a warehouse, in the variants that its compiler offers.

    It is refreshed in place: each refresh makes the new state and the strong delta that leads to
    it. `drivers` are the inputs that can drive an asynchronous refresh, with new rows only: one
    that was deleted would have to be found as it was joined back then. Those that are `alone` meet
    no other input, as the sides of a union: they drive with any change, and nothing else is looked
    at. An incremental refresh takes all inputs to one moment. So does a batch if it is `strict`;
    else it takes what bounds allow. A view `grows` if it only gains rows when its inputs do.
    """
    make = partial(_operator, name, in_place=True, grows=grows)
    found: list[Operator] = []
    for variant in dict.fromkeys(variants):
        match variant:
            case WidgetVariant.BATCH:
                ports = [base_of(each) for each in inputs]
                found.append(make(variant, ports, BASE, together=strict))
            case WidgetVariant.INCREMENTAL:
                ports = [base_and_delta_of(each) for each in inputs]
                found.append(make(variant, ports, STRONG, together=True))
            case WidgetVariant.GROUP_RECOMPUTE:
                ports = [delta_and_new_base_of(each) for each in inputs]
                found.append(make(variant, ports, STRONG, together=True))
            case WidgetVariant.ASYNCHRONOUS:
                # Of a single input that is the incremental refresh once more.
                for driver in drivers if len(inputs) > 1 else ():
                    # The pathways of a strict view are one: one side alone could not be told.
                    is_alone = driver in alone and not strict
                    others, kind = (nothing_of, STRONG) if is_alone else (base_of, MONOTONE)
                    ports = [delta_of(e, kind) if e == driver else others(e) for e in inputs]
                    operator = _driven(name, driver, ports)
                    found.append(replace(operator, in_place=True, keeps_monotone=grows))
            case WidgetVariant.CONVERT | WidgetVariant.CHAIN:
                raise AssertionError(f"{variant} is no variant of a view")
    return Widget(tuple(found))


def workflow(
    inputs: Sequence[str],
    widgets: Iterable[Widget],
    *,
    strict: Iterable[str] = (),
    named: Iterable[str] = (),
) -> Workflow:
    """Widgets put together. Channels that nothing writes in place have converters."""
    whole = Widget(())
    for widget in widgets:
        whole += widget
    in_place = {o.channel for each in whole.operators if each.in_place for o in each.outputs}
    made = dict.fromkeys(o.channel for each in whole.operators for o in each.outputs)
    weak: dict[str, list[WeakDelta]] = {}
    for channel, each in whole.weak:
        weak.setdefault(channel, []).append(each)
    # Tables of a warehouse keep their versions as they are: who reads views in place needs none.
    kept = bool(in_place)
    convert = {
        channel: converters(channel, weak.get(channel, ()))
        for channel in ([] if kept else [*inputs, *made])
    }
    return Workflow(tuple(inputs), whole.operators, convert, frozenset(strict), frozenset(named))


def _operator(
    name: str,
    variant: WidgetVariant,
    ports: Sequence[Port],
    kind: Kind,
    *,
    together: bool = False,
    in_place: bool = False,
    grows: bool = False,
) -> Operator:
    outputs = (Output(name, kind),)
    return Operator(
        _named(name, variant),
        variant,
        tuple(ports),
        outputs,
        synchronous=together,
        in_place=in_place,
        keeps_monotone=kind == STRONG
        and (grows if in_place else variant is not WidgetVariant.GROUP_RECOMPUTE),
    )


def _driven(name: str, driver: str, ports: Sequence[Port]) -> Operator:
    operator = _operator(name, WidgetVariant.ASYNCHRONOUS, ports, STRONG)
    return replace(operator, name=f"{name}: asynchronous, driven by {driver}")


def _named(name: str, variant: WidgetVariant) -> str:
    return f"{name}: {variant.value}"
