import { createHash } from "node:crypto";
import { parentPort, workerData } from "node:worker_threads";
import { type Delivered, fold, type Folded } from "../reference/index.ts";
import { compareUtf8 } from "../reference/order.ts";
import { compareLists } from "../compare/compare-exports.ts";
import { createComparison } from "../compare/comparison.ts";
import { createPlaces } from "../system/deliver.ts";
import { createSample } from "../sample/index.ts";
import type {
  ComparedEndUsers,
  CompareRequest,
  ExpectedDeadLetter,
  FromWorker,
  ReferenceSettings,
} from "./reference.ts";
import { runSql } from "../system/warehouse-sql.ts";

const PAGE_SIZE = 5_000;
const REPORT_EVERY = 1_000;

const { options, partitions } = workerData as ReferenceSettings;
// A thread, not a window: there is no origin.
// oxlint-disable-next-line unicorn/require-post-message-target-origin
const report = (message: FromWorker): void => parentPort?.postMessage(message);

const placeText = ({ topic, partition, offset }: Omit<Delivered, "event">): string =>
  `${topic}/${partition}/${offset}`;

const foldSample = (): { folded: Folded; deadLetters: ExpectedDeadLetter[] } => {
  const poison = new Map<string, { digest: string; reason: string | undefined }>();
  const placeOf = createPlaces(partitions);
  const busTime = BigInt(Date.now()) * 1000n;
  let events = 0;
  const deliver = function* (): Generator<Delivered> {
    for (const event of createSample(options)) {
      const place = placeOf(event);
      if (event.poison) {
        const digest = createHash("sha256")
          .update(event.value ?? "")
          .digest("hex");
        poison.set(placeText(place), { digest, reason: event.reason });
      }
      events += 1;
      if (events % REPORT_EVERY === 0) report({ kind: "folding", events });
      yield { event, ...place, busTime };
    }
  };
  const folded = fold(deliver());
  report({ kind: "folding", events });
  const deadLetters = folded.rejected.map((rejection) => {
    const known = poison.get(placeText(rejection));
    if (known?.reason !== rejection.reason) {
      throw new Error(`sample and reference disagree about ${placeText(rejection)}`);
    }
    return { ...rejection, digest: known.digest };
  });
  if (deadLetters.length !== poison.size) throw new Error("the reference accepts a poison record");
  return { folded, deadLetters };
};

/** Their list is tested elsewhere. */
const compareEndUsers = async (url: string, folded: Folded): Promise<ComparedEndUsers[]> =>
  Promise.all(
    [...folded.endUsers].map(async ([client, records]) => {
      const text = await runSql(
        url,
        "SELECT record FROM end_users FINAL WHERE client_id = {client:String} ORDER BY end_user_id FORMAT TSVRaw",
        { client },
      );
      const expected = [...records.values()].sort((a, b) => compareUtf8(a.id, b.id));
      const comparison = createComparison(expected);
      comparison.take(text.split("\n").filter((line) => line !== ""));
      return { client, ...comparison.finish() };
    }),
  );

const { folded, deadLetters } = foldSample();
const [client = ""] = options.clients ?? [];
const ids = [...(folded.conversations.get(client)?.keys() ?? [])];
report({ kind: "folded", deadLetters, someConversation: ids.find((id) => /^[0-9a-f]{24}$/.test(id)) ?? "" });

const compare = async ({ apiUrl, keys, warehouseUrl }: CompareRequest): Promise<void> => {
  let read = 0;
  let pages = 0;
  let bytes = 0;
  const lists = await compareLists(apiUrl, folded, keys, PAGE_SIZE, (page) => {
    pages += 1;
    read += page.records;
    bytes += page.bytes;
    report({ kind: "reading", records: read });
  });
  const endUsers = await compareEndUsers(warehouseUrl, folded);
  report({ kind: "compared", answer: { lists, endUsers, pages, bytes } });
};

// A rejection reaches the parent as the worker's error.
parentPort?.once("message", (request: CompareRequest) => void compare(request));
