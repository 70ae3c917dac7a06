"""What happens in a shop?

Orders with their lines, payments some moments later, and changes to customers, as small files that
appear in a data folder every half a second or so; at first, all at once, what happened before. As
in life, some of it is late, out of order, sent twice, or broken. Everything follows from the seed
and the moment at which it began, so what was generated can be generated again.

    python generator.py data --products reference/products.csv --ledger ledger.json --seconds 60

`Shop` says what happens, and `Generator` writes it down. A file is written under a dotted name and
renamed, because a reader may look at any time. The ledger (see `ledger.py`) is written after the
files of each tick, and says what an honest warehouse must hold in the end.
"""

import argparse
import csv
import io
import json
import random
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from types import FrameType

import pyarrow as pa
import pyarrow.parquet as pq
from ledger import Entry, Ledger

TICK_SECONDS = 0.6
CUSTOMERS = 400
ORDERS_BEFORE = 1_000

_CENT = Decimal("0.01")
_COUNTRIES = ("DE", "FR", "IN", "JP", "KE", "NO", "PE", "US")
_TIERS = ("bronze", "silver", "gold")
_CHANNELS = ("web", "web", "web", "app", "app", "store")
_METHODS = ("card", "card", "transfer", "voucher")
_NAMES = (
    "Ada",
    "Bo",
    "Chidi",
    "Dana",
    "Eero",
    "Fatou",
    "Gil",
    "Hana",
    "Ines",
    "Jun",
    "Kofi",
    "Lea",
)


@dataclass
class Tick:
    """What appears at one moment: the content of a file for each feed, and what to expect of it."""

    orders: list[str] = field(default_factory=list)
    order_lines: list[tuple[int, int, int, int, Decimal]] = field(default_factory=list)
    payments: list[str] = field(default_factory=list)
    customers: list[str] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)


