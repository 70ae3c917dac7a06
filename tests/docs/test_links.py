"""Every link of the documentation leads somewhere, and the site builds."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from pages import ROOT, SITE, all_pages, anchors_of, links_of


@pytest.mark.parametrize("page", all_pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_a_file_and_a_heading(page: Path):
    broken = [
        f"line {line}: {target}" for line, target in links_of(page) if not _leads(page, target)
    ]
    assert broken == []


def _leads(page: Path, target: str) -> bool:
    if target.startswith(("https://", "http://", "mailto:")):
        return True
    path, _, anchor = target.partition("#")
    file = (page.parent / path).resolve() if path else page
    if not file.exists():
        return False
    return not anchor or anchor in anchors_of(file)


def test_every_page_of_the_site_is_in_its_menu_or_is_a_decision():
    menu = set(_pages_in(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]))
    pages = {str(page.relative_to(SITE)) for page in SITE.rglob("*.md")}
    assert menu - pages == set()
    assert {page for page in pages - menu if not page.startswith("decisions/0")} == set()


def _pages_in(entry: object) -> list[str]:
    if isinstance(entry, str):
        return [entry]
    parts = entry.values() if isinstance(entry, dict) else entry
    return [page for part in parts for page in _pages_in(part)]  # type: ignore[attr-defined]


def test_the_site_builds_without_a_warning_and_without_a_network(tmp_path: Path):
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", tmp_path]
    built = subprocess.run(
        build,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env={
            "PATH": "/usr/bin:/bin",
            "NO_MKDOCS_2_WARNING": "1",
            "NO_PROXY": "*",
            "https_proxy": "http://127.0.0.1:9",
        },
    )
    assert (built.returncode, built.stdout + built.stderr) == (0, "")
    home = (tmp_path / "index.html").read_text()
    assert "Springhouse" in home
    # A reader without a network gets every font, style and script from the site itself.
    loaded = [
        part
        for part in home.split('"')
        if part.startswith("http") and part.endswith((".js", ".css"))
    ]
    assert loaded == []
