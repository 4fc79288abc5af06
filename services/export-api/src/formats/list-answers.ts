import type { OpenStep, Streamed } from "@conversation-export/warehouse";
import type { Call } from "../operations/endpoint.ts";
import { joinFiles } from "./join-files.ts";
import type { SendPage } from "./send-page.ts";
import { JSON_TYPE, PARQUET_TYPE } from "./stream-type.ts";
import { type Join, joinLines, openWindow } from "./window-stream.ts";

type Headers = Readonly<Record<string, string>>;

export type StreamFacts = Readonly<Record<string, string | boolean | undefined>>;

/** All throw WarehouseError, only while nothing was sent. */
export type ListAnswers = {
  /** `data`, then the members of `end`. null: no records. */
  page<End extends { readonly rows: number }>(
    call: Call,
    page: Streamed<End> | null,
    answer: { readonly headers: Headers; readonly end: (end: End | undefined) => object },
  ): Promise<void>;
  /** Count and facts are in the last line, or in Parquet's footer. null: no records. */
  stream(
    call: Call,
    open: OpenStep | null,
    answer: { readonly contentType: string; readonly headers: Headers; readonly facts: StreamFacts },
  ): Promise<void>;
};

const textsOf = (facts: StreamFacts): Record<string, string> =>
  Object.fromEntries(
    Object.entries(facts).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])),
  );

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
  stream: async (call, open, { contentType, headers, facts }) => {
    const isFile = contentType === PARQUET_TYPE;
    const join: Join = isFile
      ? joinFiles(() => ({ count: String(join.count()), ...textsOf(facts) }))
      : joinLines();
    const trailer = () => ({
      count: join.count(),
      ...Object.fromEntries(Object.entries(facts).map(([name, value]) => [name, value ?? null])),
    });
    await sendPage(call, {
      contentType,
      isCompressed: isFile,
      head: "",
      records: open && (await openWindow(open, call, join)),
      rows: join.count,
      tail: () => (isFile ? "" : `${JSON.stringify({ trailer: trailer() })}\n`),
      headers,
    });
  },
});
