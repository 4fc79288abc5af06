import type { ListName } from "@conversation-export/domain";
import type { ListSteps, OpenStep, Reader } from "@conversation-export/warehouse";
import type { ListAnswers, StreamFacts } from "../formats/list-answers.ts";
import { JSON_TYPE, PARQUET_TYPE, streamTypeOf } from "../formats/stream-type.ts";
import { LISTS } from "../lists/lists.ts";
import { watermarkHeader } from "../lists/watermark.ts";
import type { Call, Endpoint } from "../operations/endpoint.ts";

export type Asked = {
  /** Read before the records, which then hold every event it covers. */
  readonly watermark: string | undefined;
  readonly facts?: () => StreamFacts;
  readonly page: (headers: Readonly<Record<string, string>>) => Promise<void>;
  /** null: no query is needed. */
  readonly steps: (lists: ListSteps, isFile: boolean) => OpenStep | null;
};

export type Envelope = Pick<Endpoint, "paths" | "description" | "headers"> & {
  readonly list: ListName;
  readonly ask: (call: Call) => Promise<Asked>;
};

export const createListEndpoint =
  ({
    reader,
    answers,
  }: {
    readonly reader: Pick<Reader, "lines" | "parquet">;
    readonly answers: ListAnswers;
  }) =>
  ({ list, ask, ...envelope }: Envelope): Endpoint => {
    const streams = Object.keys(envelope.description.success.content ?? {}).filter(
      (type) => type !== JSON_TYPE,
    );
    return {
      ...envelope,
      method: "GET",
      scope: LISTS[list].scope,
      limit: list,
      slot: "page",
      streams,
      serve: async (call) => {
        const { watermark, facts, page, steps } = await ask(call);
        const headers = watermarkHeader(watermark);
        const contentType = streamTypeOf(call.request.raw, streams);
        if (contentType === undefined) return page(headers);
        const isFile = contentType === PARQUET_TYPE;
        const open = steps(isFile ? reader.parquet : reader.lines, isFile);
        return answers.stream(call, open, { contentType, headers, facts: { watermark, ...facts?.() } });
      },
    };
  };
