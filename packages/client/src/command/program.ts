import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Writable } from "node:stream";
import { createCaller, isKey } from "../http/caller.ts";
import { ExportApiError, ExportConnectionError } from "../http/errors.ts";
import { visibleText } from "../http/visible-text.ts";
import type { ListName } from "../lists/kinds.ts";
import { createStreams } from "../lists/streams.ts";
import { CopyError, EXIT, explain, UsageError } from "./exit-code.ts";
import { createProgress, type Progress } from "./progress.ts";
import { proxyNote, useProxy } from "./proxy.ts";
import { type Note, type PullDeps, pullList, type Wanted } from "./pull.ts";
import { say } from "./say.ts";
import { type Environment, readSettings, type Settings, USAGE } from "./settings.ts";
import { openDuckDb } from "./targets/duckdb/duckdb.ts";
import { openFolder } from "./targets/folder/folder.ts";
import { openOutput } from "./targets/output.ts";
import { openTableFiles, TABLES_FILE } from "./targets/tables/table-files.ts";
import type { ListState, Target } from "./targets/target.ts";
import { isEqual, type Verified, verifyList } from "./verify.ts";

/** Bytes after which a first pass is stored; about the size of a file. */
const SEGMENT_BYTES = 64 * 1024 * 1024;
/** DuckDB holds a portion in memory. */
const DUCKDB_SEGMENT_BYTES = 8 * 1024 * 1024;

export type Io = {
  readonly env: Environment;
  readonly stdout: Writable;
  readonly stderr: Writable & { readonly isTTY?: boolean };
  readonly signal: AbortSignal;
};

const readKeyFile = async (path: string): Promise<string> => {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    throw new UsageError(`--key-file: ${error instanceof Error ? error.message : String(error)}`);
  }
};

const readKey = async ({ keyFile }: Settings, env: Environment): Promise<string> => {
  const text = keyFile === undefined ? env["EXPORT_API_KEY"] : await readKeyFile(keyFile);
  const key = text?.trim() ?? "";
  if (key === "") throw new UsageError("EXPORT_API_KEY, or --key-file: a key is required");
  if (!isKey(key)) {
    throw new UsageError(
      `${keyFile === undefined ? "EXPORT_API_KEY" : "--key-file"}: the key must be one line of visible ASCII characters without spaces`,
    );
  }
  return key;
};

const segmentBytesOf = ({ target, fileBytes }: Settings): number =>
  fileBytes ?? (["folder", "output"].includes(target.kind) ? SEGMENT_BYTES : DUCKDB_SEGMENT_BYTES);

const openTarget = (settings: Settings, { stdout }: Io): Promise<Target> => {
  const { command, target, url: service, lists, compress, stateFile, takeOver, replace } = settings;
  const lock = { takeOver };
  const { kind } = target;
  if (kind === "output")
    return openOutput({ output: stdout, service, list: lists[0] as ListName, stateFile, lock });
  const { path } = target;
  const made = kind === "parquet" || kind === "csv" ? join(path, TABLES_FILE) : path;
  if (command !== "pull" && !existsSync(made)) throw new UsageError(`--to: ${path} has no copy`);
  if (kind === "duckdb") return openDuckDb({ file: path, service, lists, replace });
  if (kind !== "folder") return openTableFiles({ root: path, format: kind, service, lists });
  if (existsSync(join(path, TABLES_FILE)))
    throw new UsageError(`--to: ${path} is a copy of tables: parquet:FOLDER or csv:FOLDER`);
  const segmentBytes = segmentBytesOf(settings);
  return openFolder({ root: path, service, lists, compress, segmentBytes, replace, lock });
};

const isSame = (one: readonly string[] | null, other: readonly string[] | null): boolean =>
  JSON.stringify(one) === JSON.stringify(other?.toSorted());

/** An existing copy keeps its settings. @throws UsageError */
const wantedOf = ({ since, fields }: Settings, list: ListName, known: ListState | undefined): Wanted => {
  const selected = fields[list];
  if (known === undefined) return { list, since: since ?? null, fields: selected ?? null };
  if (since !== undefined && since !== known.since) {
    throw new UsageError(
      `--since: the copy of ${list} begins ${known.since === null ? "with everything" : `at ${known.since}`}`,
    );
  }
  if (selected !== undefined && !isSame(selected, known.fields)) {
    throw new UsageError(
      `--select: the copy of ${list} has ${known.fields === null ? "all fields" : known.fields.join(",")}`,
    );
  }
  return { list, since: known.since, fields: known.fields };
};

/** A proxy's 403 says nothing about the key. */
const isForbidden = (error: unknown): boolean =>
  error instanceof ExportApiError && error.status === 403 && error.type === "authorization_error";

const noteLine = ({ list, lines, deletions, watermark, isRenewed }: Note): string =>
  `${list}: ${isRenewed ? "made afresh, since its cursor had expired; " : ""}records received: ${lines.toLocaleString("en-US")}, deletions among them: ${deletions.toLocaleString("en-US")}; complete up to ${watermark ?? "an unknown instant"}`;

const MAX_ID = 200;

