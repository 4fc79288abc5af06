import type { GroupProgress } from "@conversation-export/bus";
import { type ListName, MICROS_IN_SECOND } from "@conversation-export/domain";
import { createLoop, type Logger, type Loop, type Metrics } from "@conversation-export/runtime";
import type { WatermarkStore } from "@conversation-export/warehouse";
import type { IngestMetrics } from "../ingest-metrics.ts";
import { advance, type Note } from "./watermark.ts";

type Topic = {
  readonly topic: string;
  readonly list: ListName;
  notes: readonly Note[];
  /** µs. */
  stored: number | undefined;
  saving: Promise<void> | undefined;
  /** null: not known yet, or not given by the brokers. */
  topicId: string | null;
  isIdStored: boolean;
  /** ms since the epoch. */
  createdAnew: number | null;
};

/** Every event before the watermark is readable, except dead letters; any number of processes may advance it. */
export const createWatermarkMonitor = (deps: {
  readonly progress: GroupProgress;
  readonly store: WatermarkStore;
  readonly lists: ReadonlyMap<string, ListName>;
  readonly intervalMs: number;
  readonly metrics: IngestMetrics;
  readonly registry: Metrics;
  readonly log: Logger;
  readonly now: () => number;
}): Loop => {
  const { progress, store, intervalMs, metrics, log, now } = deps;
  const topics: Topic[] = Array.from(deps.lists, ([topic, list]) => ({
    topic,
    list,
    notes: [],
    stored: undefined,
    saving: undefined,
    topicId: null,
    isIdStored: false,
    createdAnew: null,
  }));
  const failing = new Set<string>();
  let loading: Promise<void> | undefined;
  let loaded = false;
  let stopped = false;

  deps.registry.gauge(
    "conversation_export_ingest_watermark_age_seconds",
    "Age of the instant before which everything that reached the bus is readable",
    ["topic"],
    (gauge) => {
      gauge.reset();
      for (const { topic, stored } of topics) {
        if (stored !== undefined) gauge.set({ topic }, now() / 1000 - stored / MICROS_IN_SECOND);
      }
    },
  );
  deps.registry.gauge(
    "conversation_export_ingest_topic_created_anew_timestamp_seconds",
    "When the topic was last found to have been deleted and created anew",
    ["topic"],
    (gauge) => {
      gauge.reset();
      for (const { topic, createdAnew } of topics) {
        if (createdAnew !== null) gauge.set({ topic }, createdAnew / 1000);
      }
    },
  );

  /** Never rejects; logs only the first of consecutive failures. */
  const attempt = async (step: string, topic: string, operation: () => Promise<void>): Promise<void> => {
    const name = `${step} ${topic}`;
    try {
      await operation();
      failing.delete(name);
    } catch (error) {
      if (stopped) return;
      metrics.watermarkFailures.inc({ topic, step });
      if (!failing.has(name)) log.warn({ err: error, topic, step }, "advancing the watermark failed");
      failing.add(name);
    }
  };

  const noteStored = (one: Topic, instant: number): void => {
    one.stored = Math.max(instant, one.stored ?? instant);
  };

  const load = (): Promise<void> =>
    attempt("load", "all", async () => {
      const [instants, identities] = await Promise.all([store.load(), store.loadTopics()]);
      for (const one of topics) {
        const instant = instants[one.list];
        if (instant !== undefined) noteStored(one, instant);
        // Also while the topic or its brokers are away.
        one.createdAnew ??= identities[one.list]?.createdAnew ?? null;
      }
      loaded = true;
    });

  const save = (one: Topic, watermark: number): Promise<void> =>
    attempt("save", one.topic, async () => {
      const isStored = await store.save(one.list, watermark);
      await attempt("ahead", one.topic, async () => {
        if (!isStored) throw new Error("the clock of this process is ahead of the warehouse's");
        noteStored(one, watermark);
      });
    });

  /** Stored as soon as it is known: a process that starts must know under which id was read before. */
  const identify = (one: Topic, topicId: string): Promise<void> =>
    attempt("save", one.topic, async () => {
      one.topicId ??= topicId;
      const known = (await store.loadTopics())[one.list];
      const isAnew = (known?.topicId ?? one.topicId) !== topicId;
      const createdAnew = isAnew ? now() : (known?.createdAnew ?? null);
      if (known?.topicId !== topicId) await store.saveTopic(one.list, { topicId, createdAnew });
      Object.assign(one, { topicId, createdAnew, isIdStored: true });
      if (!isAnew) return;
      log.error(
        { topic: one.topic },
        "the topic was deleted and created anew: it is read from its beginning, and what was not read before is lost",
      );
    });

  const isIdentified = (one: Topic, topicId: string | null): boolean =>
    topicId === null || (one.isIdStored && one.topicId === topicId);

  const look = (one: Topic): Promise<void> =>
    attempt("note", one.topic, async () => {
      // Before the ends, because events that arrive meanwhile may lie behind them.
      const instant = now() * 1000;
      const found = await progress.fetch(one.topic);
      const { notes, watermark } = advance(one.notes, instant, found);
      one.notes = notes;
      if (found.topicId !== null && !isIdentified(one, found.topicId)) await identify(one, found.topicId);
      await loading;
      // No watermark of a topic whose id is not stored.
      if (!loaded || !isIdentified(one, found.topicId)) return;
      if (watermark === undefined || watermark <= (one.stored ?? -1)) return;
      // One save at a time; the next covers a watermark skipped here.
      one.saving ??= save(one, watermark).finally(() => {
        one.saving = undefined;
      });
    });

  const lookAtAll = async (): Promise<void> => {
    if (!loaded) {
      loading ??= load().finally(() => {
        loading = undefined;
      });
    }
    await Promise.all(topics.map(look));
  };

  const watch = createLoop({ turn: lookAtAll, pauseMs: intervalMs });

  return {
    start: async () => {
      await progress.start();
      await watch.start();
    },
    stop: async () => {
      stopped = true;
      // Not awaited: closing the client ends a request to the brokers.
      void watch.stop();
      await progress.stop();
    },
  };
};
