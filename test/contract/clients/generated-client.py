"""Generates a client from the OpenAPI document of the service with openapi-python-client and reads the lists."""

import importlib
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import requests

from lists import BASE, LINES, PAGE_SIZE, PATHS, READS, SINCE, TO, TOKEN, check, expected_ids, ids, records_of_lines
from lists import window

FOLDER = Path("generated").absolute()


def generate():
    FOLDER.mkdir(exist_ok=True)
    document = FOLDER / "openapi.json"
    document.write_text(requests.get(f"{BASE}/openapi.json", timeout=30).text)
    settings = FOLDER / "settings.yaml"
    # Nothing is formatted or linted afterwards.
    settings.write_text("post_hooks: []\n")
    subprocess.run(
        [
            Path(sys.executable).parent / "openapi-python-client",
            *("generate", "--path", document, "--config", settings, "--meta", "none"),
            *("--output-path", FOLDER / "export_client", "--overwrite", "--fail-on-warning"),
        ],
        check=True,
        timeout=120,
    )
    sys.path.insert(0, str(FOLDER))


def read_pages(operation, client, by):
    """Reads to the end by the cursor of each link; parsing checks every field against the document."""
    cursor = {}
    while True:
        bounds = {f"{by}_since": SINCE, f"{by}_to": TO}
        response = operation.sync_detailed(client=client, page_size=PAGE_SIZE, **bounds, **cursor)
        assert response.status_code == 200, response
        for record in response.parsed.data:
            assert record.date_created.tzinfo is not None
            assert not record.additional_properties, record.additional_properties
            yield record.field_id
        link = response.parsed.meta.next_page_uri
        if link is None:
            return
        cursor = {"cursor": parse_qs(urlsplit(link).query)["cursor"][0]}


generate()
export_client = importlib.import_module("export_client")
client = export_client.AuthenticatedClient(base_url=BASE, token=TOKEN)
for name, by in READS:
    operation = importlib.import_module(f"export_client.api.export.export_{name}")
    expected = expected_ids(name, by)
    check("generated", name, by, list(read_pages(operation, client, by)), expected)
    with client.get_httpx_client().stream("GET", PATHS[name], params=window(by), headers=LINES) as response:
        response.raise_for_status()
        check("generated, lines", name, by, ids(records_of_lines(response.iter_lines())), expected)
