import { createHash } from "node:crypto";
import { buffer, text } from "node:stream/consumers";
import type { RecordKind } from "@conversation-export/domain";
import type { OpenParquet, Page, PagePosition, PageQuery, Reader } from "@conversation-export/warehouse";
import { readPage } from "./walk.ts";

const MAX_PAGES = 100;

/** The texts of all pages of a list, whatever the head line of each says of their number. */
const pagesOf = async (read: (query: PageQuery) => Promise<Page>, query: PageQuery): Promise<string[]> => {
  const found: string[] = [];
  let after: PagePosition | undefined;
  for (let pages = 0; pages < MAX_PAGES; pages += 1) {
    const page = await read(after === undefined ? query : { ...query, after });
    found.push(...(await readPage(page)), `${page.rows} rows, then ${JSON.stringify(page.next)}`);
    if (page.next === null) return found;
    after = page.next;
  }
  return found;
};

const filesOf = async (open: OpenParquet): Promise<string[]> => {
  const parts: string[] = [];
  for (let next: OpenParquet | null = open; next !== null; ) {
    const part: Awaited<ReturnType<OpenParquet>> = await next(new AbortController().signal);
    parts.push(
      createHash("sha256")
        .update(await buffer(part.bytes))
        .digest("hex"),
    );
    next = part.next;
  }
  return parts;
};

/** What a reader reads of one client in every way that there is, by the name of the way. */
export const waysToRead = (
  reader: Reader,
  window: PageQuery,
  { conversationId, settled, keyHash }: { conversationId: string; settled: number; keyHash: string },
): Readonly<Record<string, () => Promise<unknown>>> => {
  const { clientId, since, to, pageSize } = window;
  const endUsers = async (): Promise<unknown> => {
    const found: unknown[] = [];
    let from = "";
    for (let pages = 0; pages < MAX_PAGES; pages += 1) {
      const page = await reader.endUsers({ clientId, from, limit: pageSize });
      found.push(page.rows, page.next, await text(page.records));
      if (page.next === null) return found;
      from = page.next;
    }
    return found;
  };
  const changes = (kind: RecordKind) => async (): Promise<unknown> => {
    const found: unknown[] = [];
    let after: PagePosition = { date: 0, id: "" };
    for (let pages = 0; pages < MAX_PAGES; pages += 1) {
      const page = await reader.changes({ clientId, kind, after, settled, pageSize });
      found.push(page.rows, page.next, await text(page.records));
      if (page.isLast) return found;
      after = page.next;
    }
    return found;
  };
  const lines = (list: "conversations" | "messages") => async (): Promise<unknown> => {
    const end = await reader.lines[list].stepEnd({ clientId, since, to });
    return [end, await text(await reader.lines[list].read({ clientId, since, to }))];
  };
  const { parquet } = reader;
  return {
    conversationsByCreation: () => pagesOf(reader.conversationsByCreation, window),
    conversationsByUpdate: () => pagesOf(reader.conversationsByUpdate, window),
    messagesByCreation: () => pagesOf(reader.messagesByCreation, window),
    messagesOfConversation: () =>
      pagesOf((query) => reader.messagesByCreation({ ...query, conversationId }), window),
    endUsers,
    changesOfConversations: changes("conversation"),
    changesOfMessages: changes("message"),
    changesOfEndUsers: changes("end_user"),
    conversationLines: lines("conversations"),
    messageLines: lines("messages"),
    conversationFiles: () => filesOf(parquet.conversations({ clientId, since, to, filter: "created" })),
    updateFiles: () => filesOf(parquet.conversations({ clientId, since, to, filter: "updated" })),
    messageFiles: () => filesOf(parquet.messages({ clientId, since, to })),
    endUserFiles: () => filesOf(parquet.endUsers({ clientId })),
    changeFiles: () =>
      filesOf(parquet.changes({ clientId, kind: "conversation", after: { date: 0, id: "" }, settled })),
    key: () => reader.findKey(keyHash),
    keys: () => reader.validKeys(10),
  };
};

/** Reads in every way; a way that fails has its error, as text. */
export const readEverything = async (
  ways: Readonly<Record<string, () => Promise<unknown>>>,
): Promise<Record<string, unknown>> => {
  const found: Record<string, unknown> = {};
  for (const [name, read] of Object.entries(ways))
    found[name] = await read().catch((error: unknown) =>
      error instanceof Error ? error : new Error(String(error)),
    );
  return found;
};
