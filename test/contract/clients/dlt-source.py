"""Reads the lists with dlt: its client with every paginator that fits, lines, and an incremental source run twice."""

import os

# Before dlt is imported: nothing is sent to its authors, and nothing is kept outside this folder.
os.environ["RUNTIME__DLTHUB_TELEMETRY"] = "false"
os.environ["DLT_DATA_DIR"] = os.path.abspath("dlt")

import shutil

import dlt
from dlt.sources.helpers.rest_client import RESTClient
from dlt.sources.helpers.rest_client.auth import BearerTokenAuth
from dlt.sources.helpers.rest_client.paginators import JSONLinkPaginator
from dlt.sources.rest_api import rest_api_source

from lists import (
    BASE,
    LINES,
    MIDDLE,
    PAGE_SIZE,
    PATHS,
    READS,
    SINCE,
    TO,
    TOKEN,
    check,
    expected_ids,
    ids,
    records_of_lines,
    window,
)

PAGINATORS = {
    "the link of the body": lambda: JSONLinkPaginator(next_url_path="meta.next_page_uri"),
    "what dlt finds by itself": lambda: None,
}
# The list of conversations by update and that of messages, with a bookmark each.
BOOKMARKS = {"conversations": ("updated", "date_updated"), "messages": ("created", "date_created")}


def read_lists():
    for name, by in READS:
        expected = expected_ids(name, by)
        for label, paginator in PAGINATORS.items():
            client = RESTClient(base_url=BASE, auth=BearerTokenAuth(TOKEN), paginator=paginator())
            pages = client.paginate(PATHS[name], params={**window(by), "page_size": PAGE_SIZE})
            check(f"dlt, {label}", name, by, [one for page in pages for one in ids(page)], expected)
        client = RESTClient(base_url=BASE, auth=BearerTokenAuth(TOKEN), headers=LINES)
        with client.get(PATHS[name], params=window(by), stream=True) as response:
            found = ids(records_of_lines(response.iter_lines()))
        check("dlt, lines", name, by, found, expected)


def resource(name, to):
    by, cursor = BOOKMARKS[name]
    incremental = {"cursor_path": cursor, "start_param": f"{by}_since", "initial_value": SINCE.isoformat()}
    endpoint = {
        "path": PATHS[name].removeprefix("/"),
        "params": {f"{by}_to": to.isoformat(), "page_size": PAGE_SIZE},
        "incremental": incremental,
    }
    return {"name": name, "primary_key": "_id", "max_table_nesting": 0, "endpoint": endpoint}


def run_source():
    """A first run to the middle of the sample, and a second one that goes on from the bookmarks."""
    shutil.rmtree("dlt", ignore_errors=True)
    kept = {name: [] for name in BOOKMARKS}

    @dlt.destination(batch_size=1_000, name="kept")
    def keep(items, table):
        kept[table["name"]].extend(items)

    for to in (MIDDLE, TO):
        config = {
            "client": {
                "base_url": BASE,
                "auth": {"type": "bearer", "token": TOKEN},
                "paginator": {"type": "json_link", "next_url_path": "meta.next_page_uri"},
            },
            "resources": [resource(name, to) for name in BOOKMARKS],
        }
        pipeline = dlt.pipeline("export", destination=keep, dataset_name="export")
        before = {name: len(records) for name, records in kept.items()}
        pipeline.run(rest_api_source(config))
        for name, records in kept.items():
            assert len(records) > before[name], f"nothing new of {name} up to {to}"
    for name, (by, _) in BOOKMARKS.items():
        # What the run keeps has no order.
        check("dlt, two runs", name, by, sorted(ids(kept[name])), sorted(expected_ids(name, by)))


read_lists()
run_source()
