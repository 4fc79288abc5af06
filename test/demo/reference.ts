import { Worker } from "node:worker_threads";
import type { Rejection } from "../reference/index.ts";
import type { ComparedList } from "../compare/compare-exports.ts";
import type { Compared } from "../compare/comparison.ts";
import type { SampleOptions } from "../sample/index.ts";

export type ReferenceSettings = { readonly options: Partial<SampleOptions>; readonly partitions: number };

/** `digest`: SHA-256 of its value. */
export type ExpectedDeadLetter = Rejection & { readonly digest: string };

export type CompareRequest = {
  readonly apiUrl: string;
  readonly keys: ReadonlyMap<string, string>;
  readonly warehouseUrl: string;
};

export type ComparedEndUsers = Compared & { readonly client: string };

export type CompareAnswer = {
  readonly lists: readonly ComparedList[];
  readonly endUsers: readonly ComparedEndUsers[];
  readonly pages: number;
  readonly bytes: number;
};

export type FromWorker =
  | { readonly kind: "folding"; readonly events: number }
  | {
      readonly kind: "folded";
      readonly deadLetters: readonly ExpectedDeadLetter[];
      readonly someConversation: string;
    }
  | { readonly kind: "reading"; readonly records: number }
  | { readonly kind: "compared"; readonly answer: CompareAnswer };

/** Shares no code with the pipeline. */
export type Reference = {
  folded(): number;
  readonly ready: Promise<Extract<FromWorker, { kind: "folded" }>>;
  compare(request: CompareRequest, onRead: (records: number) => void): Promise<CompareAnswer>;
  stop(): Promise<void>;
};

export const createReference = (settings: ReferenceSettings): Reference => {
  const worker = new Worker(new URL("./reference-worker.ts", import.meta.url), { workerData: settings });
  let events = 0;
  let onReading: (records: number) => void = () => {};
  const ready = Promise.withResolvers<Extract<FromWorker, { kind: "folded" }>>();
  const compared = Promise.withResolvers<CompareAnswer>();
  // Callers await the promises.
  ready.promise.catch(() => {});
  compared.promise.catch(() => {});

  worker.on("message", (message: FromWorker) => {
    switch (message.kind) {
      case "folding":
        events = message.events;
        break;
      case "folded":
        ready.resolve(message);
        break;
      case "reading":
        onReading(message.records);
        break;
      case "compared":
        compared.resolve(message.answer);
        break;
    }
  });
  const fail = (error: unknown): void => {
    ready.reject(error);
    compared.reject(error);
  };
  worker.on("error", fail);
  worker.on("exit", () => fail(new Error("the reference ended before its answer")));

  return {
    folded: () => events,
    ready: ready.promise,
    compare: (request, onRead) => {
      onReading = onRead;
      // A thread, not a window: there is no origin.
      // oxlint-disable-next-line unicorn/require-post-message-target-origin
      worker.postMessage(request);
      return compared.promise;
    },
    stop: async () => {
      await worker.terminate();
    },
  };
};
