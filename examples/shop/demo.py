"""A shop's warehouse for a minute: data streams in, views stay fresh, and everything is checked.

    python examples/shop/demo.py [--seconds 75] [--dir FOLDER] [--seed 7]

A generator writes small files in a process of its own; a warehouse over a fresh copy of the project
keeps eight tables and eleven views up to date. In the end the generator stops, one last refresh
brings everything up to date, and `checks` holds every row against an account of what was sent.
"""

import argparse
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import checks
import ledger
import screen
from rich.console import Console

import springhouse
from springhouse.warehouse import Done, FreshnessRecord

SHOP = Path(__file__).resolve().parent
PROJECT = ("spark-pipeline.yml", "transformations", "reference", "README.md")
MARK = ".springhouse-demo"
QUICK = {
    # A minute is too short for compilers to pay: the JVM's second one, and Spark's for queries.
    # Processor time, measured: 30 s instead of 53 for the first refresh, 8 instead of 16 for later.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}
LONGEST_START = 120.0
"""The generator ends by itself so many seconds after it should have been stopped."""


def main() -> int:
    given = _arguments()
    console = Console(width=None if sys.stdout.isatty() else 120, highlight=False)
    began = time.monotonic()
    try:
        fresh_copy(given.dir)
        code = Demo(given.dir, given.seconds, given.seed, console).run()
    except springhouse.SpringhouseError as error:
        console.print(str(error), style="red", markup=False)
        return 1
    console.print(f"\nIt took {time.monotonic() - began:.0f} s in all.")
    return code


class Demo:
    """One run, in one folder."""

    def __init__(self, folder: Path, seconds: float, seed: int, console: Console) -> None:
        self._folder = folder
        self._ledger_file = folder / "ledger.json"
        self._seconds = seconds
        self._seed = seed
        self._console = console
        self._progress = screen.Progress(console)
        self._interrupted = False
        self._done: list[Done] = []
        self._freshness: Mapping[str, FreshnessRecord] = {}

    def run(self) -> int:
        """Stream, refresh, sum up, check; the exit code."""
        warehouse = springhouse.open(self._folder, configuration=QUICK, listener=self._progress)
        with warehouse, self._stopping(warehouse):
            with self._generator():
                self._stream(warehouse)
            if not self._interrupted:
                self._console.print("The shop is closed; one last refresh …")
                self._done += warehouse.refresh().done
            if self._interrupted:
                self._console.print("Stopped. What was committed is complete, and stays.")
                return 130
            self._sum_up(warehouse)
            ok = self._check(warehouse)
        self._console.print(farewell(self._folder), soft_wrap=True)
        return 0 if ok else 1

    def _stream(self, warehouse: springhouse.Warehouse) -> None:
        """Start Spark and make everything once; then keep it fresh."""
        project = warehouse.project
        count = f"{len(project.tables)} tables and {len(project.views)} views"
        self._console.print(f"Starting Spark, and making {count} for the first time …")
        started = time.monotonic()
        self._done += warehouse.refresh().done
        # Once more, for what came in meanwhile: the promises are for a warehouse that runs.
        self._done += warehouse.refresh().done
        if self._interrupted:
            return
        passed = time.monotonic() - started
        # Where Spark starts slowly, less of the day is left, but enough to see something.
        left = max(self._seconds - passed, 0.4 * self._seconds)
        self._console.print(
            f"That took {passed:.0f} s. The shop is open for another {left:.0f} s:\n"
        )
        with self._progress.watching(warehouse.status):
            refreshed = warehouse.run(left)
        self._done += refreshed.done
        self._freshness = refreshed.freshness

    @contextmanager
    def _generator(self) -> Iterator[None]:
        """The shop's trade, in a process of its own, until the block is left."""
        command = [sys.executable, str(SHOP / "generator.py"), str(self._folder / "data")]
        options = {
            "--ledger": self._ledger_file,
            "--products": self._folder / "reference" / "products.csv",
            "--seconds": self._seconds + LONGEST_START,
            "--seed": self._seed,
        }
        for name, value in options.items():
            command += [name, str(value)]
        # In a session of its own, so that Ctrl-C reaches only us, and we end it in our order.
        process = subprocess.Popen(command, start_new_session=True)
        try:
            while not self._ledger_file.exists() and process.poll() is None:
                time.sleep(0.05)
            yield
            if process.poll() is not None:
                raise springhouse.SpringhouseError(
                    f"the generator ended early, with code {process.returncode}"
                )
        finally:
            process.terminate()
            process.wait(timeout=20)

    @contextmanager
    def _stopping(self, warehouse: springhouse.Warehouse) -> Iterator[None]:
        """Let Ctrl-C end the warehouse after the commits that are being written."""

        def stop(number: int, frame: FrameType | None) -> None:
            self._interrupted = True
            warehouse.stop()
            signal.signal(signal.SIGINT, signal.default_int_handler)  # the second one is in earnest

        before = signal.signal(signal.SIGINT, stop)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    # The end

    def _sum_up(self, warehouse: springhouse.Warehouse) -> None:
        statuses = warehouse.status()
        violations = {s.name: sum(_violations(warehouse, s.name).values()) for s in statuses}
        self._console.print(screen.sources_table(statuses, self._done, violations))
        self._show_quarantine(warehouse)
        self._console.print()
        self._console.print(screen.promises_table(statuses, self._freshness, self._done))
        self._console.print(screen.MEASURES, style="dim")
        for failure in self._progress.failures:
            self._console.print(f"failed: {failure}", style="red", markup=False)

    def _show_quarantine(self, warehouse: springhouse.Warehouse) -> None:
        read = checks.reader(self._location(warehouse))
        self._console.print("\nFrom the quarantine")
        for table in ("orders", "payments"):
            shown: dict[str, str] = {}
            for row in read(f"{table}_quarantine").to_pylist():
                shown.setdefault(row["reason"], row["record"])
            for reason, record in sorted(shown.items())[:3]:
                text = f"  {table}: {reason}\n      {record}"
                self._console.print(text, markup=False, soft_wrap=True)

    def _check(self, warehouse: springhouse.Warehouse) -> bool:
        """Hold everything against what was sent, and against its own definition."""
        accounts = ledger.from_json(self._ledger_file.read_text())
        location = self._location(warehouse)
        read = checks.reader(location)
        project = warehouse.project
        views = [project.views[s.name] for s in warehouse.status() if s.kind == "view"]
        spark = warehouse.query("SELECT 1").sparkSession
        self._console.print("\nChecking what the tables hold, without asking Springhouse …")
        good = self._tell(
            "every base table holds every good row exactly once",
            [*checks.check_tables(accounts, read), *checks.check_clicks(read)],
        )
        good &= self._tell(
            "every bad record is in quarantine, every broken expectation is counted",
            [
                *checks.check_quarantines(accounts, read),
                *checks.check_violations(accounts, lambda name: _violations(warehouse, name)),
            ],
        )
        good &= self._tell(
            "every view equals its recomputation",
            list(checks.check_views(spark, list(project.tables), views, read)),
        )
        good &= self._tell(
            "no version of reconciliation mixed two states of the orders",
            list(checks.check_diamond(location("reconciliation"))),
        )
        return good

    def _tell(self, claim: str, findings: Sequence[checks.Finding]) -> bool:
        wrong = [finding for finding in findings if not finding.ok]
        mark = "[red]✗[/]" if wrong else "[green]✓[/]"
        self._console.print(f"  {mark} {claim}")
        for finding in wrong or findings:
            told = f"{finding.claim}: {finding.problem}" if finding.problem else finding.claim
            style = "red" if finding.problem else "dim"
            self._console.print(f"      {told}", style=style, markup=False, soft_wrap=True)
        return not wrong

    def _location(self, warehouse: springhouse.Warehouse) -> "checks.Location":
        return lambda name: str(Path(warehouse.explain("orders").location).with_name(name))


def _violations(warehouse: springhouse.Warehouse, table: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    for commit in warehouse.history(table):
        counts.update(commit.violations)
    return counts


def farewell(folder: Path) -> str:
    """Where everything is, and what to try next."""
    here, programs = _short(folder), _short(Path(sys.executable).parent)
    tables = f"{here}/storage/tables"
    leaders = f"DeltaTable('{tables}/category_leaders').to_pandas()"
    pairs = f"DeltaTable('{tables}/bought_together').to_pyarrow_table()"
    return f"""
The tables are ordinary Delta tables in {tables}. Ask Springhouse, or any Delta reader:

  {programs}/springhouse query -p {here} "SELECT * FROM reconciliation"
  {programs}/springhouse explain -p {here} reconciliation
  {programs}/python -c "from deltalake import DeltaTable; print({leaders})"
  {programs}/python -c "import duckdb; from deltalake import DeltaTable; pairs = {pairs}
print(duckdb.sql('FROM pairs WHERE place = 1'))"
"""


def _short(path: Path) -> Path:
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def fresh_copy(folder: Path) -> None:
    """Make `folder` a new copy of the project; what an earlier demo left there is deleted."""
    if folder.exists() and any(folder.iterdir()):
        if not (folder / MARK).exists():
            raise springhouse.SpringhouseError(
                "this folder is not empty, and not from an earlier demo",
                where=str(folder),
                hint="Name another one with --dir.",
            )
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).touch()
    for name in PROJECT:
        copy = shutil.copytree if (SHOP / name).is_dir() else shutil.copy
        copy(SHOP / name, folder / name)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A shop's warehouse, streaming for a while.")
    parser.add_argument("--seconds", type=float, default=75.0, help="how long the shop is open")
    parser.add_argument("--dir", type=Path, default=SHOP / ".demo", help="the folder to work in")
    parser.add_argument("--seed", type=int, default=7, help="another seed, another day's trade")
    given = parser.parse_args()
    given.dir = given.dir.resolve()
    return given


if __name__ == "__main__":
    sys.exit(main())
