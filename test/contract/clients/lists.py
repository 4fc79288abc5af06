"""What the scripts of this folder share: the lists, their window, and the ids that plain requests read.

Each script runs as: API_KEY=... <script> <address with /api>
"""

import json
import os
import sys
from datetime import datetime, timedelta, timezone

import requests

BASE = sys.argv[1]
TOKEN = os.environ["API_KEY"]
KEY = {"Authorization": f"Bearer {TOKEN}"}
LINES = {"Accept": "application/x-ndjson"}
SINCE = datetime(2026, 10, 4, tzinfo=timezone.utc)
# An instant within the sample, at which a job stops and from which it goes on later.
MIDDLE = datetime(2026, 10, 7, 12, 30, 0, 123456, tzinfo=timezone.utc)
# Of another offset, as clients with local time write it.
TO = datetime(2027, 1, 1, tzinfo=timezone(timedelta(hours=5, minutes=30)))
PAGE_SIZE = 100
PATHS = {name: f"/v2/export/{name}" for name in ("conversations", "messages")}
# Each list with the dates by which it is read.
READS = [("conversations", "created"), ("conversations", "updated"), ("messages", "created")]


def window(by, since=SINCE, to=TO):
    """Bounds as Python writes them: with an offset, and microseconds where there are any."""
    return {f"{by}_since": since.isoformat(), f"{by}_to": to.isoformat()}


def records_of_lines(lines):
    """Records of a stream whose trailer says that it is complete."""
    *records, last = [json.loads(line) for line in lines]
    assert last["trailer"]["count"] == len(records), last
    return records


def ids(records):
    return [record["_id"] for record in records]


def expected_ids(name, by):
    """All ids of a list in one page, by plain requests."""
    response = requests.get(f"{BASE}{PATHS[name]}", params=window(by), headers=KEY, timeout=30)
    response.raise_for_status()
    page = response.json()
    assert page["meta"]["next_page_uri"] is None
    found = ids(page["data"])
    assert len(found) > PAGE_SIZE and len(set(found)) == len(found), len(found)
    return found


def check(client, name, by, found, expected):
    assert found == expected, f"{client}: {len(found)} of {len(expected)} {name} by {by}"
    print(f"{client}: {len(found)} {name} by {by}")
