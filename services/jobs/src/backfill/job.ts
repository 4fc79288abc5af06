import { createJobStates, runSplitJob } from "@conversation-export/queue";
import {
  createBackfillRuns,
  createLandingStore,
  createRecordReader,
  createRightRows,
  createUnregisteredClientStore,
  createWindowStore,
  createWriter,
  createWrongRows,
} from "@conversation-export/warehouse";
import type { AssembledJob, Shared } from "../process/shared.ts";
import { withinPlaces } from "../sources/allowed-places.ts";
import { createFileSource } from "../sources/file-source.ts";
import { createFolderStore } from "../sources/folder-store.ts";
import { createKafkaSource } from "../sources/kafka-source.ts";
import { createS3Store } from "../sources/s3-store.ts";
import { createAddEvents } from "./add-events.ts";
import { createBackfill } from "./backfill.ts";
import { createCorrectRecords } from "./correct-records.ts";
import { createIngestLag } from "./ingest-lag.ts";
import { createLandingBackfill } from "./landing-backfill.ts";
import { createNoteClients } from "./note-clients.ts";
import { createPreview } from "./preview-rows.ts";
import { createThrottle } from "./throttle.ts";

export const createBackfillJob = (shared: Shared): AssembledJob => {
  const { config, session, redis, bus, gate, runUpload, stable, exclusive, runHolders } = shared;
  const { maxTimeAheadMs } = config;
  const now = Date.now;
  const reader = createRecordReader({ session, holder: runHolders.own });
  const objects = createS3Store(config.s3);
  const kafka = createKafkaSource({
    reader: bus.reader,
    types: bus.types,
    growsInTime: async (topic) =>
      (await bus.admin.topicConfig(topic))["message.timestamp.type"] === "LogAppendTime",
    maxTimeAheadMs,
  });
  const folders = createFolderStore();
  const runs = createBackfillRuns({ session });
  const states = createJobStates({ redis });
  const fromLanding = createLandingBackfill({
    runs,
    wrong: createWrongRows({ session, runUpload, holder: runHolders.own }),
    landing: createLandingStore({ session }),
    stable,
    correct: createCorrectRecords({ runs, rows: createRightRows({ session }), gate, runUpload }),
    exclusive,
    isOver: async (job) => {
      const state = await states.of("backfill", job);
      return state === "completed" || (state === "unknown" && (await runHolders.isOnlyRedis()));
    },
    alive: runHolders.alive,
    typeOf: (topic) => bus.types.get(topic),
    maxTimeAheadMs,
    now,
    elapsed: () => performance.now(),
    partEvents: config.backfillPartEvents,
  });
  const backfill = createBackfill({
    fromLanding,
    windows: createWindowStore({ session, windowSeconds: config.uploadWindow.seconds }),
    exclusive,
    sourceOf: (source) => {
      if (source.kind === "kafka") return kafka;
      const { location } = source;
      const store = withinPlaces(location.startsWith("s3://") ? objects : folders, config.backfillLocations);
      return createFileSource({ location, store, now });
    },
    events: createAddEvents({
      writer: createWriter({ session }),
      gate,
      runUpload,
      preview: createPreview({ reader }),
      noteClients: createNoteClients({ store: createUnregisteredClientStore({ session }), now }),
      landingDays: config.landingDays,
      maxTimeAheadMs,
      now,
    }),
    connected: bus.connected,
    throttle: createThrottle({
      lag: createIngestLag(bus),
    }),
    now,
  });
  return {
    job: runSplitJob(backfill),
    sweep: async () => {
      await fromLanding.sweep();
      await reader.sweep(runHolders.alive);
    },
    parts: [{ name: "objects", start: async () => {}, stop: async () => objects.close() }],
  };
};
