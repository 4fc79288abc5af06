import type { ListName } from "@conversation-export/domain";
import type { ListSteps, OpenStep, Reader } from "@conversation-export/warehouse";
import type { ListAnswers, StreamFacts } from "../formats/list-answers.ts";
import { JSON_TYPE, PARQUET_TYPE, streamTypeOf } from "../formats/stream-type.ts";
import { LISTS } from "../lists/lists.ts";
import { watermarkHeader } from "../lists/watermark.ts";
import type { Call, Endpoint } from "../operations/endpoint.ts";

/** A request for a list, as its envelope has read it. */
export type Asked = {
  /** Asked for before the records, which then hold every event that it covers. */
  readonly watermark: string | undefined;
  /** What else the end of a whole list says. */
  readonly facts?: StreamFacts;
  /** Answers with a page, which has these headers. */
  readonly page: (headers: Readonly<Record<string, string>>) => Promise<void>;
  /** The whole list; null: no query is needed. */
  readonly steps: (lists: ListSteps, isFile: boolean) => OpenStep | null;
};

/** One way to ask for a list and to wrap its records. */
export type Envelope = Pick<Endpoint, "paths" | "description" | "headers"> & {
  /** @throws ApiError when the request is wrong */
  readonly ask: (call: Call) => Promise<Asked>;
};

/** Makes the operation that gives a list in an envelope, in the formats that its description names. */
export const createListEndpoint =
  ({
    reader,
    answers,
  }: {
    readonly reader: Pick<Reader, "lines" | "parquet">;
    readonly answers: ListAnswers;
  }) =>
  (list: ListName, { ask, ...envelope }: Envelope): Endpoint => {
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
        return answers.stream(call, open, { contentType, headers, facts: { watermark, ...facts } });
      },
    };
  };