class Shop:
    """A shop in which time passes by `tick`."""

    def __init__(self, seed: int, began: datetime, prices: Mapping[int, Decimal]) -> None:
        self._random = random.Random(seed)
        self._began = began
        self._prices = prices
        self._ticks = 0
        self._orders = 0
        self._payments = 0
        self._sequence = 0
        self._customers: dict[int, tuple[str, str, str]] = {}
        self._unpaid: list[tuple[int, int, Decimal]] = []  # due tick, order, amount
        self._delayed: list[tuple[int, str, Entry]] = []  # due tick, change event, its entry

    def tick(self) -> Tick:
        """The next moment."""
        tick = Tick()
        first = self._ticks == 0
        self._change_customers(tick, CUSTOMERS if first else self._random.randint(2, 8))
        for _ in range(ORDERS_BEFORE if first else self._random.randint(25, 70)):
            self._place_order(tick)
        self._pay(tick)
        self._send_delayed(tick, self._ticks)
        self._ticks += 1
        return tick

    def closing(self) -> Tick:
        """The last moment: what was held back arrives, and open orders stay unpaid."""
        tick = Tick()
        self._send_delayed(tick, None)
        return tick

    def _now(self) -> datetime:
        return self._began + timedelta(seconds=self._ticks * TICK_SECONDS)

    # Orders

    def _place_order(self, tick: Tick) -> None:
        dice = self._random
        self._orders += 1
        order = self._orders
        late = dice.uniform(2.0, 12.0) if dice.random() < 0.05 else dice.uniform(0.0, TICK_SECONDS)
        record = {
            "order_id": order,
            "customer_id": dice.randint(1, CUSTOMERS),
            "channel": dice.choice(_CHANNELS),
            "placed_at": _timestamp(self._now() - timedelta(seconds=late)),
        }
        broken = dice.random()
        if broken < 0.004:  # the till's battery died
            tick.orders.append(json.dumps(record)[: dice.randint(18, 40)])
        elif broken < 0.008:
            tick.orders.append(json.dumps(record | {"customer_id": "walk-in"}))
        elif broken < 0.012:
            tick.orders.append(json.dumps(record | {"customer_id": None}))
        else:
            if broken < 0.022:  # a channel that nobody declared yet: kept, and counted
                record["channel"] = "kiosk"
                tick.entries.append(Entry.noted("orders", "known_channel"))
            tick.orders.append(json.dumps(record))
            row = (order, record["customer_id"], record["channel"])
            tick.entries.append(Entry.good("orders", row))
            self._add_lines(tick, order)
            return
        tick.entries.append(Entry.quarantined("orders", order))

    def _add_lines(self, tick: Tick, order: int) -> None:
        dice = self._random
        products = sorted(self._prices)
        weights = [1 / rank for rank in range(1, len(products) + 1)]
        bought = sorted(set(dice.choices(products, weights, k=dice.randint(1, 5))))
        total = Decimal(0)
        for line, product in enumerate(bought, start=1):
            price = self._prices[product]
            quantity = 0 if dice.random() < 0.01 else dice.randint(1, 4)
            tick.order_lines.append((order, line, product, quantity, price))
            if quantity:
                total += quantity * price
                row = (order, line, product, quantity, price)
                tick.entries.append(Entry.good("order_lines", row))
            else:
                tick.entries.append(Entry.dropped("order_lines"))
        if total and dice.random() < 0.9:
            # One in ten pays in two parts.
            first = total if dice.random() < 0.9 else (total / 2).quantize(_CENT)
            for part in filter(None, (first, total - first)):
                self._unpaid.append((self._ticks + dice.randint(0, 8), order, part))

    # Payments

    def _pay(self, tick: Tick) -> None:
        dice = self._random
        due = [each for each in self._unpaid if each[0] <= self._ticks]
        self._unpaid = [each for each in self._unpaid if each[0] > self._ticks]
        for _, order, amount in due:
            self._payments += 1
            payment, method = self._payments, dice.choice(_METHODS)
            paid_at = _timestamp(self._now() - timedelta(seconds=dice.uniform(0.0, TICK_SECONDS)))
            row = (payment, order, method, amount)
            broken = dice.random()
            if broken < 0.004:  # a clearing warehouse that writes amounts in words
                tick.payments.append(_csv(payment, order, method, "twelve fifty", paid_at))
            elif broken < 0.008:  # a refund in the wrong file
                tick.payments.append(_csv(payment, order, method, -amount, paid_at))
            else:
                tick.payments.append(_csv(*row, paid_at))
                tick.entries.append(Entry.good("payments", row))
                continue
            tick.entries.append(Entry.quarantined("payments", payment))

    # Customers

    def _change_customers(self, tick: Tick, count: int) -> None:
        dice = self._random
        for each in range(count):
            customer = each + 1 if self._ticks == 0 else dice.randint(1, CUSTOMERS)
            self._sequence += 1
            before = self._customers.get(customer)
            if before is not None and dice.random() < 0.1:
                del self._customers[customer]
                event = self._event("delete", customer, before)
            else:
                name = before[0] if before else f"{dice.choice(_NAMES)} {customer}"
                country = before[1] if before and dice.random() < 0.7 else dice.choice(_COUNTRIES)
                self._customers[customer] = (name, country, dice.choice(_TIERS))
                event = self._event("upsert", customer, self._customers[customer])
            entry = Entry.change(self._sequence, *event)
            text = json.dumps(dict(zip(_CHANGE, (self._sequence, *event), strict=True)))
            fate = dice.random() if self._ticks else 1.0
            if fate < 0.15:  # overtaken by later events
                self._delayed.append((self._ticks + dice.randint(1, 5), text, entry))
            else:
                _send(tick, text, entry)
            if fate > 0.95:  # sent twice, as a queue that delivers at least once does
                self._delayed.append((self._ticks + dice.randint(1, 5), text, entry))

    @staticmethod
    def _event(
        operation: str, customer: int, state: tuple[str, str, str]
    ) -> tuple[str, int, str | None, str | None, str | None]:
        name, country, tier = state if operation == "upsert" else (None, None, None)
        return operation, customer, name, country, tier

    def _send_delayed(self, tick: Tick, now: int | None) -> None:
        for due, text, entry in self._delayed:
            if now is None or due <= now:
                _send(tick, text, entry)
        self._delayed = [each for each in self._delayed if now is not None and each[0] > now]


