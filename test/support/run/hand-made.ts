import type { BusEvent, RecordKind } from "../sample/index.ts";

const TYPES: Readonly<Record<RecordKind, string>> = {
  conversation: "conversation.exported",
  message: "message.exported",
  end_user: "end_user.exported",
};

/**
 * An event in structured mode with what a test needs and nothing else. `data` is put in as it is, as text when
 * it is a string; `time` is the instant of the export.
 */
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
    type: TYPES[kind],
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
