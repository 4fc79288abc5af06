import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { parse } from "yaml";
import { preparePythonTools } from "./python-tools.ts";

const CONNECTORS = fileURLToPath(new URL("../../packages/connectors/", import.meta.url));
const ROWS = fileURLToPath(new URL("duckdb-rows.py", import.meta.url));

export const LISTS = ["conversations", "messages", "end_users"] as const;
export type List = (typeof LISTS)[number];
export const ID_OF = { conversations: "_id", messages: "_id", end_users: "end_user_id" } as const;

export type Fields = Readonly<Record<string, unknown>>;
/** By id. */
export type Copy = ReadonlyMap<string, Fields>;

type Options = { readonly apiUrl: string; readonly key: string; readonly pageSize: number };

export const prepareConnectors = async () => {
  const programs = await preparePythonTools("connectors");
  return (folder: string) => {
    mkdirSync(folder, { recursive: true });
    const run = async (
      program: string,
      args: readonly string[],
      env: Readonly<Record<string, string>> = {},
    ): Promise<string> => {
      const { stdout } = await promisify(execFile)(join(programs, program), [...args], {
        cwd: folder,
        env: { PATH: process.env["PATH"], HOME: folder, PYTHONDONTWRITEBYTECODE: "1", ...env },
        maxBuffer: 1024 ** 3,
        timeout: 120_000,
      });
      return stdout;
    };
    return { folder, run };
  };
};
type Place = ReturnType<Awaited<ReturnType<typeof prepareConnectors>>>;

type Stream = Fields & {
  readonly name: List;
  readonly json_schema: { readonly properties: Fields };
};
type Message = {
  readonly connectionStatus?: { readonly status: string; readonly message?: string };
  readonly catalog?: { readonly streams: readonly Stream[] };
  readonly record?: { readonly stream: List; readonly data: Fields };
  readonly state?: { readonly stream: { readonly stream_descriptor: { readonly name: List } } };
};

export const createAirbyte = ({ folder, run }: Place, { apiUrl, key, pageSize }: Options) => {
  const manifest: unknown = parse(readFileSync(join(CONNECTORS, "airbyte/manifest.yaml"), "utf8"));
  const config = {
    base_url: apiUrl,
    api_key: key,
    page_size: pageSize,
    __injected_declarative_manifest: manifest,
  };
  const copies = new Map(LISTS.map((list) => [list, new Map<string, Fields>()]));
  const states = new Map<List, unknown>();
  let found: readonly Stream[] | undefined;
  let turn = 0;

  const command = async (name: string, files: Fields): Promise<Message[]> => {
    turn += 1;
    const args = Object.entries(files).flatMap(([option, content]) => {
      const file = join(folder, `${turn}-${option}.json`);
      writeFileSync(file, JSON.stringify(content));
      return [`--${option}`, file];
    });
    const out = await run("source-declarative-manifest", [name, ...args]);
    return out
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Message);
  };
  const discover = async (): Promise<readonly Stream[]> => {
    const messages = await command("discover", { config });
    return messages.flatMap(({ catalog }) => catalog?.streams ?? []);
  };

  return {
    /** SUCCEEDED or FAILED. */
    check: async (apiKey: string = key): Promise<string | undefined> => {
      const messages = await command("check", { config: { ...config, api_key: apiKey } });
      return messages.flatMap(({ connectionStatus }) => connectionStatus?.status ?? [])[0];
    },
    discover,
    read: async (mode: "full_refresh" | "incremental"): Promise<readonly Fields[]> => {
      found ??= await discover();
      const streams = found.map((stream) => ({
        stream,
        sync_mode: mode,
        destination_sync_mode: mode === "incremental" ? "append_dedup" : "overwrite",
      }));
      if (mode === "full_refresh") for (const copy of copies.values()) copy.clear();
      const known = mode === "incremental" ? { state: [...states.values()] } : {};
      const messages = await command("read", { config, catalog: { streams }, ...known });
      for (const { record, state } of messages) {
        if (state !== undefined) states.set(state.stream.stream_descriptor.name, state);
        if (record === undefined) continue;
        const { stream, data } = record;
        const id = String(data[ID_OF[stream]]);
        if (data["_deleted"] === true) copies.get(stream)?.delete(id);
        else copies.get(stream)?.set(id, data);
      }
      return messages.flatMap(({ record }) => (record === undefined ? [] : [record.data]));
    },
    copy: (list: List): Copy => copies.get(list) ?? new Map<string, Fields>(),
  };
};

export const createDlt = ({ folder, run }: Place, { apiUrl, key, pageSize }: Options) => {
  const env = {
    SOURCES__CONVERSATION_EXPORT__BASE_URL: apiUrl,
    SOURCES__CONVERSATION_EXPORT__API_KEY: key,
    SOURCES__CONVERSATION_EXPORT__PAGE_SIZE: String(pageSize),
    RUNTIME__DLTHUB_TELEMETRY: "false",
    LOAD__DELETE_COMPLETED_JOBS: "true",
    DLT_DATA_DIR: join(folder, "state"),
  };
  return {
    load: () => run("python", [join(CONNECTORS, "dlt/conversation_export.py")], env),
    rows: async (): Promise<Readonly<Record<List, readonly Fields[]>>> => {
      const tables = LISTS.map((list) => `export.${list}`);
      const found = JSON.parse(
        await run("python", [ROWS, "conversation_export.duckdb", ...tables]),
      ) as Record<string, readonly Fields[]>;
      const rowsOf = (list: List): readonly Fields[] => found[`export.${list}`] ?? [];
      return {
        conversations: rowsOf("conversations"),
        messages: rowsOf("messages"),
        end_users: rowsOf("end_users"),
      };
    },
  };
};
