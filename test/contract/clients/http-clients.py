"""Reads both lists with httpx and requests, which ask for zstd by themselves, as pages and as lines.

Usage: API_KEY=... clients.py <address with /api>
"""

import json
import os
import sys

import httpx
import requests

BASE = sys.argv[1]
WINDOW = {"created_since": "2026-10-04T00:00:00Z", "created_to": "2027-01-01T00:00:00Z"}
KEY = {"Authorization": f"Bearer {os.environ['API_KEY']}"}
LINES = {"Accept": "application/x-ndjson"}


def checked(response):
    response.raise_for_status()
    coding = response.headers.get("content-encoding")
    assert coding == "zstd", f"came as {coding}"
    return response


def ids_of_pages(client, address):
    ids = []
    response = checked(client.get(address, params={**WINDOW, "page_size": 100}))
    while True:
        page = response.json()
        ids += [record["_id"] for record in page["data"]]
        link = page["meta"]["next_page_uri"]
        if link is None:
            return ids
        response = checked(client.get(link))


def ids_of_lines(lines):
    *records, last = [json.loads(line) for line in lines]
    assert last["trailer"]["count"] == len(records), last
    return [record["_id"] for record in records]


def lines_of_httpx(client, address):
    with client.stream("GET", address, params=WINDOW, headers=LINES) as response:
        return list(checked(response).iter_lines())


def lines_of_requests(client, address):
    with client.get(address, params=WINDOW, headers=LINES, stream=True) as response:
        return list(checked(response).iter_lines())


session = requests.Session()
session.headers.update(KEY)
CLIENTS = [
    ("httpx", httpx.Client(headers=KEY), lines_of_httpx),
    ("requests", session, lines_of_requests),
]
for name in ("conversations", "messages"):
    address = f"{BASE}/v2/export/{name}"
    for library, client, read_lines in CLIENTS:
        ids = ids_of_pages(client, address)
        assert len(ids) > 100 and len(set(ids)) == len(ids), len(ids)
        assert ids_of_lines(read_lines(client, address)) == ids
        print(f"{library}: {len(ids)} {name}, the same as pages and as lines")
