import { createServer } from "node:http";
import { buffer } from "node:stream/consumers";
import { listen } from "../system/listen.ts";

/** Hexadecimal ids; `parentId` is empty for a root. */
export type ReceivedSpan = {
  readonly service: string;
  readonly name: string;
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string;
  readonly traceState: string;
  readonly startNs: bigint;
  readonly endNs: bigint;
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
  readonly events: readonly { name: string; attributes: Readonly<Record<string, unknown>> }[];
  readonly links: readonly { traceId: string; spanId: string }[];
  /** 2: it failed. */
  readonly status: number;
};

export type TraceReceiver = {
  /** For OTEL_EXPORTER_OTLP_ENDPOINT. */
  readonly url: string;
  readonly spans: ReceivedSpan[];
  readonly requests: { readonly path: string; readonly headers: Readonly<Record<string, unknown>> }[];
  stop(): Promise<void>;
};

type Value = bigint | Buffer;
type Fields = ReadonlyMap<number, readonly Value[]>;

const readFields = (bytes: Buffer): Fields => {
  const fields = new Map<number, Value[]>();
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++] ?? 0;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  const value = (type: number): Value => {
    if (type === 0) return varint();
    if (type === 1) return bytes.readBigUInt64LE((at += 8) - 8);
    if (type === 5) return BigInt(bytes.readUInt32LE((at += 4) - 4));
    const length = Number(varint());
    return bytes.subarray(at, (at += length));
  };
  while (at < bytes.length) {
    const tag = Number(varint());
    const values = fields.get(tag >> 3) ?? [];
    values.push(value(tag & 7));
    fields.set(tag >> 3, values);
  }
  return fields;
};

const messages = (fields: Fields, number: number): Fields[] =>
  (fields.get(number) ?? []).filter((one) => Buffer.isBuffer(one)).map(readFields);
const bytesOf = (fields: Fields, number: number): Buffer => {
  const value = fields.get(number)?.[0];
  return Buffer.isBuffer(value) ? value : Buffer.alloc(0);
};
const text = (fields: Fields, number: number): string => bytesOf(fields, number).toString("utf8");
const hex = (fields: Fields, number: number): string => bytesOf(fields, number).toString("hex");
const integer = (fields: Fields, number: number): bigint => {
  const value = fields.get(number)?.[0];
  return typeof value === "bigint" ? value : 0n;
};

const attributeValue = (any: Fields | undefined): string | number | boolean => {
  if (any === undefined) return "";
  if (any.has(2)) return integer(any, 2) === 1n;
  if (any.has(3)) return Number(BigInt.asIntN(64, integer(any, 3)));
  if (any.has(4)) return Buffer.from(new BigUint64Array([integer(any, 4)]).buffer).readDoubleLE();
  return text(any, 1);
};

const attributesOf = (fields: Fields, number: number): Record<string, string | number | boolean> =>
  Object.fromEntries(
    messages(fields, number).map((pair) => [text(pair, 1), attributeValue(messages(pair, 2)[0])]),
  );

const toSpan = (service: string, span: Fields): ReceivedSpan => ({
  service,
  traceId: hex(span, 1),
  spanId: hex(span, 2),
  traceState: text(span, 3),
  parentId: hex(span, 4),
  name: text(span, 5),
  kind: Number(integer(span, 6)),
  startNs: integer(span, 7),
  endNs: integer(span, 8),
  attributes: attributesOf(span, 9),
  events: messages(span, 11).map((event) => ({ name: text(event, 2), attributes: attributesOf(event, 3) })),
  links: messages(span, 13).map((link) => ({ traceId: hex(link, 1), spanId: hex(link, 2) })),
  status: Number(integer(messages(span, 15)[0] ?? new Map(), 3)),
});

const readRequest = (body: Buffer): ReceivedSpan[] =>
  messages(readFields(body), 1).flatMap((resource) => {
    const service = String(attributesOf(messages(resource, 1)[0] ?? new Map(), 1)["service.name"]);
    return messages(resource, 2).flatMap((scope) => messages(scope, 2).map((span) => toSpan(service, span)));
  });

/** OTLP over protobuf. */
export const startTraceReceiver = async (): Promise<TraceReceiver> => {
  const spans: ReceivedSpan[] = [];
  const requests: { path: string; headers: Record<string, unknown> }[] = [];
  const server = createServer((request, response) => {
    void buffer(request).then((body) => {
      requests.push({ path: request.url ?? "", headers: request.headers });
      spans.push(...readRequest(body));
      response.writeHead(200, { "content-type": "application/x-protobuf" }).end();
    });
  });
  const { port, close } = await listen(server);
  return {
    url: `http://127.0.0.1:${port}`,
    spans,
    requests,
    stop: close,
  };
};
