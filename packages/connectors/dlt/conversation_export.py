"""A source for dlt: a table for each list, a row a record, and what was deleted is removed.

The state of a table is the cursor of the changes. dlt stores it in the load that stores the rows, so a run that dies
loses and doubles nothing.
"""

from itertools import count

import dlt
from dlt.sources.helpers import requests

IDS = {"conversations": "_id", "messages": "_id", "end_users": "end_user_id"}

# Named so that a column does not depend on the first values that it gets; other fields are found by dlt.
COLUMNS = {
    "conversations": {
        "text": """automated_resolution_classification automated_resolution_classification_reason browser browser_version
            changeset_id chatter_id device end_user_id generated_topic_id generated_topic_label generated_topic_v2_id
            generated_topic_v2_title generated_topic_v2_desc generated_topic_v2_parent_id inquiry_summary language
            last_agent_id last_agent_name oauth_channel platform""",
        "double": "agent_handle_time bot_handle_time",
        "bool": "is_engaged is_escalated is_test_user",
        "timestamp": "date_created date_updated record_last_updated",
        "json": """agent_id agent_name classifications csat metavariables used_coaching used_articles handoffs used_playbooks
            used_mcp variables""",
    },
    "messages": {
        "text": "answer_id answer_title chatter_id conversation_id recipient sender in_response_to",
        "bigint": "review",
        "bool": "link_was_clicked",
        "timestamp": "date_created record_last_updated",
        "json": "message_data",
    },
    "end_users": {
        "timestamp": "created_at updated_at",
        "json": "profile",
    },
}


class CursorExpired(Exception):
    """The last run is more than 30 days ago, so deletions may have been forgotten: load the table afresh."""


OTHER_SERVER = "not an answer of the export API: is base_url its address with the /api prefix?"


def hint_of(response):
    """What the service says about an error, in one line of visible characters; a hint when it was another server."""
    try:
        error = response.json()["errors"][0]
        said = f"{error['message']} ({error['details']})" if error["details"] else str(error["message"])
    except (ValueError, LookupError, TypeError):
        return OTHER_SERVER
    return "".join(char if char.isprintable() else "?" for char in said[:500])


def number(digits):
    """dlt takes no integers beyond 64 bits: those become doubles."""
    fits = len(digits) <= 20 and -(2**63) <= int(digits) < 2**63
    return int(digits) if fits else float(digits)


def columns_of(name):
    typed = {field: {"data_type": type} for type, fields in COLUMNS[name].items() for field in fields.split()}
    return {
        **typed,
        "_deleted": {"data_type": "bool", "hard_delete": True},
        # Of several changes of a record in one run the last one counts.
        "_page": {"data_type": "bigint", "dedup_sort": "desc"},
    }


def row_of(change, page):
    deleted = change.pop("deleted", False)
    if deleted:
        del change["deleted_at"]
    return {**change, "_deleted": deleted, "_page": page}


def resource_of(name, base_url, api_key, page_size):
    # Files end with a newline, and an error about a header quotes the key.
    url = f"{base_url.strip().rstrip('/')}/v2/export/changes/{name}"
    headers = {"Authorization": f"Bearer {api_key.strip()}"}

    @dlt.resource(name=name, primary_key=IDS[name], write_disposition="merge", columns=columns_of(name))
    def changes():
        state = dlt.current.resource_state()
        for page in count(1):
            params = {"page_size": page_size, "cursor": state.get("cursor", "")}
            try:
                # Repeats what was answered with 429 or 5xx, after Retry-After.
                response = requests.get(url, params=params, headers=headers)
            except requests.HTTPError as error:
                if error.response.status_code == 410:
                    raise CursorExpired(f"{name}: {CursorExpired.__doc__}") from error
                message = f"{error}: {hint_of(error.response)}"
                raise requests.HTTPError(message, response=error.response) from error
            try:
                body = response.json(parse_int=number)
                data, cursor, is_last = body["data"], body["meta"]["next_cursor"], body["meta"]["end_of_stream"]
            except (ValueError, LookupError, TypeError) as error:
                raise ValueError(f"{url}: {OTHER_SERVER}") from error
            yield [row_of(change, page) for change in data]
            state["cursor"] = cursor
            if is_last:
                return

    return changes


@dlt.source(max_table_nesting=0)
def conversation_export(
    base_url: str = dlt.config.value,
    api_key: str = dlt.secrets.value,
    lists: list[str] | None = None,
    page_size: int = 5000,
):
    """What has changed since the last run.

    Args:
        base_url: address of the export API with its /api prefix
        api_key: a key with the scopes of the lists
        lists: names of lists; without it all
        page_size: records that are held in memory at a time, 1 to 10000
    """
    return [resource_of(name, base_url, api_key, page_size) for name in lists or IDS]


if __name__ == "__main__":
    pipeline = dlt.pipeline("conversation_export", destination="duckdb", dataset_name="export")
    print(pipeline.run(conversation_export()))
