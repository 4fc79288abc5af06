import {
  type ExportedRecord,
  type Folded,
  LEGACY_FIELDS,
  pickFields,
  windowCreated,
  windowUpdated,
} from "../reference/index.ts";
import { splitLegacyPage, splitPage } from "./walk.ts";

/** In µs; `to` is exclusive. */
export type ListWindow = { readonly since: bigint; readonly to: bigint };

export type ExportList = {
  readonly name: string;
  readonly kind: "conversations" | "messages";
  readonly by: "created" | "updated";
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly form: "page" | "legacy" | "lines";
  readonly fields: readonly string[] | null;
  readonly conversation: string | null;
};

const list = (own: Pick<ExportList, "name" | "kind" | "path"> & Partial<ExportList>): ExportList => ({
  by: "created",
  query: {},
  form: "page",
  fields: null,
  conversation: null,
  ...own,
});

const VERSIONS = ["v1", "v1.1", "v1.2"] as const;
const KINDS = ["conversations", "messages"] as const;

/** `conversation` must have messages. */
export const everyList = (conversation: string): ExportList[] => {
  const [conversations, messages] = ["/api/v2/export/conversations", "/api/v2/export/messages"] as const;
  const v2 = (["page", "lines"] as const).flatMap((form) => [
    list({ name: `conversations by creation, ${form}`, kind: "conversations", path: conversations, form }),
    list({
      name: `conversations by update, ${form}`,
      kind: "conversations",
      path: conversations,
      by: "updated",
      form,
    }),
    list({ name: `messages, ${form}`, kind: "messages", path: messages, form }),
    list({
      name: `messages of a conversation, ${form}`,
      kind: "messages",
      path: messages,
      query: { conversation_id: conversation },
      conversation,
      form,
    }),
  ]);
  const legacy = VERSIONS.flatMap((version) =>
    KINDS.map((kind) =>
      list({
        name: `${kind} of ${version}`,
        kind,
        path: `/data_api/${version}/${kind}`,
        form: "legacy",
        fields: LEGACY_FIELDS[kind][version],
      }),
    ),
  );
  const updated = list({
    name: "conversations by update of v1",
    kind: "conversations",
    path: "/data_api/v1/conversations",
    by: "updated",
    form: "legacy",
    fields: LEGACY_FIELDS.conversations.v1,
  });
  return [...v2, ...legacy, updated];
};

export const expectedOfList = (
  folded: Folded,
  client: string,
  { kind, by, fields, conversation }: ExportList,
  { since, to }: ListWindow,
): ExportedRecord[] =>
  (by === "created" ? windowCreated : windowUpdated)(folded[kind], client, since, to)
    .filter(({ conversationId }) => conversation === null || conversationId === conversation)
    .map(({ id, json }) => ({ id, json: fields === null ? json : pickFields(json, fields) }));

const instant = (micros: bigint): string => {
  const second = new Date(Number(micros / 1_000_000n) * 1_000).toISOString().slice(0, 19);
  return `${second}.${String(micros % 1_000_000n).padStart(6, "0")}Z`;
};

const readLines = (text: string): string[] => {
  const lines = text.split("\n").filter((line) => line !== "");
  const last = JSON.parse(lines.pop() ?? "{}") as { trailer?: { count: number } };
  if (last.trailer?.count !== lines.length)
    throw new Error(`${lines.length} lines, then ${JSON.stringify(last)}`);
  return lines;
};

/** `takesBound`: copies a link's lower bound, which must advance, instead of following the link. */
export const readList = async function* (
  { path, query, by, form }: ExportList,
  how: {
    readonly host: string;
    readonly key: string;
    readonly window: ListWindow;
    readonly pageSize: number;
    readonly takesBound: boolean;
  },
): AsyncGenerator<string[]> {
  const first = new URL(path, how.host);
  const bounds = { [`${by}_since`]: instant(how.window.since), [`${by}_to`]: instant(how.window.to) };
  for (const [name, value] of Object.entries({ ...query, ...bounds })) first.searchParams.set(name, value);
  if (form !== "lines") first.searchParams.set("page_size", String(how.pageSize));
  const headers = {
    authorization: `Bearer ${how.key}`,
    ...(form === "lines" && { accept: "application/x-ndjson" }),
  };
  for (let url: URL | null = first; url !== null; ) {
    const response: Response = await fetch(url, { headers });
    const text = await response.text();
    if (response.status !== 200) throw new Error(`${response.status} for ${url.href}: ${text.slice(0, 500)}`);
    if (form === "lines") {
      yield readLines(text);
      return;
    }
    const { records, next } = (form === "legacy" ? splitLegacyPage : splitPage)(text);
    yield records;
    url = next === null ? null : new URL(next, first);
    const bound = how.takesBound ? url?.searchParams.get(`${by}_since`) : undefined;
    if (typeof bound === "string") {
      url = new URL(first);
      url.searchParams.set(`${by}_since`, bound);
    }
  }
};
