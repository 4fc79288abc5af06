"""A whole ClickHouse server, out of the module of chdb for Python (up to 3.7): module, arguments of the server."""

import ctypes
import os
import sys

module, *server_arguments = sys.argv[1:]
# Signals are for the server itself.
os.environ["CLICKHOUSE_WATCHDOG_ENABLE"] = "0"
main = ctypes.CDLL(module)._Z25mainEntryClickHouseServeriPPc
arguments = [b"clickhouse-server", *(argument.encode() for argument in server_arguments)]
sys.exit(main(len(arguments), (ctypes.c_char_p * (len(arguments) + 1))(*arguments, None)))