const verifiedLine = (one: Verified): string =>
  isEqual(one)
    ? `${one.list}: equal, ${one.local.toLocaleString("en-US")} records, checksum ${one.localChecksum}` +
      (one.changed > 0 ? `, and ${one.changed} that changed since the pull` : "")
    : `${one.list}: different: ${one.missing} missing, ${one.extra} extra, ${one.different} with other values` +
      `${one.isWhole ? "" : " or more"}, such as ${one.examples.map((id) => visibleText(id, MAX_ID)).join(", ")}`;

type Run = {
  readonly settings: Settings;
  readonly deps: PullDeps;
  readonly progress: Progress;
  readonly report: (value: object, text: string) => void;
};

const pull = async ({ settings, deps, progress, report }: Run): Promise<number> => {
  let code: number = EXIT.ok;
  const failures: unknown[] = [];
  for (const list of settings.lists) {
    const wanted = wantedOf(settings, list, deps.target.state(list));
    try {
      const note = await pullList(deps, wanted);
      if (settings.compact) await deps.target.compact?.(list, false);
      const before = failures.length;
      await deps.target.publish?.(list).catch((error: unknown) => failures.push(error));
      progress.end();
      report({ pulled: note }, noteLine(note));
      if (failures.length > before)
        report({ unwritten: list }, `${list}: its file could not be written and stays the old one`);
    } catch (error) {
      if (!isForbidden(error)) throw error;
      progress.end();
      report(
        { forbidden: list },
        `${list}: not pulled, the key may not read them; --list names what to pull`,
      );
      code = EXIT.forbidden;
    }
  }
  if (failures.length > 0) throw failures[0];
  return code;
};

const verify = async ({ settings, deps, report }: Run, signal: AbortSignal): Promise<number> => {
  let code: number = EXIT.ok;
  const pulled = settings.lists.filter((list) => settings.isListed || deps.target.state(list) !== undefined);
  if (pulled.length === 0) throw new UsageError("--to: there is no copy of these lists");
  for (const list of pulled) {
    const verified = await verifyList({ ...deps, sleep: (ms) => sleep(ms, undefined, { signal }) }, list);
    report({ verified, equal: isEqual(verified) }, verifiedLine(verified));
    if (!isEqual(verified)) code = EXIT.different;
  }
  return code;
};

const compact = async ({ settings, deps: { target } }: Run): Promise<number> => {
  // The old copy still has what was erased since; only a pull applies that.
  const renewing = settings.lists.filter(target.isRenewing);
  if (renewing.length > 0)
    throw new CopyError(
      `a new copy of ${renewing.join(", ")} is not complete, and the old one stays: pull first`,
    );
  for (const list of settings.lists) {
    await target.compact?.(list, true);
    // A pull may have ended between storing rows and writing its files.
    if (typeof target.state(list)?.watermark === "string") await target.publish?.(list);
  }
  await target.rewrite?.();
  return EXIT.ok;
};

const execute = async (args: readonly string[], io: Io): Promise<number> => {
  const settings = readSettings(args, io.env, Date.now());
  const { json, plainTransfer, url: service } = settings;
  const apiKey = await readKey(settings, io.env);
  // `compact` sends no request.
  if (settings.command !== "compact") useProxy(io.env, service);
  const progress = createProgress({ output: io.stderr, json, clock: () => performance.now() });
  let note = proxyNote(io.env, service);
  const noteProxy = (error: unknown): void => {
    if (note === null || !(error instanceof ExportConnectionError)) return;
    progress.end();
    say(io.stderr, json ? JSON.stringify({ note }) : note);
    note = null;
  };
  const caller = createCaller({
    baseUrl: service,
    apiKey,
    signal: io.signal,
    retry: {
      onRetry: (retry) => {
        noteProxy(retry.error);
        progress.retry(retry);
      },
    },
    ...(plainTransfer && { headers: { "accept-encoding": "identity" } }),
  });
  // Standard output may be the copy.
  const results = settings.target.kind === "output" ? io.stderr : io.stdout;
  const report: Run["report"] = (value, text) => {
    say(results, json ? JSON.stringify(value) : text);
  };
  const target = await openTarget(settings, io);
  try {
    const deps: PullDeps = {
      streams: createStreams(caller),
      target,
      segmentBytes: segmentBytesOf(settings),
      onNote: progress.update,
      now: Date.now,
    };
    const run: Run = { settings, deps, progress, report };
    if (settings.command === "verify") return await verify(run, io.signal);
    return settings.command === "compact" ? await compact(run) : await pull(run);
  } catch (error) {
    noteProxy(error);
    throw error;
  } finally {
    progress.end();
    await target.close();
  }
};

export const run = async (args: readonly string[], io: Io): Promise<number> => {
  if (args.length === 0 || args.includes("--help") || args.includes("-h")) {
    io.stdout.write(USAGE);
    return args.length === 0 ? EXIT.usage : EXIT.ok;
  }
  try {
    return await execute(args, io);
  } catch (error) {
    const { code, text } = explain(error);
    say(io.stderr, args.includes("--json") ? JSON.stringify({ error: text, code }) : text);
    return code;
  }
};
