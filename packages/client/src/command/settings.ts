import { parseArgs } from "node:util";
import { FIELDS } from "../interface/fields.ts";
import { KINDS, LISTS, type ListName } from "../lists/kinds.ts";
import { instantText, readInstant } from "../lists/instant.ts";
import { UsageError } from "./exit-code.ts";
import { behindLinks, localPath } from "./local-path.ts";
import { CODINGS } from "./targets/coding.ts";
import { targetPlace } from "./targets/target-place.ts";

const COMMANDS = ["pull", "verify", "compact"] as const;

export type Environment = Readonly<Record<string, string | undefined>>;

export const USAGE = `usage: conversation-export-client <command> --to TARGET [options]

Commands:
  pull     make a copy, or bring it up to date
  verify   compare a copy with the service: counts and checksums
  compact  leave one line a record in the files of a folder; rewrite the other targets without the
           bytes of deleted records

Targets:
  FOLDER          files of lines, with their state in state.json
  duckdb:FILE     a table for each list
  parquet:FOLDER  a file for each list, and pull.duckdb, which they are made from
  csv:FOLDER      the same as CSV
  -               lines of one list on standard output (pull)

  Paths are local; ~ is the home directory.

Options:
  --url URL          address of the service with its /api prefix (default: EXPORT_API_URL)
  --key-file FILE    file with the API key (default: the key in EXPORT_API_KEY)
  --list NAME        ${LISTS.join(", ")}; may be repeated (default: all; lists that
                     the key may not read are reported, and the command exits with 7)
  --since INSTANT    first pull: begin with what changed since then, such as 2026-10-01T00:00:00Z
  --select FIELDS    first pull: fields to keep in addition to the id, as LIST=FIELD,FIELD; may be repeated
  --compress CODING  first pull: plain, gz or zst (Node.js 22.15 or newer) for the files of a folder
                     (default: plain)
  --file-bytes N     size of a file before compression, and after how much a first pull is stored
                     (default: 64 MiB; duckdb, parquet and csv 8 MiB; at most 256 MiB)
  --state FILE       with -: keep the cursor there, so that the next pull continues
  --no-compact       leave superseded and deleted lines in the files of a folder
  --no-transfer-compression
                     ask for uncompressed responses: faster in the network of the service
  --replace          folder, duckdb: begin again; the old copy of a list stays until the new one is
                     complete
  --take-over        folder, state file: take the copy over from another process, which then stops
  --json             JSON lines instead of text: results on standard output, progress and errors on
                     standard error

A copy keeps the address, --since, --select and --compress of its first pull.

Exit codes:
  0         done; verify: equal
  1         failed on this machine: no space, no right to write, or a bug
  2         wrong arguments
  3         the service rejected the key or the cursor, or its response was unexpected
  4         the service was not reached, or answered 429 or 5xx to every attempt
  5         verify: different
  6         the copy cannot be used: not complete, in use by another process, its state is lost, or a
            file is missing or damaged
  7         403: the key may not read a list, or a proxy rejects the request; the copy of that list
            stays as it was
  130, 143  stopped by SIGINT or SIGTERM; the next run continues
`;

const parse = (args: readonly string[]) => {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        to: { type: "string" },
        url: { type: "string" },
        "key-file": { type: "string" },
        list: { type: "string", multiple: true },
        since: { type: "string" },
        select: { type: "string", multiple: true },
        compress: { type: "string" },
        "file-bytes": { type: "string" },
        state: { type: "string" },
        "no-compact": { type: "boolean" },
        "no-transfer-compression": { type: "boolean" },
        "take-over": { type: "boolean" },
        replace: { type: "boolean" },
        json: { type: "boolean" },
      },
    });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
};

const oneOf = <T extends string>(what: string, value: string, allowed: readonly T[]): T => {
  const found = allowed.find((one) => one === value);
  if (found === undefined) throw new UsageError(`${what}: must be one of ${allowed.join(", ")}, is ${value}`);
  return found;
};

