"""Reads lines with programs that cut them each in its own way; the records hold texts that look like ends of lines.

Runs as: API_KEY=... EXPECTED=<file with the texts by id> NODE=<program> <script> <address with /api>
"""

import io
import json
import os
import shutil
import subprocess
import tempfile

import duckdb
import httpx
import jq
import pandas
import polars
import requests

from lists import BASE, KEY, LINES, PATHS, window

EXPECTED = json.load(open(os.environ["EXPECTED"], encoding="utf-8"))
READLINE = """
  const lines = require("node:readline").createInterface({ input: process.stdin, crlfDelay: Infinity });
  const records = [];
  lines.on("line", (line) => records.push(JSON.parse(line)));
  lines.on("close", () => process.stdout.write(JSON.stringify(records)));
"""


def records_of(lines):
    return [json.loads(line) for line in lines]


def run(command, text):
    done = subprocess.run(command, input=text, stdout=subprocess.PIPE, timeout=60, check=True)
    return json.loads(done.stdout)


def read_httpx(address, params):
    with httpx.stream("GET", address, params=params, headers={**KEY, **LINES}, timeout=30) as response:
        return records_of(response.raise_for_status().iter_lines())


def read_requests(address, params, **options):
    with requests.get(address, params=params, headers={**KEY, **LINES}, stream=True, timeout=30) as response:
        response.raise_for_status()
        response.encoding = "utf-8"
        return records_of(response.iter_lines(**options))


def read_duckdb(lines, field):
    with tempfile.NamedTemporaryFile(suffix=".ndjson") as file:
        file.write(lines)
        file.flush()
        return duckdb.execute(
            f"SELECT _id, {field} FROM read_json(?, format='newline_delimited', columns={{_id: 'VARCHAR', {field}: 'VARCHAR'}})",
            [file.name],
        ).fetchall()


def pairs(records, field):
    return [(record["_id"], record[field]) for record in records if "_id" in record]


def readings(address, params, field):
    """What each program makes of the lines: ids and texts, in order."""
    whole = requests.get(address, params=params, headers={**KEY, **LINES}, timeout=30).content
    # Without the trailer, which has no fields of a record.
    lines = whole[: whole.rstrip(b"\n").rfind(b"\n") + 1]
    count = lines.count(b"\n")
    assert count == len(EXPECTED[field]), f"{count} of {len(EXPECTED[field])} lines"
    yield "httpx, iter_lines", pairs(read_httpx(address, params), field)
    yield "requests, iter_lines", pairs(read_requests(address, params), field)
    yield "requests, iter_lines of text", pairs(read_requests(address, params, decode_unicode=True), field)
    yield "str.splitlines", pairs(records_of(lines.decode().splitlines()), field)
    yield "Node's readline", pairs(run([os.environ["NODE"], "-e", READLINE], lines), field)
    table = pandas.read_json(io.BytesIO(lines), lines=True, dtype=False)
    yield "pandas", list(zip(table["_id"], table[field]))
    frame = polars.read_ndjson(lines, infer_schema_length=None)
    yield "polars", list(zip(frame["_id"], frame[field]))
    yield "DuckDB", read_duckdb(lines, field)
    yield "jq", pairs(jq.compile(".").input_text(lines.decode()).all(), field)
    if shutil.which("jq") is None:
        print("jq: there is no program of this name, so only its library was tried")
    else:
        yield "jq, the program", pairs(run(["jq", "--slurp", "."], lines), field)


for name, field in (("conversations", "inquiry_summary"), ("messages", "answer_title")):
    expected = list(EXPECTED[field].items())
    for program, found in readings(f"{BASE}{PATHS[name]}", window("created"), field):
        assert found == expected, f"{program}: {len(found)} of {len(expected)} {name}: {found}"
        print(f"{program}: {len(found)} {name}")
