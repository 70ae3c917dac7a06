"""Which Java does Spark run on, and with which options?"""

import os
import re
import shutil
import subprocess
from importlib import resources
from pathlib import Path

from springhouse.errors import LakeError

_JAVA_VARIABLES = ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")
"""The variables that may hold options for Java, besides Spark's own settings."""


def find_java() -> None:
    """Make sure that PySpark finds a Java, or say in one sentence what is missing."""
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "java").exists():
        return
    if shutil.which("java"):
        return
    for folder in sorted(Path("/usr/lib/jvm").glob("*"), reverse=True):
        java = folder / "bin" / "java"
        if java.exists() and _java_version(java) >= 17:
            os.environ["JAVA_HOME"] = str(folder)
            return
    raise LakeError(
        "there is no Java on this machine, and Spark needs one",
        hint="Install a Java 17 or newer (openjdk-17-jre-headless), or set JAVA_HOME.",
    )


def java_options(options: str) -> str:
    """The options for Java: our own and the user's."""
    return f"{_quiet_logging()} {_collecting(options)}"


def make_paths_absolute(variable: str) -> None:
    """Make the paths in a variable absolute, so that they hold in any working folder."""
    if paths := os.environ.get(variable):
        parts = (str(Path(part).absolute()) for part in paths.split(os.pathsep))
        os.environ[variable] = os.pathsep.join(parts)


def _java_version(java: Path) -> int:
    said = subprocess.run(
        [java, "-version"], capture_output=True, text=True, timeout=20, check=False
    )
    words = said.stderr.split('"')
    return int(words[1].split(".")[0]) if len(words) > 1 and words[1][:1].isdigit() else 0


def _quiet_logging() -> str:
    file = resources.files("springhouse.lake") / "log4j2.properties"
    return f"-Dlog4j2.configurationFile=file:{file}"


def _collecting(options: str) -> str:
    """The user's options for Java, with a garbage collector if the user named none.

    Planning a refresh creates much short-lived garbage. On two cores G1, Java's default collector,
    spends more time on it than the parallel collector: small refreshes took a fifth longer.
    """
    said = [options, *(os.environ.get(name, "") for name in _JAVA_VARIABLES)]
    if any(re.search(r"-XX:\+Use\w+GC\b", each) for each in said):
        return options  # Java refuses to start with two of them.
    return f"-XX:+UseParallelGC {options}"
