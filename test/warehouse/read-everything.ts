import { createHash } from "node:crypto";
import { buffer, text } from "node:stream/consumers";
import type { RecordKind } from "@conversation-export/domain";
import type { OpenStep, Page, PagePosition, PageQuery, Reader } from "@conversation-export/warehouse";
import { readPage } from "./walk.ts";

const MAX_PAGES = 100;

const pagesOf = async (read: (query: PageQuery) => Promise<Page>, query: PageQuery): Promise<string[]> => {
  const found: string[] = [];
  let after: PagePosition | undefined;
  for (let pages = 0; pages < MAX_PAGES; pages += 1) {
    const page = await read(after === undefined ? query : { ...query, after });
    found.push(...(await readPage(page)));
    const { rows, next } = page.end();
    found.push(`${rows} rows, then ${JSON.stringify(next)}`);
    if (next === null) return found;
    after = next;
  }
  return found;
};

const filesOf = async (open: OpenStep): Promise<string[]> => {
  const parts: string[] = [];
  for (let next: OpenStep | null = open; next !== null; ) {
    const part: Awaited<ReturnType<OpenStep>> = await next(new AbortController().signal);
    parts.push(
      createHash("sha256")
        .update(await buffer(part.bytes))
        .digest("hex"),
    );
    next = part.next;
  }
  return parts;
};

export const waysToRead = (
  reader: Reader,
  window: PageQuery,
  { conversationId, stableUpTo, keyHash }: { conversationId: string; stableUpTo: number; keyHash: string },
): Readonly<Record<string, () => Promise<unknown>>> => {
  const { clientId, since, to, pageSize } = window;
  const endUsers = async (): Promise<unknown> => {
    const found: unknown[] = [];
    let from = "";
    for (let pages = 0; pages < MAX_PAGES; pages += 1) {
      const page = await reader.endUsers({ clientId, from, limit: pageSize });
      const records = await text(page.records);
      const { rows, next } = page.end();
      found.push(rows, next, records);
      if (next === null) return found;
      from = next;
    }
    return found;
  };
  const changes = (kind: RecordKind) => async (): Promise<unknown> => {
    const found: unknown[] = [];
    let after: PagePosition = { date: 0, id: "" };
    for (let pages = 0; pages < MAX_PAGES; pages += 1) {
      const page = await reader.changes({ clientId, kind, after, stableUpTo, pageSize });
      const records = await text(page.records);
      const { rows, next, isLast } = page.end();
      found.push(rows, next, records);
      if (isLast) return found;
      after = next;
    }
    return found;
  };
  const { lines, parquet } = reader;
  const filter = {
    created: { clientId, since, to, filter: "created" },
    updated: { clientId, since, to, filter: "updated" },
  } as const;
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
    conversationLines: () => filesOf(lines.conversations(filter.created)),
    updateLines: () => filesOf(lines.conversations(filter.updated)),
    messageLines: () => filesOf(lines.messages({ clientId, since, to })),
    changeLines: () =>
      filesOf(lines.changes({ clientId, kind: "message", after: { date: 0, id: "" }, stableUpTo })),
    conversationFiles: () => filesOf(parquet.conversations(filter.created)),
    updateFiles: () => filesOf(parquet.conversations(filter.updated)),
    messageFiles: () => filesOf(parquet.messages({ clientId, since, to })),
    endUserFiles: () => filesOf(parquet.endUsers({ clientId })),
    changeFiles: () =>
      filesOf(parquet.changes({ clientId, kind: "conversation", after: { date: 0, id: "" }, stableUpTo })),
    key: () => reader.findKey(keyHash),
    keys: () => reader.validKeys(10),
  };
};

/** A way that fails has its error as text. */
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
