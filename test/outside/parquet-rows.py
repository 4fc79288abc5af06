"""Prints what three libraries find in Parquet files: parquet-rows.py FILE..., a JSON list of an object for each file, of
library to its rows, the facts of the footer and the types of the columns, or to its error."""

import datetime
import json
import sys

import duckdb
import polars
import pyarrow.parquet


def by_duckdb(file):
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    rows = connection.sql("FROM read_parquet(?)", params=[file])
    facts = connection.execute("SELECT decode(key), decode(value) FROM parquet_kv_metadata(?)", [file]).fetchall()
    types = {name: str(kind) for name, kind in zip(rows.columns, rows.types)}
    return {"rows": rows.to_arrow_table().to_pylist(), "facts": dict(facts), "types": types}


def by_pyarrow(file):
    parquet = pyarrow.parquet.ParquetFile(file)
    facts = {key.decode(): value.decode() for key, value in (parquet.metadata.metadata or {}).items()}
    types = {field.name: str(field.type) for field in parquet.schema_arrow}
    return {"rows": parquet.read().to_pylist(), "facts": facts, "types": types}


def by_polars(file):
    frame = polars.read_parquet(file)
    types = {name: str(kind) for name, kind in frame.schema.items()}
    return {"rows": frame.to_dicts(), "facts": polars.read_parquet_metadata(file), "types": types}


READERS = {"duckdb": by_duckdb, "pyarrow": by_pyarrow, "polars": by_polars}


def read(reader, file):
    try:
        return reader(file)
    # Polars panics with an error of its own kind.
    except BaseException as error:
        return {"error": f"{type(error).__name__}: {error}"}


def text_of(value):
    if isinstance(value, datetime.datetime):
        return value.astimezone(datetime.UTC).isoformat(timespec="microseconds")
    raise TypeError(f"{type(value)} in a row")


found = [{name: read(reader, file) for name, reader in READERS.items()} for file in sys.argv[1:]]
print(json.dumps(found, default=text_of))
