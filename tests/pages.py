"""The pages of the documentation as tests read them: headings, links, blocks."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
SITE = ROOT / "docs"

_FENCE = re.compile(r"^(?P<indent> *)```(?P<info>.*)$")
_TITLE = re.compile(r'title="(?P<title>[^"]+)"')
_COMMENT = re.compile(r"^<!-- (?P<text>.*) -->$")
_HEADING = re.compile(r"^#{1,6} (?P<text>.*)$")
_LINK = re.compile(r"(?<!!)\[(?:[^\[\]]|\[[^\]]*\])*\]\((?P<target>[^()\s]+)\)")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: the text of its fence, its lines, and the comment above it."""

    page: Path
    line: int
    language: str
    title: str | None
    text: str
    comment: str | None

    @property
    def where(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def all_pages() -> list[Path]:
    """Every page for readers: the site, and the pages beside the code."""
    beside = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")]
    folders = [
        *SITE.rglob("*.md"),
        *(ROOT / "examples").rglob("*.md"),
        *(ROOT / "bench").rglob("*.md"),
    ]
    return [*beside, *sorted(folders)]


def blocks_of(page: Path) -> list[Block]:
    found: list[Block] = []
    comment: str | None = None
    begun: tuple[int, str, str] | None = None  # line, info, indentation
    lines: list[str] = []
    for number, line in enumerate(page.read_text().splitlines(), start=1):
        fence = _FENCE.match(line)
        if begun is None and fence:
            begun, lines = (number, fence["info"].strip(), fence["indent"]), []
        elif begun is not None and fence and not fence["info"]:
            start, info, _ = begun
            title = _TITLE.search(info)
            found.append(
                Block(
                    page,
                    start,
                    info.split(" ")[0],
                    title["title"] if title else None,
                    "\n".join(lines) + "\n",
                    comment,
                )
            )
            begun, comment = None, None
        elif begun is not None:
            lines.append(line.removeprefix(begun[2]))
        elif told := _COMMENT.match(line):
            comment = told["text"]
        elif line.strip():
            comment = None
    assert begun is None, f"{page}: a block is not closed"
    return found


def links_of(page: Path) -> Iterator[tuple[int, str]]:
    """The links of a page with their lines, without those inside of blocks."""
    for number, line in _prose(page):
        for link in _LINK.finditer(re.sub(r"`[^`]*`", "`", line)):
            yield number, link["target"]


def anchors_of(page: Path) -> set[str]:
    """The anchors that may follow `page.md#`."""
    headings = (_HEADING.match(line) for _, line in _prose(page))
    return {_slug(heading["text"]) for heading in headings if heading}


def _slug(heading: str) -> str:
    """As Python-Markdown's `toc` makes it, and GitHub for headings of letters and spaces."""
    plain = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def _prose(page: Path) -> Iterator[tuple[int, str]]:
    inside = False
    for number, line in enumerate(page.read_text().splitlines(), start=1):
        if _FENCE.match(line):
            inside = not inside
        elif not inside:
            yield number, line
