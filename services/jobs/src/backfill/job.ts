import { randomUUID } from "node:crypto";
import { topicsByType } from "@conversation-export/domain";
import { runSplitJob } from "@conversation-export/queue";
import {
  BACKFILL_RUN,
  createLandingStore,
  createRecordReader,
  createWindowStore,
  createWriter,
} from "@conversation-export/warehouse";
import type { AssembledJob, Shared } from "../process/shared.ts";
import { withinPlaces } from "../sources/allowed-places.ts";
import { createFolderStore } from "../sources/folder-store.ts";
import { createKafkaSource } from "../sources/kafka-source.ts";
import { createS3Store } from "../sources/s3-store.ts";
import { createSourceOf } from "../sources/source-of.ts";
import { createAddEvents } from "./add-events.ts";
import { createBackfill } from "./backfill.ts";
import { createCorrectRecords } from "./correct-records.ts";
import { createIngestLag } from "./ingest-lag.ts";
import { createPreview } from "./preview-rows.ts";
import { createThrottle } from "./throttle.ts";

/** Assembles the job that computes a window of records anew. */
export const createBackfillJob = (shared: Shared): AssembledJob => {
  const { config, session, bus, gate, pending, exclusive, replacer } = shared;
  const { maxTimeAheadMs } = config;
  const now = Date.now;
  const reader = createRecordReader({ session });
  const objects = createS3Store(config.s3);
  const backfill = createBackfill({
    reader,
    landing: createLandingStore({ session }),
    windows: createWindowStore({ session, windowSeconds: config.uploadWindow.seconds }),
    exclusive,
    correct: createCorrectRecords({ reader, replacer, gate, pending }),
    sourceOf: createSourceOf({
      kafka: createKafkaSource({
        reader: bus.reader,
        topics: topicsByType(config.topics),
        growsInTime: async (topic) =>
          (await bus.admin.topicConfig(topic))["message.timestamp.type"] === "LogAppendTime",
        maxTimeAheadMs,
      }),
      folders: withinPlaces(createFolderStore(), config.backfillLocations),
      objects: withinPlaces(objects, config.backfillLocations),
      now,
    }),
    events: createAddEvents({
      writer: createWriter({ session }),
      gate,
      pending,
      preview: createPreview({ reader, newRun: () => `${BACKFILL_RUN}${randomUUID()}` }),
      landingDays: config.landingDays,
      maxTimeAheadMs,
      now,
    }),
    connected: bus.connected,
    throttle: createThrottle({
      lag: createIngestLag({ progress: bus.progress, topics: bus.topics, connected: bus.connected }),
      now,
    }),
    maxTimeAheadMs,
    partEvents: config.backfillPartEvents,
    now,
  });
  return {
    job: runSplitJob(backfill),
    parts: [{ name: "objects", start: async () => {}, stop: async () => objects.close() }],
  };
};
