"""`springhouse check`: is the project well declared?"""

from springhouse.cli.options import ProjectFolder, open_warehouse
from springhouse.cli.plan import warn_unkeepable
from springhouse.cli.screen import count_text, show


def check(project: ProjectFolder = None) -> None:
    """Read the project and print everything that is wrong with it."""
    # Open the warehouse as `run` does, so that both find the same errors. Spark starts only if a
    # file of the project uses it while it is loaded.
    with open_warehouse(project) as warehouse:
        declared, unkeepable = warehouse.project, warehouse.unkeepable_promises()
    counts = [
        count_text(len(declared.tables), "table"),
        count_text(len(declared.views), "view"),
        count_text(len(declared.flows), "flow"),
    ]
    if declared.temporary_views:
        counts.insert(2, count_text(len(declared.temporary_views), "temporary view"))
    warn_unkeepable(unkeepable)
    show(f"{declared.name}: {', '.join(counts)}, no errors")
