import type { IncomingMessage } from "node:http";
import { expect, it } from "vitest";
import { LINES_TYPES, PARQUET_TYPE, streamTypeOf } from "./stream-type.ts";

it.each([
  [undefined, undefined],
  ["*/*", undefined],
  ["application/json; charset=utf-8", undefined],
  ["application/x-ndjson", "application/x-ndjson"],
  ["application/x-ndjson; charset=utf-8", "application/x-ndjson"],
  ["application/vnd.apache.parquet;version=1", PARQUET_TYPE],
  ["application/json;q=0.5, application/jsonl;charset=utf-8;q=0.9", "application/jsonl"],
  ["application/json, application/jsonl;charset=utf-8; q=0.1", undefined],
])("Accept %s asks for %s", (accept, type) => {
  const request = { headers: { accept } } as IncomingMessage;
  expect(streamTypeOf(request, [...LINES_TYPES, PARQUET_TYPE])).toBe(type);
});
