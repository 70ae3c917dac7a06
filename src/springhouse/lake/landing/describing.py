"""How do COMMENT and TBLPROPERTIES get to the readers of a table?

They become the description and the configuration in Delta's metadata, and the comments of columns
in its schema, where every reader and catalog looks for them. A table is described after it is
created, and again when its declaration changes. A property that is removed from the declaration
stays in the metadata: another writer may have put it there. Our own properties (`springhouse.…`)
are not for readers, and may refer to secrets: they stay in the project.
"""

from contextlib import suppress

from springhouse.errors import CommitConflict
from springhouse.lake.delta.commits import describe
from springhouse.lake.delta.note import Note
from springhouse.lake.lake import Lake
from springhouse.project.declarations.declaration import Project
from springhouse.project.lineage.channels import is_channel


def describe_table(lake: Lake, project: Project, name: str) -> None:
    """Write the declaration of a table or view into its metadata, if the table exists."""
    declared = project.tables.get(name) or project.views.get(name)
    if declared is None:
        return
    if declared.comment is None and not declared.properties and not declared.column_comments:
        return
    ground = lake.find(name)
    if ground is None:
        return
    channel = name in project.tables and is_channel(project, name)
    note = Note("schema", lake.now(), channel=channel, reason="described")
    with suppress(CommitConflict):  # The next refresh of the table describes it.
        describe(
            ground,
            declared.comment,
            declared.properties,
            declared.column_comments,
            note,
            lake.required,
        )
