"""The shop of `make demo`: its trade can be repeated, its ledger is right, its checks can fail."""

import csv
import json
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import springhouse
from springhouse.project.declarations.declaration import OnViolation

SHOP = Path(__file__).parents[2] / "examples" / "shop"
BEGAN = datetime(2026, 5, 4, 9, 0, tzinfo=UTC)
FEEDS = ("orders", "order_lines", "payments", "customers")


@pytest.fixture(scope="module")
def shop() -> Iterator[SimpleNamespace]:
    """The modules of the example, which is a folder of programs and not a package."""
    names = ("ledger", "generator", "checks", "demo")
    sys.path.insert(0, str(SHOP))
    try:
        yield SimpleNamespace(**{name: __import__(name) for name in names})
    finally:
        sys.path.remove(str(SHOP))


@pytest.fixture(scope="module")
def traded(shop: SimpleNamespace, tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """A folder with thirty ticks of trade, and the ledger of the sent records."""
    folder = tmp_path_factory.mktemp("data")
    return SimpleNamespace(folder=folder, ledger=_trade(shop, 7, folder))


def _trade(shop: SimpleNamespace, seed: int, folder: Path, ticks: int = 30) -> object:
    prices = shop.generator.read_prices(SHOP / "reference" / "products.csv")
    trade = shop.generator.Shop(seed, BEGAN, prices)
    book = shop.ledger.Ledger()
    for number in range(ticks + 1):
        tick = trade.tick() if number < ticks else trade.closing()
        shop.generator.write(tick, number, folder)
        book.enter(tick.entries)
    return book


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}


# The project


def test_the_project_declares_what_the_readme_says() -> None:
    project = springhouse.open(SHOP).project
    assert len(project.tables) == 8
    assert len(project.views) == 11
    kinds = {e.on_violation for t in project.tables.values() for e in t.expectations}
    assert kinds == set(OnViolation)


def test_opening_the_project_leaves_nothing_behind_in_its_folder() -> None:
    springhouse.open(SHOP)
    assert not (SHOP / "storage").exists()


# The generator


def test_the_same_seed_gives_the_same_files(
    shop: SimpleNamespace, traded: SimpleNamespace, tmp_path: Path
) -> None:
    _trade(shop, 7, tmp_path)
    assert _contents(tmp_path) == _contents(traded.folder)


def test_another_seed_gives_another_day(
    shop: SimpleNamespace, traded: SimpleNamespace, tmp_path: Path
) -> None:
    _trade(shop, 8, tmp_path)
    assert _contents(tmp_path) != _contents(traded.folder)


def test_every_feed_has_files_and_none_is_half_written(traded: SimpleNamespace) -> None:
    for feed in FEEDS:
        names = [file.name for file in (traded.folder / feed).iterdir()]
        assert names
        assert not [name for name in names if name.startswith(".")]


def test_the_ledger_accounts_for_every_line_of_orders(traded: SimpleNamespace) -> None:
    account = traded.ledger.accounts()["orders"]
    lines = [
        line for f in (traded.folder / "orders").iterdir() for line in f.read_text().split("\n")
    ]
    assert sum(map(bool, lines)) == account.rows + len(account.quarantined)
    assert len(account.quarantined) > 5
    assert account.noted["known_channel"] > 5


def test_the_ledger_accounts_for_every_order_line(
    shop: SimpleNamespace, traded: SimpleNamespace
) -> None:
    account = traded.ledger.accounts()["order_lines"]
    lines = pq.read_table(traded.folder / "order_lines").to_pylist()
    kept = [tuple(line.values()) for line in lines if line["quantity"] > 0]
    assert len(lines) - len(kept) == account.dropped > 5
    assert shop.ledger.account_of(kept).checksum == account.checksum


def test_the_ledger_accounts_for_every_payment(
    shop: SimpleNamespace, traded: SimpleNamespace
) -> None:
    account = traded.ledger.accounts()["payments"]
    rows = []
    for file in (traded.folder / "payments").iterdir():
        with file.open(newline="") as opened:
            rows += list(csv.reader(opened))[1:]
    aside = {str(id) for id in account.quarantined}
    good = [tuple(row[:4]) for row in rows if row[0] not in aside]
    assert len(good) == len(rows) - len(aside) == account.rows
    assert shop.ledger.account_of(good).checksum == account.checksum


