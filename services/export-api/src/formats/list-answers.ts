import type { OpenStep, Streamed } from "@conversation-export/warehouse";
import type { Call } from "../operations/endpoint.ts";
import { joinFiles } from "./join-files.ts";
import type { SendPage } from "./send-page.ts";
import { JSON_TYPE, PARQUET_TYPE } from "./stream-type.ts";
import { openWindow } from "./window-stream.ts";

type Headers = Readonly<Record<string, string>>;

/**
 * The formats of a list.
 * @throws WarehouseError while nothing has been sent, from every method
 */
export type ListAnswers = {
  /**
   * One JSON object: the records as `data`, and behind them the members that `end` returns. A page that is null holds
   * no records.
   */
  page<End extends { readonly rows: number }>(
    call: Call,
    page: Streamed<End> | null,
    answer: { readonly headers: Headers; readonly end: (end: End | undefined) => object },
  ): Promise<void>;
  /** One record a line, and a last line with their count and the members of `trailer`. */
  lines(
    call: Call,
    open: OpenStep | null,
    answer: { readonly contentType: string; readonly headers: Headers; readonly trailer: object },
  ): Promise<void>;
  /** One Parquet file. Its footer has the number of records and the given facts. */
  file(
    call: Call,
    open: OpenStep,
    answer: { readonly headers: Headers; readonly facts: Readonly<Record<string, string | undefined>> },
  ): Promise<void>;
};

export const createListAnswers = (sendPage: SendPage): ListAnswers => ({
  page: (call, page, { headers, end }) => {
    let rows = 0;
    return sendPage(call, {
      contentType: JSON_TYPE,
      head: '{"data":[',
      records: page?.records ?? null,
      rows: () => rows,
      tail: () => {
        const ended = page?.end();
        rows = ended?.rows ?? 0;
        return `],${JSON.stringify(end(ended)).slice(1)}`;
      },
      headers,
    });
  },
  lines: async (call, open, { contentType, headers, trailer }) => {
    const lines = open === null ? null : await openWindow(open, call);
    const count = (): number => lines?.count() ?? 0;
    await sendPage(call, {
      contentType,
      head: "",
      records: lines?.records ?? null,
      rows: count,
      tail: () => `${JSON.stringify({ trailer: { count: count(), ...trailer } })}\n`,
      headers,
    });
  },
  file: async (call, open, { headers, facts }) => {
    const known = Object.entries(facts).filter((fact): fact is [string, string] => fact[1] !== undefined);
    const join = joinFiles(() => ({ count: String(join.count()), ...Object.fromEntries(known) }));
    const file = await openWindow(open, call, join);
    await sendPage(call, {
      contentType: PARQUET_TYPE,
      isCompressed: true,
      head: "",
      records: file.records,
      rows: file.count,
      tail: () => "",
      headers,
    });
  },
});
