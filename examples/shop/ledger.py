"""What must an honest warehouse hold, in the end?

The generator enters everything that it sends, by what should become of it: good rows, rows that
are dropped by an expectation, rows that are kept and counted, and bad ones that go to quarantine.
Rows are compared by their number and by a checksum that does not depend on their order:

    checksum = sum of crc32(row) over the rows, modulo 2^64

so a row that is missing, or there twice, shows. For customers the ledger does what AUTO CDC
promises to do, in a few lines of its own: it puts the events of a customer in the order of their
sequence, whatever order they came in.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from zlib import crc32

Row = Sequence[object]

COLUMNS = {
    "orders": ("order_id", "customer_id", "channel"),
    "order_lines": ("order_id", "line", "product_id", "quantity", "unit_price"),
    "payments": ("payment_id", "order_id", "method", "amount"),
    "customer_changes": ("sequence", "operation", "customer_id", "name", "country", "tier"),
    "customers": ("customer_id", "name", "country", "tier"),
    "customers_history": ("customer_id", "name", "country", "tier", "__START_AT", "__END_AT"),
}
"""The columns that count for a table's checksum; timestamps are left out."""


@dataclass(frozen=True)
class Entry:
    """One record that was sent, and what should become of it."""

    table: str
    fate: str
    row: Row = ()
    detail: str | int = ""

    @staticmethod
    def good(table: str, row: Row) -> "Entry":
        return Entry(table, "good", row)

    @staticmethod
    def dropped(table: str) -> "Entry":
        return Entry(table, "dropped")

    @staticmethod
    def noted(table: str, expectation: str) -> "Entry":
        """A row that is kept although it breaks an expectation; it is entered as good too."""
        return Entry(table, "noted", detail=expectation)

    @staticmethod
    def quarantined(table: str, id: int) -> "Entry":
        return Entry(table, "quarantined", detail=id)

    @staticmethod
    def change(*event: object) -> "Entry":
        return Entry("customer_changes", "good", event)


@dataclass
class Account:
    """What one table should hold, and what it should have turned away."""

    rows: int = 0
    checksum: int = 0
    dropped: int = 0
    noted: dict[str, int] = field(default_factory=dict)
    quarantined: list[int] = field(default_factory=list)

    def add(self, row: Row) -> None:
        self.rows += 1
        self.checksum = (self.checksum + crc32(_text(row))) % 2**64


def account_of(rows: Iterable[Row]) -> Account:
    """The account of rows that are there."""
    account = Account()
    for row in rows:
        account.add(row)
    return account


def _text(row: Row) -> bytes:
    return "|".join("" if value is None else str(value) for value in row).encode()


class Ledger:
    """The accounts of all tables that the generator feeds."""

    def __init__(self) -> None:
        self._accounts = {table: Account() for table in COLUMNS}
        self._events: dict[int, Row] = {}  # by sequence: an event that came twice is one event

    def enter(self, entries: Iterable[Entry]) -> None:
        """Write down what was sent."""
        for entry in entries:
            account = self._accounts[entry.table]
            match entry.fate:
                case "good":
                    account.add(entry.row)
                case "dropped":
                    account.dropped += 1
                case "noted":
                    name = str(entry.detail)
                    account.noted[name] = account.noted.get(name, 0) + 1
                case "quarantined":
                    account.quarantined.append(int(entry.detail))
                case _:
                    raise AssertionError(f"nobody knows the fate {entry.fate}")
            if entry.table == "customer_changes":
                self._events[int(str(entry.row[0]))] = entry.row

    def accounts(self) -> dict[str, Account]:
        """Every table's account, with what customers came to in the order of their sequence."""
        now, history = _applied(self._events)
        derived = {"customers": account_of(now), "customers_history": account_of(history)}
        return self._accounts | derived

    def to_json(self) -> str:
        return json.dumps({table: asdict(a) for table, a in self.accounts().items()}, indent=1)


def from_json(text: str) -> dict[str, Account]:
    """The accounts that a generator wrote."""
    return {table: Account(**account) for table, account in json.loads(text).items()}


def _applied(events: dict[int, Row]) -> tuple[list[Row], list[Row]]:
    """The customers as they are, and as they ever were."""
    states: dict[object, list[tuple[int, Row]]] = {}
    for sequence in sorted(events):
        states.setdefault(events[sequence][2], []).append((sequence, events[sequence]))
    now: list[Row] = []
    history: list[Row] = []
    for customer, changes in states.items():
        ends = [sequence for sequence, _ in changes[1:]] + [None]
        for (start, (_, operation, _, *state)), end in zip(changes, ends, strict=True):
            if operation == "upsert":
                history.append((customer, *state, start, end))
                if end is None:
                    now.append((customer, *state))
    return now, history
