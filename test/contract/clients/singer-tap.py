"""Reads the lists with a tap of the Singer SDK: pages and lines, and a second run from the bookmarks of the first."""

import contextlib
import io
import json
import logging
from urllib.parse import parse_qsl

from singer_sdk import RESTStream, Tap
from singer_sdk import typing as th
from singer_sdk.authenticators import BearerTokenAuthenticator
from singer_sdk.pagination import BaseHATEOASPaginator, SinglePagePaginator

from lists import BASE, LINES, MIDDLE, PAGE_SIZE, PATHS, SINCE, TO, TOKEN, check, expected_ids, ids, records_of_lines

BOOKMARKS = {"conversations": ("updated", "date_updated"), "messages": ("created", "date_created")}
FIELDS = [("_id", th.StringType), ("date_created", th.DateTimeType), ("date_updated", th.DateTimeType)]


class LinkPaginator(BaseHATEOASPaginator):
    def get_next_url(self, response):
        return response.json()["meta"]["next_page_uri"]


class PageStream(RESTStream):
    url_base = BASE
    records_jsonpath = "$.data[*]"
    primary_keys = ("_id",)
    is_sorted = True
    schema = th.PropertiesList(*(th.Property(*field) for field in FIELDS)).to_dict()

    def __init__(self, tap, name):
        super().__init__(tap, name=name, path=PATHS[name])
        self.by, self.replication_key = BOOKMARKS[name]

    @property
    def authenticator(self):
        return BearerTokenAuthenticator(token=TOKEN)

    def get_new_paginator(self):
        return LinkPaginator()

    def get_url_params(self, context, next_page_token):
        if next_page_token is not None:
            return dict(parse_qsl(next_page_token.query))
        since = self.get_starting_timestamp(context).isoformat()
        return {f"{self.by}_since": since, f"{self.by}_to": self.config["end_date"], "page_size": PAGE_SIZE}


class LineStream(PageStream):
    http_headers = LINES

    def get_new_paginator(self):
        return SinglePagePaginator()

    def parse_response(self, response):
        yield from records_of_lines(response.iter_lines())


class ExportTap(Tap):
    name = "tap-export"
    stream_class = PageStream
    config_jsonschema = th.PropertiesList(
        th.Property("start_date", th.DateTimeType), th.Property("end_date", th.DateTimeType)
    ).to_dict()

    def discover_streams(self):
        return [self.stream_class(self, name) for name in BOOKMARKS]


class LineTap(ExportTap):
    stream_class = LineStream


def run(tap, to, state):
    """Runs the tap once; gives its records by list, and its last state."""
    config = {"start_date": SINCE.isoformat(), "end_date": to.isoformat()}
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        tap(config=config, state=state, parse_env_config=False).sync_all()
    records = {name: [] for name in BOOKMARKS}
    for line in output.getvalue().splitlines():
        message = json.loads(line)
        if message["type"] == "RECORD":
            records[message["stream"]].append(message["record"])
        elif message["type"] == "STATE":
            state = message["value"]
    return records, state


# The SDK names the fields that the schema of this tap leaves out.
logging.disable(logging.WARNING)
for label, tap in (("singer", ExportTap), ("singer, lines", LineTap)):
    first, state = run(tap, MIDDLE, None)
    second, _ = run(tap, TO, state)
    for name, (by, _) in BOOKMARKS.items():
        assert first[name] and second[name], f"nothing of {name} in one of two runs"
        # A bookmark is inclusive, so what is at it comes again.
        found = list(dict.fromkeys(ids(first[name]) + ids(second[name])))
        check(label, name, by, found, expected_ids(name, by))