const fieldsOf = (selections: readonly string[]) => {
  const selected: Partial<Record<ListName, readonly string[]>> = {};
  for (const text of selections) {
    const [, name = "", names = ""] = /^(\w+)=([\w,]+)$/.exec(text) ?? [];
    if (name === "") throw new UsageError(`--select: must be LIST=FIELD,FIELD, is ${text}`);
    const list = oneOf("--select", name, LISTS);
    if (selected[list] !== undefined) throw new UsageError(`--select: ${list} is there twice`);
    const fields = new Set(names.split(",").filter((one) => one !== ""));
    const unknown = [...fields].filter((one) => !Object.hasOwn(FIELDS[list], one));
    if (unknown.length > 0) throw new UsageError(`--select: ${list} have no ${unknown.join(", ")}`);
    fields.delete(KINDS[list].id);
    selected[list] = [...fields].sort();
  }
  return selected;
};

const sinceOf = (text: string | undefined, now: number): string | undefined => {
  if (text === undefined) return undefined;
  const at = readInstant(text);
  if (at === undefined)
    throw new UsageError(
      `--since: must be an existing ISO 8601 instant with Z or an offset, such as 2026-10-01T00:00:00Z, is ${text}`,
    );
  if (at.ms > now)
    throw new UsageError(`--since: ${text} is to come: it is ${new Date(now).toISOString()} on this machine`);
  return instantText(at);
};

/** Compaction holds the ids of one file in memory. */
const MAX_FILE_BYTES = 256 * 1024 * 1024;

const bytesOf = (text: string | undefined): number | undefined => {
  if (text === undefined) return undefined;
  if (!/^[1-9]\d{0,9}$/.test(text))
    throw new UsageError(`--file-bytes: must be a number above 0, is ${text}`);
  if (Number(text) > MAX_FILE_BYTES)
    throw new UsageError(`--file-bytes: at most ${MAX_FILE_BYTES}, is ${text}`);
  return Number(text);
};

/** Stored and printed, so without a password. */
const addressOf = (text: string): string => {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new UsageError("--url: must be an address that begins with http:// or https://");
  }
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") {
    throw new UsageError("--url: must have no user, no password and nothing behind the path");
  }
  return url.href.replace(/\/+$/, "");
};

/** `now`: ms since the epoch. @throws UsageError */
export const readSettings = (args: readonly string[], env: Environment, now: number) => {
  const { values, positionals } = parse(args);
  const [name, ...others] = positionals;
  if (name === undefined) throw new UsageError(`which command? ${COMMANDS.join(", ")}`);
  if (others.length > 0) throw new UsageError(`${others.join(" ")}: not expected; the copy is named by --to`);
  const command = oneOf("command", name, COMMANDS);
  const { to } = values;
  if (to === undefined)
    throw new UsageError("--to: where is the copy? A folder, duckdb:FILE, parquet:FOLDER, csv:FOLDER, or -");
  const url = values.url ?? env["EXPORT_API_URL"];
  if (url === undefined)
    throw new UsageError("--url, or EXPORT_API_URL: the address of the service is required");
  const address = addressOf(url);
  const lists = values.list?.map((one) => oneOf("--list", one, LISTS)) ?? LISTS;
  const target = targetPlace(to);
  const { kind } = target;
  if (kind === "output" && (command !== "pull" || lists.length !== 1)) {
    throw new UsageError("--to -: standard output takes the pull of one list, such as --list messages");
  }
  if (values.replace === true && (command !== "pull" || !["folder", "duckdb"].includes(kind)))
    throw new UsageError(
      "--replace: only to pull into a folder or duckdb:FILE; pull into a new place instead",
    );
  if (values.compress !== undefined && kind !== "folder")
    throw new UsageError("--compress: only for the files of a folder");
  if (values.state !== undefined && kind !== "output") throw new UsageError("--state: only with --to -");
  return {
    command,
    target,
    url: address,
    keyFile: values["key-file"] === undefined ? undefined : localPath("--key-file", values["key-file"]),
    lists: [...new Set(lists)],
    /** Named lists must be readable by the key. */
    isListed: values.list !== undefined,
    since: sinceOf(values.since, now),
    fields: fieldsOf(values.select ?? []),
    compress: values.compress === undefined ? undefined : oneOf("--compress", values.compress, CODINGS),
    /** Before compression. */
    fileBytes: bytesOf(values["file-bytes"]),
    stateFile: values.state === undefined ? undefined : behindLinks(localPath("--state", values.state)),
    json: values.json === true,
    plainTransfer: values["no-transfer-compression"] === true,
    compact: values["no-compact"] !== true,
    takeOver: values["take-over"] === true,
    /** The old copy stays until the new one is complete. */
    replace: values.replace === true,
  };
};

export type Settings = ReturnType<typeof readSettings>;
