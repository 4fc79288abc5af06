import { pipeline, type Transform } from "node:stream";
import type { MessagePageQuery, Page, Reader } from "@conversation-export/warehouse";
import type { ListAnswers } from "../formats/list-answers.ts";
import { badRequest } from "../http/api-error.ts";
import type { WindowList } from "../lists/lists.ts";
import type { ReadWatermark } from "../lists/watermark.ts";
import type { Call } from "../operations/endpoint.ts";
import type { PageRequest, PageRequestResult } from "../parameters/window-parameters.ts";
import type { Envelope } from "./list-endpoint.ts";
import type { PageLinks } from "./page-link.ts";
import type { NoteRepeats } from "./repeated-requests.ts";

export type WindowForm = {
  readonly list: WindowList;
  /** Cursors are signed for it. */
  readonly name: string;
  readonly read: (target: string) => PageRequestResult;
  /** The records then come separated by newlines. */
  readonly view?: () => Transform;
  readonly end: (call: Call, next: string | null) => object;
};

export type WindowDeps = {
  readonly reader: Reader;
  readonly links: PageLinks;
  readonly answers: ListAnswers;
  readonly noteRepeats: NoteRepeats;
  readonly watermark: ReadWatermark;
};

const readPage = (
  reader: Reader,
  { list, filter }: Pick<WindowForm, "list"> & Pick<PageRequest, "filter">,
  query: MessagePageQuery,
): Promise<Page> =>
  filter === "updated" ? reader.conversationsByUpdate(query) : reader[`${list}ByCreation`](query);

export const askWindow =
  (deps: WindowDeps, { list, name, read, view, end }: WindowForm): Envelope["ask"] =>
  async (call) => {
    const { reader, links, answers, noteRepeats, watermark } = deps;
    const { client, signal, request } = call;
    const result = read(request.raw.url ?? "");
    if ("problems" in result) throw badRequest(result.problems);
    const { request: wanted } = result;
    const { filter } = wanted;
    const isEmpty = wanted.since >= wanted.to;

    return {
      watermark: await watermark(list),
      page: async (headers) => {
        const query = links.query(client, name, wanted);
        const separated = { ...query, signal, ...(view && { separator: "\n" as const }) };
        const page = isEmpty ? null : await readPage(reader, { list, filter }, separated);
        const repeats = noteRepeats(call, name, wanted);
        // No-op: the reader of the records gets their error.
        const viewed = page && view ? { ...page, records: pipeline(page.records, view(), () => {}) } : page;
        await answers.page(call, viewed, {
          headers: { ...headers, ...repeats.headers },
          end: (ended) => {
            const next = ended === undefined ? null : links.next(client, name, wanted, ended);
            repeats.end(next !== null);
            return end(call, next);
          },
        });
      },
      steps: (lists, isFile) => {
        if (isFile && wanted.cursor !== undefined) {
          throw badRequest(["cursor: a Parquet file is the whole window; ask for it without a cursor"]);
        }
        const open = lists[list]({ ...links.query(client, name, wanted), filter });
        // A file has columns even without records.
        return isEmpty && !isFile ? null : open;
      },
    };
  };
