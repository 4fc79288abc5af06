import type { JobView } from "@conversation-export/queue";
import { until } from "../system/until.ts";
import { runSql } from "../system/warehouse-sql.ts";

/**
 * Sorted lines by facet, without what may differ between runs: stamps, run names, bus positions of replayed events.
 */
export type EndState = Readonly<Record<string, readonly string[]>>;

const RECORD = "* EXCEPT (uploaded_at)";

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
  record_dates: { client: "client_id", name: "id", columns: "kind, id, date_created" },
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
  replayed_dead_letters: {
    client: "topic",
    name: "concat(toString(partition), '/', toString(offset))",
    columns: "arrived_at, replays, dead_letter_partition, dead_letter_offset",
  },
  upload_windows: {
    client: "''",
    name: "concat(toString(window_start), ' ', table)",
    // A finished window may still be open shortly after Redis starts.
    columns: "seconds, state = 'compacted', rows, partitions, offsets, reopened",
    // Later windows hold rows written during the test.
    where: "window_start < '2026-09-01'",
  },
};

/** The stamp is in the public JSON too. */
const withoutUpload = (text: string): string =>
  `replaceRegexpAll(${text}, '"record_last_updated":"[^"]*"', '')`;

const lines = (text: string): string[] => (text === "" ? [] : text.trimEnd().split("\n"));

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

/** readable: what queries see. stored: also masked rows, and rows by partition. */
export type Depth = "readable" | "stored";

const readStored = async (url: string, depth: Depth): Promise<Record<string, string[]>> => {
  if (depth === "readable") return {};
  const masked: string[] = [];
  for (const table of Object.keys(TABLES)) {
    // One statement: a merge between two counts would remove repeated rows, which are not masked.
    const count = `SELECT countIf(_row_exists = 0) FROM ${table} SETTINGS apply_deleted_mask = 0`;
    const rows = Number(await runSql(url, count));
    if (rows > 0) masked.push(`${table} ${rows}`);
  }
  const parts = await runSql(
    url,
    `SELECT table, partition_id, sum(rows) FROM system.parts
      WHERE active AND rows > 0 AND database = currentDatabase() AND table IN (${Object.keys(TABLES)
        .slice(0, 5)
        .map((table) => `'${table}'`)
        .join()})
      GROUP BY ALL ORDER BY ALL FORMAT TSV`,
  );
  return { "masked rows": masked, parts: lines(parts) };
};

const MERGE_DEADLINE_MS = 30_000;

const readStoppedMerges = async (url: string): Promise<string[]> => {
  const stopped: string[] = [];
  for (const table of ["conversations", "conversation_updates", "handoffs", "messages", "end_users"]) {
    let refusal = "";
    // Retried: another merge of the same parts may run.
    await until(`${table} is merged`, MERGE_DEADLINE_MS, async () => {
      try {
        await runSql(
          url,
          `OPTIMIZE TABLE ${table} FINAL SETTINGS optimize_throw_if_noop = 1, alter_sync = 2`,
        );
        return true;
      } catch (error) {
        refusal = String(error);
        return false;
      }
    }).catch(() => stopped.push(`${table}: ${refusal}`));
    // One is enough; each of the others would wait as long.
    if (stopped.length > 0) break;
  }
  return stopped;
};

const readLeftovers = async (url: string): Promise<string[]> => {
  // Mutations of a dead process finish without it.
  await until("mutations are done", 20_000, async () => {
    const open = "SELECT count() FROM system.mutations WHERE database = currentDatabase() AND NOT is_done";
    return (await runSql(url, open)) === "0\n";
  }).catch(() => undefined);
  const counts = await runSql(
    url,
    `SELECT 'undone mutations', count() FROM system.mutations WHERE database = currentDatabase() AND NOT is_done
      UNION ALL SELECT 'keys of erasures', count() FROM erasure_keys
      UNION ALL SELECT 'rows of backfills', count() FROM backfill_rows
      UNION ALL SELECT concat('keys of ', extract(run_id, '^[a-z]+')) AS run, count() FROM job_keys GROUP BY run
      ORDER BY ALL FORMAT TSV`,
  );
  return lines(counts);
};

export const readTables = async (url: string, depth: Depth): Promise<EndState> => ({
  ...(await readRows(url)),
  ...(await readStored(url, depth)),
});

/** Waits for background work, reads, then merges the tables, which must not change what readers see. */
export const readEndState = async (url: string, depth: Depth): Promise<EndState> => {
  const leftovers = await readLeftovers(url);
  const tables = await readTables(url, depth);
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

/** Differing facets with the first lines that only one side has; empty: equal. */
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

/** Omits counts that differ when an attempt was interrupted. */
export const outcomeOf = ({ state, reason, result, name }: JobView): string[] => {
  const reported = (result ?? {}) as Readonly<Record<string, unknown>>;
  const kept = STABLE[name] ?? [];
  return [`${state} ${reason ?? ""}`, ...kept.map((field) => `${field} ${JSON.stringify(reported[field])}`)];
};

/** Other jobs count only their last attempt. */
const STABLE: Readonly<Partial<Record<JobView["name"], readonly string[]>>> = {
  backfill: ["dryRun", "parts", "events", "problems", "deletableSince"],
  replay: ["dryRun", "read", "replayed", "byReason", "skipped"],
  windows: [],
};
