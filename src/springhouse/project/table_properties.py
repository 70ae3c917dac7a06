"""What was promised about a table, and what else do its properties say?

Everything of ours in TBLPROPERTIES starts with `springhouse.`; `PROPERTIES` is the one list of
them, with where each may stand. All other properties are the user's own and are kept as they are.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from springhouse.errors import DeclarationError
from springhouse.project.declarations.contents import Written
from springhouse.project.declarations.declaration import Promise, RefreshMode, SinkCall
from springhouse.project.declarations.durations import duration_seconds
from springhouse.project.declarations.names import Names, did_you_mean
from springhouse.project.settings import FLOW_SETTINGS, SOURCE_SETTINGS, check_setting
from springhouse.units import Seconds

PREFIX = "springhouse."
_ALONG = "springhouse.staleness."
_SINK = "springhouse.sink."


class Holder(Enum):
    """The kinds of thing that can have properties."""

    TABLE = "a streaming table"
    VIEW = "a materialized view"
    TEMPORARY_VIEW = "a view that is not stored"


_STORED = (Holder.TABLE, Holder.VIEW)

PROPERTIES: Mapping[str, tuple[Holder, ...]] = {
    "springhouse.staleness": _STORED,
    "springhouse.inconsistency": _STORED,
    "springhouse.priority": _STORED,
    "springhouse.refresh": (Holder.VIEW,),
    "springhouse.timestamp": (Holder.TABLE,),
    "springhouse.lateness": (Holder.TABLE,),
    "springhouse.period": (Holder.TABLE,),
    **dict.fromkeys(FLOW_SETTINGS, _STORED),
    **dict.fromkeys(SOURCE_SETTINGS, (Holder.TABLE,)),
}


_FLAG, _NUMBER = r"true|false", r"[1-9]\d*"
_INTERVAL = r"interval( \d+ (week|day|hour|minute|second|millisecond|microsecond)s?)+"

DELTA_PROPERTIES: Mapping[str, str] = {
    "delta.checkpointInterval": _NUMBER,
    "delta.checkpoint.writeStatsAsJson": _FLAG,
    "delta.checkpoint.writeStatsAsStruct": _FLAG,
    "delta.dataSkippingNumIndexedCols": r"-1|\d+",
    "delta.deletedFileRetentionDuration": _INTERVAL,
    "delta.enableExpiredLogCleanup": _FLAG,
    "delta.logRetentionDuration": _INTERVAL,
    "delta.targetFileSize": r"\d+( ?[kmg]b?)?",
}
"""Properties of Delta that say nothing about how files are read; others would need the features of
the protocol that they stand for (column mapping, deletion vectors, a change data feed)."""


@dataclass(frozen=True)
class Properties:
    """The properties of one table or view, understood."""

    promise: Promise = field(default_factory=Promise)
    refresh: RefreshMode = RefreshMode.AUTO
    timestamp: str | None = None
    lateness_seconds: Seconds = Seconds(0.0)
    period_seconds: Seconds = Seconds(1.0)
    flow_settings: Mapping[str, str] = field(default_factory=dict)
    sinks: tuple[SinkCall, ...] = ()
    others: Mapping[str, str] = field(default_factory=dict)


def read_properties(
    owner: str, holder: Holder, written: Mapping[str, Written], names: Names
) -> tuple[Properties, list[DeclarationError]]:
    """The properties of `owner`, and what is wrong with them; a wrong one keeps its default."""
    reader = _PropertyReader(owner, holder, written)
    by_pathway = reader.staleness_by_pathway(names)
    inconsistency = reader.duration("springhouse.inconsistency")
    if inconsistency is None:
        # Who says that one input may be a day old and another a minute says that a snapshot may
        # reflect them as of moments a day apart.
        inconsistency = max(by_pathway.values(), default=Seconds(0.0))
    reader.check_delta(written)
    known = Properties(
        promise=Promise(
            staleness_seconds=reader.duration("springhouse.staleness"),
            staleness_by_pathway=by_pathway,
            inconsistency_seconds=inconsistency,
            priority=reader.priority(),
        ),
        refresh=reader.refresh(),
        timestamp=reader.column("springhouse.timestamp"),
        lateness_seconds=reader.duration("springhouse.lateness") or Seconds(0.0),
        period_seconds=reader.period(),
        flow_settings=reader.flow_settings(),
        sinks=reader.sinks(),
        others={key: w.value for key, w in written.items() if not key.startswith(PREFIX)},
    )
    return known, reader.errors


class _PropertyReader:
    """Reads one property at a time and collects what is wrong."""

    def __init__(self, owner: str, holder: Holder, written: Mapping[str, Written]) -> None:
        self.errors: list[DeclarationError] = []
        self._written = {
            key: value
            for key, value in written.items()
            if key.lower().startswith(PREFIX) and self._belongs(key, value, owner, holder)
        }

    def _belongs(self, key: str, written: Written, owner: str, holder: Holder) -> bool:
        holders = _STORED if key.startswith((_ALONG, _SINK)) else PROPERTIES.get(key)
        if holders is None:
            hint = did_you_mean(key, PROPERTIES)
            self._wrong(written, f'unknown property "{key}"', hint or _known_properties(holder))
            return False
        if holder not in holders:
            belongs = " or ".join(each.value for each in holders)
            problem = f'"{key}" belongs on {belongs}, and "{owner}" is {holder.value}'
            self._wrong(written, problem, _known_properties(holder))
            return False
        return True

    def _wrong(self, written: Written, problem: str, hint: str | None) -> None:
        self.errors.append(DeclarationError(problem, where=str(written.place), hint=hint))

    def check_delta(self, written: Mapping[str, Written]) -> None:
        """Properties of Delta's own change how a table is stored: only some can be kept."""
        for key, each in written.items():
            if not key.lower().startswith("delta."):
                continue
            pattern = DELTA_PROPERTIES.get(key)
            if pattern is None:
                hint = did_you_mean(key, DELTA_PROPERTIES)
                hint = hint or f"Those that can be set are {', '.join(sorted(DELTA_PROPERTIES))}."
                self._wrong(each, f'the property "{key}" of Delta can\'t be set here', hint)
            elif not re.fullmatch(pattern, each.value.strip(), re.IGNORECASE):
                self._wrong(each, f'"{key}" is "{each.value}", which Delta does not take', None)

    def duration(self, key: str) -> Seconds | None:
        written = self._written.get(key)
        if written is None:
            return None
        try:
            return duration_seconds(written.value)
        except DeclarationError as error:
            problem = f'"{key}" is "{written.value}", which is not a duration'
            self._wrong(written, problem, error.hint)
            return None

    def staleness_by_pathway(self, names: Names) -> Mapping[str, Seconds]:
        bounds = {}
        for key in self._written:
            if key.startswith(_ALONG):
                seconds = self.duration(key)
                if seconds is not None:
                    passed = key.removeprefix(_ALONG).split(">")
                    bounds[">".join(names.parse(each.strip()) for each in passed)] = seconds
        return bounds

    def sinks(self) -> tuple[SinkCall, ...]:
        options: dict[str, dict[str, str]] = {}
        plugins: dict[str, Written] = {}
        for key, written in self._written.items():
            if not key.startswith(_SINK):
                continue
            name, _, option = key.removeprefix(_SINK).partition(".")
            if not name.isidentifier():
                problem = f'"{key}": "{name}" can\'t name a sink'
                self._wrong(written, problem, "Use letters, digits and _.")
            elif option:
                options.setdefault(name, {})[option] = written.value
            else:
                plugins[name] = written
        for name in options.keys() - plugins.keys():
            key = f"{_SINK}{name}"
            written = next(w for k, w in self._written.items() if k.startswith(f"{key}."))
            problem = f'the sink "{name}" has options, and nothing says what it is'
            self._wrong(written, problem, f"Name its plug-in: '{key}' = 'positioned_file'.")
        return tuple(
            SinkCall(name, written.value.strip(), options.get(name, {}), written.place)
            for name, written in plugins.items()
        )

    def priority(self) -> float:
        written = self._written.get("springhouse.priority")
        if written is None:
            return 1.0
        try:
            weight = float(written.value)
        except ValueError:
            weight = 0.0
        if 0 < weight < float("inf"):
            return weight
        problem = f'"springhouse.priority" is "{written.value}", which is not a number above 0'
        self._wrong(written, problem, "A table of priority 10 counts as ten tables of priority 1.")
        return 1.0

    def refresh(self) -> RefreshMode:
        written = self._written.get("springhouse.refresh")
        if written is None:
            return RefreshMode.AUTO
        try:
            return RefreshMode(written.value.strip().lower())
        except ValueError:
            modes = ", ".join(f'"{mode.value}"' for mode in RefreshMode)
            problem = f'"springhouse.refresh" is "{written.value}", which is not a refresh mode'
            self._wrong(written, problem, f"The modes are {modes}.")
            return RefreshMode.AUTO

    def column(self, key: str) -> str | None:
        written = self._written.get(key)
        if written is None:
            return None
        column = written.value.strip().strip("`")
        if not column:
            self._wrong(written, f'"{key}" names no column', "Name the column that dates a record.")
        return column or None

    def flow_settings(self) -> Mapping[str, str]:
        """What is set for the flow of this table alone, by the project's own keys."""
        found = {}
        for key in (*FLOW_SETTINGS, *SOURCE_SETTINGS):
            written = self._written.get(key)
            if written is None:
                continue
            wrong = check_setting(key, written.value, written.place)
            if wrong is None:
                found[key] = written.value
            else:
                self.errors.append(wrong)
        return found

    def period(self) -> Seconds:
        seconds = self.duration("springhouse.period")
        if seconds is not None and not seconds:
            problem = '"springhouse.period" is 0, and a source can\'t be asked without a pause'
            self._wrong(self._written["springhouse.period"], problem, "The default is 1 second.")
        return seconds or Seconds(1.0)


def _known_properties(holder: Holder) -> str | None:
    known = [key for key, holders in PROPERTIES.items() if holder in holders]
    known += [f"{_SINK}<name>"] if known else []
    if not known:
        return "Only what is stored can keep a promise: make it a materialized view."
    return f"The properties of {holder.value} are {', '.join(sorted(known))}."
