import { RECORD_KINDS } from "@conversation-export/domain";
import type { BusEvent, RecordKind } from "./index.ts";

/** Minimal, structured mode; text `data` is JSON as it is. */
export const handMade = (options: {
  readonly kind: RecordKind;
  readonly client: string;
  readonly id: string;
  readonly time: string;
  readonly data: Readonly<Record<string, unknown>> | string;
  readonly headers?: Record<string, string>;
}): BusEvent => {
  const { kind, client, id, time, data, headers = {} } = options;
  const attributes = JSON.stringify({
    specversion: "1.0",
    id: `event-${id}`,
    source: "/test",
    type: RECORD_KINDS[kind].type,
    time,
    clientid: client,
  });
  const text = typeof data === "string" ? data : JSON.stringify(data);
  return {
    kind,
    key: `${client}:${id}`,
    value: Buffer.from(`${attributes.slice(0, -1)},"data":${text}}`),
    headers,
    poison: false,
  };
};
