"""Prints the rows of a query by the native protocol: native-query.py PORT USER PASSWORD NAME QUERY, as the secondary query
of a user who is called NAME, as if another server had sent it on; an error ends it."""

import json
import sys

from clickhouse_driver import Client
from clickhouse_driver.clientinfo import ClientInfo

port, user, password, name, query = sys.argv[1:]
write = ClientInfo.write


def write_as_secondary(info, revision, target):
    info.query_kind = ClientInfo.QueryKind.SECONDARY_QUERY
    info.initial_user = name
    return write(info, revision, target)


ClientInfo.write = write_as_secondary
print(json.dumps(Client("127.0.0.1", port=int(port), user=user, password=password).execute(query)))
