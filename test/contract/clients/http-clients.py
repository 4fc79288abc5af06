"""Reads the lists with httpx and requests, which ask for zstd by themselves, as pages and as lines."""

import httpx
import requests

from lists import BASE, KEY, LINES, PAGE_SIZE, PATHS, READS, check, expected_ids, ids, records_of_lines, window


def checked(response):
    response.raise_for_status()
    coding = response.headers.get("content-encoding")
    assert coding == "zstd", f"came as {coding}"
    return response


def ids_of_pages(client, address, by):
    found = []
    response = checked(client.get(address, params={**window(by), "page_size": PAGE_SIZE}))
    while True:
        page = response.json()
        found += ids(page["data"])
        link = page["meta"]["next_page_uri"]
        if link is None:
            return found
        response = checked(client.get(link))


def lines_of_httpx(client, address, by):
    with client.stream("GET", address, params=window(by), headers=LINES) as response:
        return list(checked(response).iter_lines())


def lines_of_requests(client, address, by):
    with client.get(address, params=window(by), headers=LINES, stream=True) as response:
        return list(checked(response).iter_lines())


session = requests.Session()
session.headers.update(KEY)
CLIENTS = [
    ("httpx", httpx.Client(headers=KEY), lines_of_httpx),
    ("requests", session, lines_of_requests),
]
for name, by in READS:
    address = f"{BASE}{PATHS[name]}"
    expected = expected_ids(name, by)
    for library, client, read_lines in CLIENTS:
        check(library, name, by, ids_of_pages(client, address, by), expected)
        check(f"{library}, lines", name, by, ids(records_of_lines(read_lines(client, address, by))), expected)
