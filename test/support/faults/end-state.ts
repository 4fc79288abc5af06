import type { JobView } from "@conversation-export/queue";
import { until } from "../run/until.ts";
import { runSql } from "../run/warehouse-sql.ts";

/**
 * What a database holds when jobs have ended, without what may differ between runs: instants of upload and of change,
 * names of runs, places on the bus that a replay has given. By facet, each a sorted list of lines.
 */
export type EndState = Readonly<Record<string, readonly string[]>>;

const RECORD = "* EXCEPT (uploaded_at)";

/** Of each table the columns that name the client and the row, and those that must be equal. */
const TABLES: Readonly<
  Record<
    string,
    { readonly client: string; readonly name: string; readonly columns: string; readonly where?: string }
  >
> = {
  conversations: { client: "client_id", name: "conversation_id", columns: RECORD },
  conversation_updates: { client: "client_id", name: "conversation_id", columns: RECORD },
  handoffs: { client: "client_id", name: "concat(conversation_id, ' ', target)", columns: RECORD },
  messages: { client: "client_id", name: "message_id", columns: RECORD },
  end_users: { client: "client_id", name: "end_user_id", columns: RECORD },
  landing: {
    client: "client_id",
    name: "record_id",
    columns: "type, client_id, record_id, conversation_id, date_created, subjects, key, payload",
  },
  suppressions: {
    client: "client_id",
    name: "concat(kind, ' ', value)",
    columns: "created_before, request_id",
  },
  data_subject_requests: {
    client: "client_id",
    name: "request_id",
    columns: "email, identifiers, status, received_at",
  },
  replayed_letters: {
    client: "topic",
    name: "concat(toString(partition), '/', toString(offset))",
    columns: "arrived_at, replays, letter_partition, letter_offset",
  },
  upload_windows: {
    client: "''",
    name: "concat(toString(window_start), ' ', table)",
    // Whether one that is over is closed at once depends on how long Redis has been up.
    columns: "seconds, state = 'compacted', rows, partitions, pending, offsets, reopened",
    // Later ones tell of rows that are written meanwhile.
    where: "window_start < '2026-09-01'",
  },
};

/** The instant of upload stands in the public JSON as well. */
const withoutUpload = (text: string): string =>
  `replaceRegexpAll(${text}, '"record_last_updated":"[^"]*"', '')`;

const lines = (text: string): string[] => (text === "" ? [] : text.trimEnd().split("\n"));

/** Rows that readers see, as `name hash`, by table and client. */
const readRows = async (url: string): Promise<Record<string, string[]>> => {
  const facets: Record<string, string[]> = {};
  for (const [table, { client, name, columns, where = "1" }] of Object.entries(TABLES)) {
    const rows = await runSql(
      url,
      `SELECT DISTINCT toString(${client}) AS facet, ${name} AS name, hex(cityHash64(${withoutUpload(`toString(tuple(${columns}))`)})) AS hash
        FROM ${table} FINAL WHERE ${where} ORDER BY ALL FORMAT TSV`,
    );
    for (const line of lines(rows)) {
      const tab = line.indexOf("\t");
      (facets[`${table} of ${line.slice(0, tab)}`] ??= []).push(line.slice(tab + 1));
    }
  }
  return facets;
};

/** Rows that are hidden and whose bytes are there, and parts, by table. */
const readPhysical = async (url: string): Promise<Record<string, string[]>> => {
  const hidden: string[] = [];
  for (const table of Object.keys(TABLES)) {
    const count = `SELECT count() FROM ${table}`;
    const all = await runSql(url, `${count} SETTINGS apply_deleted_mask = 0`);
    hidden.push(`${table} ${Number(all) - Number(await runSql(url, count))}`);
  }
  const parts = await runSql(
    url,
    `SELECT table, partition_id, count(), sum(rows) FROM system.parts
      WHERE active AND database = currentDatabase() AND table IN (${Object.keys(TABLES)
        .slice(0, 5)
        .map((table) => `'${table}'`)
        .join()})
      GROUP BY ALL ORDER BY ALL FORMAT TSV`,
  );
  return { "hidden rows": hidden, parts: lines(parts) };
};

