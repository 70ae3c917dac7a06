"""In which ways can one view of a warehouse be refreshed?

Section 3 of 004. A widget is a few operators that do the same work in different ways (`variants`).
The planner picks one of them for each refresh. A view of a warehouse has the variants that its
compiler offers, works in place, and reads any number of inputs. The widgets of the paper's own
examples (join, union, aggregation) are in `simulate.paper_widgets`.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from springhouse.planner.search.blocks import BASE, MONOTONE, STRONG, Kind
from springhouse.planner.search.converters import WeakDelta, converters
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
    """Operators between channels; `weak` are the weak deltas on the channels that it makes."""

    operators: tuple[Operator, ...]
    weak: tuple[tuple[str, WeakDelta], ...] = ()

    def __add__(self, other: "Widget") -> "Widget":
        return Widget(self.operators + other.operators, self.weak + other.weak)


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

    Refreshes work in place: each refresh makes the new state and the strong delta that leads to it.
    `drivers` are the inputs that can drive an asynchronous refresh, with new rows only: for a
    deleted row, the refresh would need the rows that it joined at that time. Drivers that are
    `alone` join no other input, as the sides of a union: they drive with any change, and the
    refresh reads no other input. An incremental refresh takes all inputs to one moment. So does a
    batch if it is `strict`; else it takes any versions within the bounds. A view `grows` if it only
    gains rows when its inputs only gain rows.
    """
    make = partial(widget_operator, name, in_place=True, grows=grows)
    operators: list[Operator] = []
    for variant in dict.fromkeys(variants):
        match variant:
            case WidgetVariant.BATCH:
                ports = [base_of(each) for each in inputs]
                operators.append(make(variant, ports, BASE, together=strict))
            case WidgetVariant.INCREMENTAL:
                ports = [base_and_delta_of(each) for each in inputs]
                operators.append(make(variant, ports, STRONG, together=True))
            case WidgetVariant.GROUP_RECOMPUTE:
                ports = [delta_and_new_base_of(each) for each in inputs]
                operators.append(make(variant, ports, STRONG, together=True))
            case WidgetVariant.ASYNCHRONOUS:
                # With a single input, this would be the incremental refresh again.
                for driver in drivers if len(inputs) > 1 else ():
                    # All pathways of a strict view are one: a move of one side can't be expressed.
                    ports = _driven_ports(inputs, driver, is_alone=driver in alone and not strict)
                    operator = driven_operator(name, driver, ports)
                    operators.append(replace(operator, in_place=True, keeps_monotone=grows))
            case WidgetVariant.CONVERT | WidgetVariant.CHAIN:
                raise AssertionError(f"{variant} is no variant of a view")
    return Widget(tuple(operators))


def _driven_ports(inputs: Sequence[str], driver: str, *, is_alone: bool) -> list[Port]:
    """The ports of a refresh with one driver: it reads the other inputs as they are, or not."""
    others, kind = (nothing_of, STRONG) if is_alone else (base_of, MONOTONE)
    return [delta_of(each, kind) if each == driver else others(each) for each in inputs]


def workflow(
    inputs: Sequence[str],
    widgets: Iterable[Widget],
    *,
    strict: Iterable[str] = (),
    named: Iterable[str] = (),
) -> Workflow:
    """The workflow of these widgets; its channels have converters if no operator is in place."""
    whole = Widget(())
    for widget in widgets:
        whole += widget
    in_place = {o.channel for each in whole.operators if each.in_place for o in each.outputs}
    channels = dict.fromkeys(o.channel for each in whole.operators for o in each.outputs)
    weak: dict[str, list[WeakDelta]] = {}
    for channel, each in whole.weak:
        weak.setdefault(channel, []).append(each)
    # Tables of a warehouse keep all their versions, so a workflow with views needs no converters.
    kept = bool(in_place)
    convert = {
        channel: converters(channel, weak.get(channel, ()))
        for channel in ([] if kept else [*inputs, *channels])
    }
    return Workflow(tuple(inputs), whole.operators, convert, frozenset(strict), frozenset(named))


def widget_operator(
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
        operator_name(name, variant),
        variant,
        tuple(ports),
        outputs,
        synchronous=together,
        in_place=in_place,
        keeps_monotone=kind == STRONG
        and (grows if in_place else variant is not WidgetVariant.GROUP_RECOMPUTE),
    )


def driven_operator(name: str, driver: str, ports: Sequence[Port]) -> Operator:
    operator = widget_operator(name, WidgetVariant.ASYNCHRONOUS, ports, STRONG)
    return replace(operator, name=f"{name}: asynchronous, driven by {driver}")


def operator_name(name: str, variant: WidgetVariant) -> str:
    return f"{name}: {variant.value}"
