"""Prints the rows of tables of a file of DuckDB: duckdb-rows.py FILE TABLE..., a JSON object of table to rows."""

import json
import sys

import duckdb

file, *tables = sys.argv[1:]
connection = duckdb.connect(file, read_only=True)
connection.execute("SET TimeZone = 'UTC'")
rows = {table: connection.sql(f"SELECT to_json(t) FROM {table} AS t").fetchall() for table in tables}
print(json.dumps({table: [json.loads(row) for (row,) in found] for table, found in rows.items()}))
