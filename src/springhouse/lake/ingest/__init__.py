"""How do records get into a base table, each exactly once?

Flows read streams up to an offset (`feeds`). Each offset belongs to a known source and stream
(`identity`, `stream_names`). A refresh takes in one range (`refresh_table`): its rows
(`ingest_rows`), the columns of the table (`target_columns`), and the commit (`flow_commit`).
Several tables can share one pass (`refresh_together`). `cdc` applies change events by key.
Structured Streaming runs the flows that only it can run (`streaming_flow`).
"""
