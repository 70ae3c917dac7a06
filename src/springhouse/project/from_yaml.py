"""What does a project's pipeline file say?

`spark-pipeline.yml` (or `.yaml`) is the file of Spark's own `spark-pipelines`: with the same keys,
the same required keys, and the same globs (a plain file, or a folder and `/**`). It is read as a
tree of nodes with positions, not as plain values, so that every error can name its line.
"""

import glob
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from springhouse.errors import DeclarationError
from springhouse.project.declarations.contents import PlacedValue, read_text
from springhouse.project.declarations.declaration import Place
from springhouse.project.declarations.names import did_you_mean
from springhouse.project.settings import check_setting

FILE_NAMES = ("spark-pipeline.yml", "spark-pipeline.yaml")

_KEYS = ("name", "storage", "catalog", "database", "schema", "configuration", "libraries")
_LIBRARIES = "Write them as:\n    libraries:\n      - glob:\n          include: transformations/**"


@dataclass
class PipelineFile:
    """The content of a pipeline file, as far as it could be read."""

    name: str = ""
    storage: str = ""
    catalog: str | None = None
    database: str | None = None
    configuration: dict[str, PlacedValue] = field(default_factory=dict)
    files: list[Path] = field(default_factory=list)
    files_missing: bool = False  # A part of `libraries` could not be read.
    errors: list[DeclarationError] = field(default_factory=list)


def read_pipeline_file(folder: Path) -> PipelineFile:
    """The pipeline file of a project's folder, with the files that its globs name."""
    files = [folder / name for name in FILE_NAMES if (folder / name).is_file()]
    if not files:
        raise DeclarationError(
            f"there is no {FILE_NAMES[0]} here",
            where=str(folder),
            hint="`springhouse init NAME` makes a new project.",
        )
    if len(files) > 1:
        raise DeclarationError(
            f"both {FILE_NAMES[0]} and {FILE_NAMES[1]} are here",
            where=str(folder),
            hint="Delete one of them.",
        )
    name = files[0].name
    return _YamlReader(folder, name).read(read_text(files[0], name))


