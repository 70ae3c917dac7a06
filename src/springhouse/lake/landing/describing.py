"""How do COMMENT and TBLPROPERTIES reach the readers of a table?

They become the description and the configuration in Delta's metadata. The comments of columns go
into Delta's schema. Every reader and catalog looks there. Springhouse writes them after it creates
the table, and again when the declaration changes. If the user removes a property from the
declaration, the property stays in the metadata, because another writer may have put it there. Our
own properties (`springhouse.…`) stay in the project: they are not for readers, and may refer to
secrets.
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