def test_changes_come_out_of_order_twice_and_as_deletes(traded: SimpleNamespace) -> None:
    files = sorted((traded.folder / "customers").iterdir())
    events = [json.loads(line) for f in files for line in f.read_text().splitlines()]
    sequences = [event["sequence"] for event in events]
    assert sequences != sorted(sequences)
    assert max(Counter(sequences).values()) == 2
    assert {event["operation"] for event in events} == {"upsert", "delete"}
    assert set(sequences) == set(range(1, max(sequences) + 1))


# The ledger


def test_customers_are_what_the_highest_sequence_says(shop: SimpleNamespace) -> None:
    book, change = shop.ledger.Ledger(), shop.ledger.Entry.change
    book.enter(
        [
            change(1, "upsert", 10, "Ada", "NO", "gold"),
            change(4, "delete", 10, None, None, None),
            change(3, "upsert", 10, "Ada", "PE", "gold"),  # overtaken by its delete
            change(2, "upsert", 11, "Bo", "KE", "silver"),
            change(2, "upsert", 11, "Bo", "KE", "silver"),  # sent twice
        ]
    )
    now, history = (book.accounts()[table] for table in ("customers", "customers_history"))
    assert now == shop.ledger.account_of([(11, "Bo", "KE", "silver")])
    assert history == shop.ledger.account_of(
        [
            (10, "Ada", "NO", "gold", 1, 3),
            (10, "Ada", "PE", "gold", 3, 4),
            (11, "Bo", "KE", "silver", 2, None),
        ]
    )
    assert book.accounts()["customer_changes"].rows == 5


def test_a_ledger_survives_its_json(shop: SimpleNamespace, traded: SimpleNamespace) -> None:
    assert shop.ledger.from_json(traded.ledger.to_json()) == traded.ledger.accounts()


# The checks


def test_a_row_that_is_missing_or_there_twice_is_found(shop: SimpleNamespace) -> None:
    columns = shop.ledger.COLUMNS["customers"]
    rows = [(1, "Ada", "NO", "gold"), (2, "Bo", "KE", "silver")]
    sent = {"customers": shop.ledger.account_of(rows)}

    def found(*there: tuple[object, ...]) -> bool:
        table = pa.table(dict(zip(columns, zip(*there, strict=True), strict=True)))
        (finding,) = shop.checks.check_tables(sent, lambda name: table)
        return bool(finding.ok)

    assert found(rows[1], rows[0])
    assert not found(rows[0])
    assert not found(rows[0], rows[0])


@pytest.mark.parametrize(
    ("records", "ok"),
    [
        (['{"order_id": 7, "cus', '{"order_id":9,"channel":"app"}'], True),
        (['{"order_id": 7, "cus'], False),
        (['{"order_id": 7, "cus', "9", "11"], False),
    ],
)
def test_quarantine_must_hold_exactly_the_bad_records(
    shop: SimpleNamespace, records: list[str], ok: bool
) -> None:
    sent = {"orders": shop.ledger.Account(quarantined=[9, 7])}
    (finding,) = shop.checks.check_quarantines(sent, lambda name: pa.table({"record": records}))
    assert finding.ok is ok


def test_views_are_compared_as_bags(shop: SimpleNamespace) -> None:
    stored = pa.table({"a": [1, 1, 2], "b": [Decimal("1.0"), Decimal("1.0"), None]})
    same = pa.table({"b": [None, Decimal("1.0"), Decimal("1.0")], "a": [2, 1, 1]})
    once = pa.table({"a": [1, 2, 2], "b": [Decimal("1.0"), None, None]})
    assert shop.checks.difference(stored, same) is None
    assert "1 rows too many, 1 missing" in shop.checks.difference(stored, once)
    assert "columns" in shop.checks.difference(stored, stored.select(["a"]))


# The folder that the demo works in


def test_a_folder_that_is_not_a_demo_is_left_alone(shop: SimpleNamespace, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("ten years of work")
    with pytest.raises(springhouse.SpringhouseError, match="not empty"):
        shop.demo.fresh_copy(tmp_path)
    assert (tmp_path / "thesis.txt").exists()


def test_an_earlier_demo_is_replaced(shop: SimpleNamespace, tmp_path: Path) -> None:
    shop.demo.fresh_copy(tmp_path / "demo")
    (tmp_path / "demo" / "storage").mkdir()
    shop.demo.fresh_copy(tmp_path / "demo")
    assert not (tmp_path / "demo" / "storage").exists()
    assert (tmp_path / "demo" / "spark-pipeline.yml").exists()