_CHANGE = ("sequence", "operation", "customer_id", "name", "country", "tier")
_PAYMENT = ("payment_id", "order_id", "method", "amount", "paid_at")
_LINES = pa.schema(
    [
        ("order_id", pa.int64()),
        ("line", pa.int32()),
        ("product_id", pa.int64()),
        ("quantity", pa.int32()),
        ("unit_price", pa.decimal128(10, 2)),
    ]
)


def _send(tick: Tick, text: str, entry: Entry) -> None:
    tick.customers.append(text)
    tick.entries.append(entry)


def _timestamp(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _csv(*values: object) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(values)
    return text.getvalue()


# Files


def write(tick: Tick, number: int, folder: Path) -> None:
    """The files of one tick, each of which appears whole or not at all."""
    _appear(folder / "orders" / f"{number:05}.json", _lines(tick.orders))
    _appear(folder / "payments" / f"{number:05}.csv", _lines(tick.payments, ",".join(_PAYMENT)))
    _appear(folder / "customers" / f"{number:05}.json", _lines(tick.customers))
    if tick.order_lines:
        columns = zip(*tick.order_lines, strict=True)
        arrays = [pa.array(c, f.type) for c, f in zip(columns, _LINES, strict=True)]
        content = io.BytesIO()
        pq.write_table(pa.table(arrays, schema=_LINES), content)
        _appear(folder / "order_lines" / f"{number:05}.parquet", content.getvalue())


def _lines(records: Sequence[str], header: str | None = None) -> bytes:
    if not records:
        return b""
    return "".join(f"{line}\n" for line in ([header] if header else []) + [*records]).encode()


def _appear(path: Path, content: bytes) -> None:
    if not content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    hidden = path.with_name(f".{path.name}")
    hidden.write_bytes(content)
    hidden.rename(path)


def read_prices(products: Path) -> dict[int, Decimal]:
    """What the shop asks for each product: what it paid, and two thirds on top."""
    with products.open(newline="") as file:
        rows = csv.DictReader(file)
        return {int(r["product_id"]): (Decimal(r["cost"]) * 5 / 3).quantize(_CENT) for r in rows}


class Generator:
    """Writes a shop's trade into a folder as time passes."""

    def __init__(self, shop: Shop, folder: Path, ledger: Path) -> None:
        self._shop = shop
        self._folder = folder
        self._ledger_file = ledger
        self._ledger = Ledger()
        self._number = 0
        self.stopped = False

    def stop(self, signal_number: int = 0, frame: FrameType | None = None) -> None:
        """End after the tick that is being written."""
        self.stopped = True

    def run(self, seconds: float) -> None:
        """Trade for so long, at the shop's own pace, then close."""
        began = time.monotonic()
        while not self.stopped and time.monotonic() - began < seconds:
            self._write(self._shop.tick())
            pause = began + self._number * TICK_SECONDS - time.monotonic()
            time.sleep(max(pause, 0.0))
        self._write(self._shop.closing())

    def _write(self, tick: Tick) -> None:
        write(tick, self._number, self._folder)
        self._number += 1
        self._ledger.enter(tick.entries)
        _appear(self._ledger_file, self._ledger.to_json().encode())


def main() -> None:
    parser = argparse.ArgumentParser(description="A shop's trade as small files, for a while.")
    parser.add_argument("folder", type=Path, help="where the files appear, a folder per feed")
    parser.add_argument("--ledger", type=Path, required=True, help="where to say what was sent")
    parser.add_argument("--products", type=Path, required=True, help="products.csv, with costs")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    shop = Shop(given.seed, datetime.now(UTC), read_prices(given.products))
    generator = Generator(shop, given.folder, given.ledger)
    signal.signal(signal.SIGTERM, generator.stop)
    signal.signal(signal.SIGINT, generator.stop)
    generator.run(given.seconds)


if __name__ == "__main__":
    main()