class _YamlReader:
    def __init__(self, folder: Path, file: str) -> None:
        self._folder = folder
        self._file = file
        self._content = PipelineFile()

    def read(self, text: str) -> PipelineFile:
        try:
            root = yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else 1
            raise DeclarationError(
                f"this is not YAML: {error.problem}", where=f"{self._file}:{line}"
            ) from None
        except yaml.reader.ReaderError as error:
            line = text.count("\n", 0, error.position) + 1
            problem = f"this line has the control character U+{error.character:04X}"
            raise DeclarationError(problem, where=f"{self._file}:{line}") from None
        except RecursionError:
            problem = "this YAML is nested too deeply"
            raise DeclarationError(problem, where=f"{self._file}:1") from None
        if not isinstance(root, MappingNode):
            raise DeclarationError(
                "a pipeline file has a name and a storage",
                where=f"{self._file}:1",
                hint="Write:\n    name: shop\n    storage: storage",
            )
        values = self._entries(root)
        self._check_keys(values, root)
        content = self._content
        content.name = self._text(values, "name", required=True) or ""
        content.storage = self._text(values, "storage", required=True) or ""
        content.catalog = self._text(values, "catalog")
        content.database = self._text(values, "database") or self._text(values, "schema")
        if "configuration" in values:
            self._read_configuration(values["configuration"][1])
        if "libraries" in values:
            self._read_libraries(values["libraries"][1])
        return content

    def _wrong(self, node: Node, problem: str, hint: str | None = None) -> None:
        where = str(self._place(node))
        self._content.errors.append(DeclarationError(problem, where=where, hint=hint))

    def _place(self, node: Node) -> Place:
        return Place(self._file, node.start_mark.line + 1)

    def _entries(self, mapping: MappingNode) -> dict[str, tuple[Node, Node]]:
        """The nodes of the keys and values of a mapping, by the text of the key."""
        entries: dict[str, tuple[Node, Node]] = {}
        for key, value in mapping.value:
            text = str(key.value)
            if text in entries:
                first = self._place(entries[text][0])
                self._wrong(key, f'"{text}" is given twice', f"The first is at {first}.")
            else:
                entries[text] = (key, value)
        return entries

    def _check_keys(self, values: dict[str, tuple[Node, Node]], root: Node) -> None:
        for name, (key, _) in values.items():
            if name not in _KEYS:
                hint = did_you_mean(name, _KEYS) or (
                    f"The keys are {', '.join(_KEYS)}; everything else goes under configuration."
                )
                self._wrong(key, f'unknown key "{name}"', hint)
        for name, example in (("name", "shop"), ("storage", "storage")):
            if name not in values:
                self._wrong(root, f'the key "{name}" is missing', f"Write {name}: {example}")

    def _text(
        self, values: dict[str, tuple[Node, Node]], name: str, *, required: bool = False
    ) -> str | None:
        if name not in values:
            return None
        text = self._string(name, values[name][1])
        if required and text is not None and not (text.strip() and text.isprintable()):
            problem = f'"{name}" is empty' if not text.strip() else f'"{name}" takes one line'
            self._wrong(values[name][1], problem)
        return text

    def _string(self, name: str, node: Node) -> str | None:
        if not isinstance(node, ScalarNode):
            self._wrong(node, f'"{name}" takes a text')
            return None
        if node.tag != "tag:yaml.org,2002:str":
            kind = node.tag.rpartition(":")[2]
            shown = {"int": "a number", "float": "a number", "bool": "true or false"}
            problem = f'"{name}" takes a text, and {node.value or "nothing"} is not one'
            if kind in shown:
                problem = f'"{name}" takes a text, and {node.value} is {shown[kind]}'
            self._wrong(node, problem, f'Quote it: {name}: "{node.value}"')
            return None
        controls = (c for c in node.value if unicodedata.category(c) == "Cc" and c not in "\t\n")
        if control := next(controls, None):
            self._wrong(node, f'"{name}" has the control character U+{ord(control):04X}')
            return None
        return str(node.value)

    def _read_configuration(self, node: Node) -> None:
        if not isinstance(node, MappingNode):
            self._wrong(node, '"configuration" takes keys and values', 'Write a.key: "value"')
            return
        for name, (key, value) in self._entries(node).items():
            text = self._string(name, value)
            if text is None:
                continue
            error = check_setting(name, text, self._place(key))
            if error is not None:
                self._content.errors.append(error)
            self._content.configuration[name] = PlacedValue(text, self._place(key))

    # Files

    def _read_libraries(self, node: Node) -> None:
        if not isinstance(node, SequenceNode):
            self._wrong(node, '"libraries" takes a list of globs', _LIBRARIES)
            self._content.files_missing = True
            return
        files: set[Path] = set()
        wrong_before = len(self._content.errors)
        for entry in node.value:
            include = self._include(entry)
            if include is not None:
                files.update(self._matching(str(include.value), include))
        self._content.files = sorted(files)
        self._content.files_missing = len(self._content.errors) > wrong_before

    def _include(self, entry: Node) -> ScalarNode | None:
        """The node of `transformations/**` in `{glob: {include: transformations/**}}`."""
        at = entry
        for key in ("glob", "include"):
            entries = self._entries(at) if isinstance(at, MappingNode) else {}
            if list(entries) != [key]:
                self._wrong(entry, "a library is a glob with an include", _LIBRARIES)
                return None
            at = entries[key][1]
        if not isinstance(at, ScalarNode) or not at.value:
            self._wrong(at, "a library is a glob with an include", _LIBRARIES)
            return None
        return at

    def _matching(self, pattern: str, node: Node) -> Iterator[Path]:
        """The files that a glob names, by the rule of spark-pipelines."""
        recursive = pattern.endswith("/**") and not glob.has_magic(pattern.removesuffix("/**"))
        if Path(pattern).is_absolute() or (glob.has_magic(pattern) and not recursive):
            self._wrong(
                node,
                f'"{pattern}" is not a glob that pipelines know',
                "Write a file (sql/orders.sql) or a folder (transformations/**), from this folder.",
            )
        elif not recursive and not (self._folder / pattern).is_file():
            is_folder = (self._folder / pattern).is_dir()
            hint = f"For a whole folder write {pattern.rstrip('/')}/**" if is_folder else None
            self._wrong(node, f'there is no file "{pattern}"', hint)
        else:
            paths = sorted(self._folder.glob(f"{pattern}/*" if recursive else pattern))
            if not any(path.is_file() for path in paths):
                self._wrong(
                    node,
                    f'"{pattern}" matches no file',
                    "Put an SQL or Python file there, or delete the glob.",
                )
            for path in paths:
                shown = path.relative_to(self._folder).as_posix() if recursive else pattern
                if self._is_readable(path, shown, node):
                    yield path

    def _is_readable(self, path: Path, shown: str, node: Node) -> bool:
        """Whether a path is a file of SQL or Python; a broken link or another file is an error."""
        if path.is_symlink() and not path.exists():
            self._wrong(node, f'"{shown}" is a link to a file that is not there')
        if not path.is_file() or "__pycache__" in path.parts:
            return False
        if path.suffix not in (".sql", ".py"):
            self._wrong(node, f'"{shown}" is neither SQL nor Python', "Move it elsewhere.")
            return False
        return True
