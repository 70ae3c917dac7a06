"""What did the user declare?

This room turns the folder of a project into one checked, immutable `Project` value. No other room
reads a file of the project.

    load                one folder in, one `Project` or all of its errors out
    checks/             rules over the whole project: names, circles, flows, columns
    from_yaml           the pipeline file: name, storage, settings, files
    python/             Python files: Spark's decorators, and query functions
    options/            the options of sources and sinks
    sql/                SQL files: statements, queries and what they read, schemas
    table_properties    TBLPROPERTIES: promises, sinks, settings of one table
    settings            every setting: its type, default, unit and allowed values
    value_types         the types of value that settings have
    lineage/            who reads whom, and whether a definition changed
    declarations/       the values: `Project`, `Table`, `View`, flows; names, durations, secrets

A module imports only what stands below it in this list.
"""
