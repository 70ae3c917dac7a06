"""What does a table promise by its properties, and what else do they set?

The properties of Springhouse start with `springhouse.`; `project.settings` lists them, and says
which kinds of table can have them. This module checks Delta's own properties, because some of them
change how a table is stored. All other properties are the user's and are kept as they are.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from springhouse.errors import DeclarationError
from springhouse.project.declarations.contents import PlacedValue
from springhouse.project.declarations.declaration import Promise, RefreshMode, SinkCall
from springhouse.project.declarations.names import Names, did_you_mean
from springhouse.project.settings import (
    FLOW_SETTINGS,
    INCONSISTENCY,
    LATENESS,
    PERIOD,
    PREFIX,
    PRIORITY,
    REFRESH,
    SINK,
    SOURCE_SETTINGS,
    STALENESS,
    STALENESS_OF_INPUT,
    TIMESTAMP,
    Holder,
    Setting,
    find_setting,
    settings_of,
)
from springhouse.units import Seconds

_ALONG = STALENESS_OF_INPUT.prefix or ""
_SINK = SINK.prefix or ""

T = TypeVar("T")

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
"""The properties of Delta that a table may set. They do not change how its files are read. All
other properties need protocol features (column mapping, deletion vectors, a change data feed)."""


@dataclass(frozen=True)
class Properties:
    """The properties of one table or view, as values."""

    promise: Promise = field(default_factory=Promise)
    refresh: RefreshMode = RefreshMode.AUTO
    timestamp: str | None = None
    lateness_seconds: Seconds = Seconds(0.0)
    period_seconds: Seconds = Seconds(1.0)
    flow_settings: Mapping[str, str] = field(default_factory=dict)
    sinks: tuple[SinkCall, ...] = ()
    others: Mapping[str, str] = field(default_factory=dict)


def read_properties(
    owner: str, holder: Holder, written: Mapping[str, PlacedValue], names: Names
) -> tuple[Properties, list[DeclarationError]]:
    """The properties of `owner`, and the errors in them; a wrong property keeps its default."""
    reader = _PropertyReader(owner, holder, written)
    by_pathway = reader.staleness_by_pathway(names)
    inconsistency = reader.find(INCONSISTENCY)
    if inconsistency is None:
        # If one input may be a day old and another a minute, a snapshot may show moments that are
        # a day apart.
        inconsistency = max(by_pathway.values(), default=Seconds(0.0))
    reader.check_delta(written)
    known = Properties(
        promise=Promise(
            staleness_seconds=reader.find(STALENESS),
            staleness_by_pathway=by_pathway,
            inconsistency_seconds=inconsistency,
            priority=reader.read(PRIORITY),
        ),
        refresh=RefreshMode(reader.read(REFRESH)),
        timestamp=reader.find(TIMESTAMP),
        lateness_seconds=reader.read(LATENESS),
        period_seconds=reader.read(PERIOD),
        flow_settings=reader.flow_settings(),
        sinks=reader.sinks(),
        others={key: w.value for key, w in written.items() if not key.startswith(PREFIX)},
    )
    return known, reader.errors


class _PropertyReader:
    """Reads one property at a time and collects the errors."""

    def __init__(self, owner: str, holder: Holder, written: Mapping[str, PlacedValue]) -> None:
        self.errors: list[DeclarationError] = []
        self._written = {
            key: value
            for key, value in written.items()
            if key.lower().startswith(PREFIX) and self._belongs(key, value, owner, holder)
        }

    def _belongs(self, key: str, written: PlacedValue, owner: str, holder: Holder) -> bool:
        setting = find_setting(key)
        if setting is None:
            hint = did_you_mean(key, [each.key for each in settings_of(holder)])
            self._wrong(written, f'unknown property "{key}"', hint or _known_properties(holder))
        elif holder not in setting.holders:
            owners = [each for each in setting.holders if each is not Holder.PROJECT]
            belongs = "on " + " or ".join(each.value for each in owners)
            if not owners:
                belongs = "into `configuration:` of the pipeline file"
            problem = f'"{key}" belongs {belongs}, and "{owner}" is {holder.value}'
            self._wrong(written, problem, _known_properties(holder))
        else:
            return True
        return False

    def _wrong(self, written: PlacedValue, problem: str, hint: str | None) -> None:
        self.errors.append(DeclarationError(problem, where=str(written.place), hint=hint))

    def check_delta(self, written: Mapping[str, PlacedValue]) -> None:
        """Collect an error for each property of Delta that a table can't set."""
        for key, each in written.items():
            if not key.lower().startswith("delta."):
                continue
            pattern = DELTA_PROPERTIES.get(key)
            if pattern is None:
                hint = did_you_mean(key, DELTA_PROPERTIES)
                hint = hint or f"Those that can be set are {', '.join(sorted(DELTA_PROPERTIES))}."
                self._wrong(each, f'the property "{key}" of Delta can\'t be set here', hint)
            elif not re.fullmatch(pattern, each.value.strip(), re.IGNORECASE):
                self._wrong(each, f'"{key}" is "{each.value}", which Delta does not accept', None)

    def find(self, setting: Setting[T], key: str | None = None) -> T | None:
        """The value of a setting; None if it is not set, or not an allowed value."""
        written = self._written.get(key or setting.key)
        if written is None:
            return None
        if not setting.type.accepts(written.value):
            self.errors.append(setting.error(key or setting.key, written.value, written.place))
            return None
        return setting.type.parse(written.value)

    def read(self, setting: Setting[T]) -> T:
        """The value of a setting, or its default."""
        value = self.find(setting)
        return setting.read({}) if value is None else value

    def staleness_by_pathway(self, names: Names) -> Mapping[str, Seconds]:
        bounds = {}
        for key in self._written:
            if key.startswith(_ALONG):
                seconds = self.find(STALENESS_OF_INPUT, key)
                if seconds is not None:
                    passed = key.removeprefix(_ALONG).split(">")
                    bounds[">".join(names.parse(each.strip()) for each in passed)] = seconds
        return bounds

    def sinks(self) -> tuple[SinkCall, ...]:
        options: dict[str, dict[str, str]] = {}
        plugins: dict[str, PlacedValue] = {}
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
            problem = f'the sink "{name}" has options but no plug-in'
            self._wrong(written, problem, f"Name its plug-in: '{key}' = 'positioned_file'.")
        return tuple(
            SinkCall(name, written.value.strip(), options.get(name, {}), written.place)
            for name, written in plugins.items()
        )

    def flow_settings(self) -> Mapping[str, str]:
        """The project settings that this table overrides for its own flow and sources."""
        settings = (*FLOW_SETTINGS, *SOURCE_SETTINGS)
        return {
            each.key: self._written[each.key].value
            for each in settings
            if self.find(each) is not None
        }


def _known_properties(holder: Holder) -> str | None:
    known = [each.key for each in settings_of(holder) if each.prefix is None or each is SINK]
    if not known:
        return "A view that is not stored has no promises: make it a materialized view."
    return f"The properties of {holder.value} are {', '.join(sorted(known))}."
