"""What does a paper say, what came out here, and did that move since somebody last looked at it?

A finding is compared twice. The first comparison is with the paper: it agrees, or it differs and
gives the reason. The second is with itself. `bench/papers/held` has one file per page with the
numbers behind each finding, their tolerances, and whether the finding agreed. So "differs" does not
excuse any result:

    held / (1 + tolerance) <= measured <= held × (1 + tolerance)

A run fails if a number leaves its tolerance, in either direction, or if a verdict changes. It also
fails if a finding is not held, if a held one is gone, and if a finding differs without a reason.
`--hold` stores the results for comparison with the next run: look at the difference before you
commit it.
"""

import argparse
import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from pathlib import Path

HELD = Path(__file__).parent / "held"
_FIELDS = ("finding", "number", "held", "tolerance", "verdict")
_USUAL = 0.1


@dataclass(frozen=True)
class Finding:
    """The paper's statement, our result, and whether they agree, or why they need not.

    `numbers` support the verdict, by name. They are ratios, because ratios are alike on all
    machines. `tolerance` is by how much they may move: 0.1 is a tenth up or down.
    """

    paper: str
    ours: str
    agrees: bool
    differs: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict)
    tolerance: float = _USUAL

    @property
    def verdict(self) -> str:
        return "agrees" if self.agrees else "differs"


@dataclass(frozen=True)
class Number:
    """A number behind a finding, at its last inspection."""

    held: float
    tolerance: float
    verdict: str

    def has_moved(self, measured: float) -> bool:
        """Whether a number is out of the tolerance, above or below; nothing is about as large as 0.

        >>> number = Number(100.0, 0.1, "agrees")
        >>> [number.has_moved(each) for each in (90.0, 91.0, 110.0, 111.0)]
        [True, False, False, True]
        """
        if isnan(measured):
            return True
        low, high = sorted((self.held / (1 + self.tolerance), self.held * (1 + self.tolerance)))
        # The stored numbers are rounded.
        return not low - 1e-6 * abs(low) <= measured <= high + 1e-6 * abs(high)


class Page:
    """The stored findings of a page, under its name.

    The findings of a small run say nothing about the paper, so they may differ without a reason.
    """

    def __init__(self, name: str, folder: Path = HELD, *, is_small: bool = False) -> None:
        self.name, self._file, self._is_small = name, folder / f"{name}.csv", is_small
        self.numbers: dict[tuple[str, str], Number] = {}
        if self._file.exists():
            with self._file.open(newline="", encoding="utf-8") as file:
                for row in csv.DictReader(file):
                    self.numbers[row["finding"], row["number"]] = Number(
                        float(row["held"]), float(row["tolerance"]), row["verdict"]
                    )

    def hold(self, findings: Sequence[Finding]) -> None:
        """Store the results for comparison with the next run."""
        self.numbers = {
            (each.paper, name): Number(float(f"{value:.6g}"), each.tolerance, each.verdict)
            for each in findings
            for name, value in each.numbers.items()
        }
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._file.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(_FIELDS)
            for (finding, name), each in self.numbers.items():
                row = [finding, name, f"{each.held:.6g}", f"{each.tolerance:g}", each.verdict]
                writer.writerow(row)

    def problems(self, findings: Sequence[Finding]) -> list[str]:
        """One sentence for each number that moved, and for every other difference."""
        found: list[str] = []
        gone = dict.fromkeys(self.numbers)
        for each in findings:
            if not (each.agrees or each.differs or self._is_small):
                found.append(f'"{each.paper}" differs, and no reason is known: {each.ours}')
            if not each.numbers:
                found.append(f'"{each.paper}" rests on no number')
            for name, measured in each.numbers.items():
                gone.pop((each.paper, name), None)
                found += self._moved(each, name, measured)
        found += [f'"{paper}" is held ({name}), and nobody finds it now' for paper, name in gone]
        return found

    def _moved(self, finding: Finding, name: str, measured: float) -> list[str]:
        known = self.numbers.get((finding.paper, name))
        if known is None:
            return [f'"{finding.paper}" is not held: {name} is {measured:.4g}; see --hold']
        found = []
        if known.has_moved(measured):
            found.append(
                f'"{finding.paper}" moved: {name} was {known.held:.4g} '
                f"± {known.tolerance:.0%} and is {measured:.4g}"
            )
        if known.verdict != finding.verdict:
            found.append(f'"{finding.paper}": {known.verdict} before, {finding.verdict} now')
        return found

    def rows(self, findings: Sequence[Finding]) -> list[list[str]]:
        """The paper's statement, our result, the stored numbers, and the verdict, side by side."""
        found = []
        for each in findings:
            why = f". {each.differs}" if each.differs and not each.agrees else ""
            verdict = "agrees" if each.agrees else "**differs**"
            ours = each.ours.rstrip(".") if why else each.ours
            found.append([each.paper, f"{ours}{why}", self._held(each), verdict])
        return found

    def _held(self, finding: Finding) -> str:
        held = {name: self.numbers.get((finding.paper, name)) for name in finding.numbers}
        known = {name: each for name, each in held.items() if each is not None}
        if not known:
            return "not held"
        tolerance = next(iter(known.values())).tolerance
        many = len(known) > 1
        told = ", ".join(
            f"{name} {each.held:.3g}" if many else f"{each.held:.3g}"
            for name, each in known.items()
        )
        return f"{told} (± {tolerance:.0%})"

    def settle(self, findings: Sequence[Finding], *, hold: bool) -> bool:
        """Store the findings or compare them; False, with reasons on the screen, if they differ."""
        if hold:
            self.hold(findings)
        problems = self.problems(findings)
        for each in problems:
            print(f"{self.name}: {each}")
        return not problems


HEADERS = ("the paper's finding", "ours", "held", "")


def findings_table(page: Page, findings: Sequence[Finding]) -> str:
    """The findings of a page as Markdown."""
    lines: list[Sequence[str]] = [HEADERS, ["---"] * len(HEADERS), *page.rows(findings)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def add_hold_option(parser: argparse.ArgumentParser) -> None:
    """Add `--hold`, with the same help text for every page."""
    parser.add_argument(
        "--hold", action="store_true", help="hold what comes out, for later runs to be compared"
    )
