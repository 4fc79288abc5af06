import type { BackfillSource } from "@conversation-export/queue";
import type { EventSource } from "./event-source.ts";
import { createFileSource } from "./file-source.ts";
import type { FileStore } from "./file-store.ts";

export const createSourceOf =
  (deps: {
    readonly kafka: EventSource;
    readonly folders: FileStore;
    readonly objects: FileStore;
    readonly now: () => number;
  }) =>
  (source: Exclude<BackfillSource, { kind: "landing" }>): EventSource => {
    if (source.kind === "kafka") return deps.kafka;
    const { location } = source;
    const store = location.startsWith("s3://") ? deps.objects : deps.folders;
    return createFileSource({ location, store, now: deps.now });
  };
