"""`springhouse check`: is the project well declared?"""

from springhouse.cli.options import ProjectFolder, project_folder
from springhouse.cli.screen import count_text, show


def check(project: ProjectFolder = None) -> None:
    """Read the project and print everything that is wrong with it."""
    from springhouse.lake.sinks.registry import known_sinks
    from springhouse.lake.sources.registry import known_sources
    from springhouse.project.load import load

    folder = project_folder(project)
    declared = load(folder, known_sources=known_sources({}), known_sinks=known_sinks({}))
    counts = [
        count_text(len(declared.tables), "table"),
        count_text(len(declared.views), "view"),
        count_text(len(declared.flows), "flow"),
    ]
    if declared.temporary_views:
        counts.insert(2, count_text(len(declared.temporary_views), "temporary view"))
    show(f"{declared.name}: {', '.join(counts)}, no errors")