/** Tables that refuse a merge, as they do while merges are switched off. */
const readStoppedMerges = async (url: string): Promise<string[]> => {
  const stopped: string[] = [];
  for (const table of ["conversations", "conversation_updates", "handoffs", "messages", "end_users"]) {
    // A merge that is just running is no reason.
    await until(`${table} is merged`, 5_000, async () => {
      try {
        await runSql(
          url,
          `OPTIMIZE TABLE ${table} FINAL SETTINGS optimize_throw_if_noop = 1, alter_sync = 2`,
        );
        return true;
      } catch {
        return false;
      }
    }).catch(() => stopped.push(table));
  }
  return stopped;
};

/** What jobs leave behind that has to go when they end. */
const readLeftovers = async (url: string): Promise<string[]> => {
  // What a dead process had asked for is done without it.
  await until("mutations are done", 20_000, async () => {
    const open = "SELECT count() FROM system.mutations WHERE database = currentDatabase() AND NOT is_done";
    return (await runSql(url, open)) === "0\n";
  }).catch(() => undefined);
  const counts = await runSql(
    url,
    `SELECT 'undone mutations', count() FROM system.mutations WHERE database = currentDatabase() AND NOT is_done
      UNION ALL SELECT 'keys of erasures', count() FROM job_keys WHERE startsWith(kind, 'erase ')
      UNION ALL SELECT 'keys of compactions', count() FROM compaction_keys
      UNION ALL SELECT 'notes of compactions', count() FROM compaction_checks
      ORDER BY ALL FORMAT TSV`,
  );
  return lines(counts);
};

/** What the tables hold now. `physical`: also what is stored and not seen. */
export const readTables = async (url: string, physical: boolean): Promise<EndState> => ({
  ...(await readRows(url)),
  ...(physical ? await readPhysical(url) : {}),
});

/**
 * Waits until nothing changes by itself any more, then reads. The tables are merged thereby, which must change nothing
 * that readers see.
 */
export const readEndState = async (url: string, physical: boolean): Promise<EndState> => {
  const leftovers = await readLeftovers(url);
  const tables = await readTables(url, physical);
  const stopped = await readStoppedMerges(url);
  const merged = await readRows(url);
  const seen = Object.fromEntries(Object.keys(merged).map((facet) => [facet, tables[facet] ?? []]));
  return {
    ...tables,
    leftovers,
    "stopped merges": stopped,
    "changed by merges": differencesOf(seen, merged),
  };
};

/** The facets that differ, each with the first lines on either side alone. Empty: the states are equal. */
export const differencesOf = (expected: EndState, found: EndState): string[] =>
  [...new Set([...Object.keys(expected), ...Object.keys(found)])].sort().flatMap((facet) => {
    const [here, there] = [expected[facet] ?? [], found[facet] ?? []];
    const [known, given] = [new Set(here), new Set(there)];
    const missing = here.filter((line) => !given.has(line));
    const added = there.filter((line) => !known.has(line));
    if (missing.length + added.length === 0 && here.length === there.length) return [];
    const some = (list: readonly string[]): string => `${list.length}: ${list.slice(0, 5).join("; ")}`;
    return [`${facet}: missing ${some(missing)} | added ${some(added)}`];
  });

/** What a job says of itself at its end, as far as a run that was broken off says the same. */
export const outcomeOf = ({ state, reason, result, name }: JobView): string[] => {
  const told = (result ?? {}) as Readonly<Record<string, unknown>>;
  const kept = STABLE[name] ?? [];
  return [`${state} ${reason ?? ""}`, ...kept.map((field) => `${field} ${JSON.stringify(told[field])}`)];
};

/** Of others a repeated attempt counts only what was left to do. */
const STABLE: Readonly<Partial<Record<JobView["name"], readonly string[]>>> = {
  backfill: ["dryRun", "parts", "events", "problems", "deletableSince"],
  replay: ["dryRun", "read", "replayed", "byReason", "skipped"],
  windows: [],
};
