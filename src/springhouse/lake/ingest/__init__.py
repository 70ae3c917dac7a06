"""How do records get into a base table, each exactly once?

Flows read streams up to an offset (`feeds`); an offset names what it counts (`identity`,
`stream_names`). A refresh takes in one range (`refresh_table`): its rows (`ingest_rows`), the
columns of the table (`target_columns`), and the commit (`flow_commit`). Several tables share one
pass (`refresh_together`), change events are applied by key (`cdc`), and Structured Streaming runs
what only it can run (`streaming_flow`).
"""
