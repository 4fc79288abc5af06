import { pipeline, type Transform } from "node:stream";
import type { Reader } from "@conversation-export/warehouse";
import type { Call } from "../operations/endpoint.ts";
import type { ExportList } from "../lists/export-lists.ts";
import type { ListAnswers } from "../formats/list-answers.ts";
import type { PageLinks } from "./page-link.ts";
import type { PageRequest } from "../parameters/window-parameters.ts";
import type { NoteRepeats } from "./repeated-requests.ts";

/** How the pages of one operation are read and written. */
export type WindowForm = {
  readonly list: ExportList;
  /** Of the operation and its version: what cursors are signed for. */
  readonly name: string;
  /** What becomes of the records, which are separated by newlines then. */
  readonly view?: () => Transform;
  /** The members behind the records, with the query of the link to the next page. */
  readonly end: (call: Call, next: string | null) => object;
};

export type WindowPagesDeps = {
  readonly reader: Reader;
  readonly links: PageLinks;
  readonly answers: ListAnswers;
  readonly noteRepeats: NoteRepeats;
};

/** Answers with a page of a window of dates. */
export const createWindowPages =
  ({ reader, links, answers, noteRepeats }: WindowPagesDeps) =>
  async (
    call: Call,
    { list, name, view, end }: WindowForm,
    wanted: PageRequest,
    headers: Readonly<Record<string, string>>,
  ): Promise<void> => {
    const { client, signal } = call;
    const query = {
      ...links.query(client, name, wanted),
      signal,
      ...(view && { separator: "\n" as const }),
    };
    const page = wanted.since < wanted.to ? await list.readPage(reader, wanted.filter, query) : null;
    const repeats = noteRepeats(call, name, wanted);
    // The callback does nothing: the reader of the records gets their error.
    const viewed = page && view ? { ...page, records: pipeline(page.records, view(), () => {}) } : page;
    await answers.page(call, viewed, {
      headers: { ...headers, ...repeats.headers },
      end: (ended) => {
        const next = ended === undefined ? null : links.next(client, name, wanted, ended);
        repeats.end(next !== null);
        return end(call, next);
      },
    });
  };
