"""The page of errors quotes the texts of the code."""

import ast
import re
from pathlib import Path

import springhouse.errors
from pages import ROOT, SITE

PAGE = (SITE / "errors.md").read_text()


def test_every_error_on_the_page_is_one_of_the_code():
    spoken = _texts()
    quoted = re.findall(r"^\| `([^`]+)` \| [^|]* \| [^|]* \|$", PAGE, re.MULTILINE)
    assert len(quoted) >= 15
    parts = [part.strip() for quote in quoted for part in quote.split("…")]
    assert [part for part in parts if part not in spoken] == []


def test_every_class_of_errors_is_on_the_page():
    classes = {
        name
        for name in vars(springhouse.errors)
        if isinstance(getattr(springhouse.errors, name), type)
    }
    errors = {name for name in classes if issubclass(getattr(springhouse.errors, name), Exception)}
    assert {name for name in errors - {"SpringhouseError"} if f"| `{name}` |" not in PAGE} == set()


def _texts() -> str:
    """All text in the code, as one: parts of one literal are joined."""
    texts: list[str] = []
    for file in sorted((Path(ROOT) / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
            if isinstance(node, ast.JoinedStr):
                parts = [v.value if isinstance(v, ast.Constant) else "…" for v in node.values]
                texts.append("".join(map(str, parts)))
    return "\n".join(texts)
