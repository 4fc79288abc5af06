import type { Metrics } from "@conversation-export/runtime";

export const createIngestMetrics = (metrics: Metrics) => ({
  consumed: metrics.counter(
    "conversation_export_ingest_records_consumed_total",
    "Messages taken from the bus",
    ["topic"],
  ),
  written: metrics.counter(
    "conversation_export_ingest_rows_written_total",
    "Rows that ClickHouse acknowledged",
    ["table"],
  ),
  rejected: metrics.counter(
    "conversation_export_ingest_records_rejected_total",
    "Records sent to the dead letters",
    ["topic", "reason"],
  ),
  schemaPrefixes: metrics.counter(
    "conversation_export_ingest_schema_prefixes_total",
    "Messages whose value begins with the id of a schema, which is left out",
    ["topic"],
  ),
  unknownFields: metrics.counter(
    "conversation_export_ingest_unknown_fields_total",
    "Fields that were dropped as unknown",
    ["topic", "field"],
  ),
  nonstandardValues: metrics.counter(
    "conversation_export_ingest_nonstandard_values_total",
    "Values outside their documented set, kept, and fields with half a surrogate pair, replaced",
    ["topic", "field"],
  ),
  ignored: metrics.counter(
    "conversation_export_ingest_records_ignored_total",
    "Messages that carry nothing to store",
    ["topic", "reason"],
  ),
  batchRecords: metrics.histogram(
    "conversation_export_ingest_batch_records",
    "Records a batch",
    ["topic"],
    [1, 10, 100, 1_000, 5_000, 10_000, 20_000, 50_000],
  ),
  batchAge: metrics.histogram(
    "conversation_export_ingest_batch_age_seconds",
    "From the first record of a batch to its commit",
    ["topic"],
    [0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 300],
  ),
  insert: metrics.histogram(
    "conversation_export_ingest_insert_seconds",
    "Time of one acknowledged INSERT",
    ["table"],
    [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
  ),
  stampedAnew: metrics.counter(
    "conversation_export_ingest_uploads_stamped_anew_total",
    "Batches that were begun again with another stamp, since readers had passed it or an erasure was not known",
    [],
  ),
  retries: metrics.counter(
    "conversation_export_ingest_flush_retries_total",
    "Attempts that failed and are repeated",
    ["step", "code"],
  ),
  commits: metrics.counter("conversation_export_ingest_commits_total", "Offset commits by result", [
    "result",
  ]),
  lag: metrics.gauge(
    "conversation_export_ingest_lag_records",
    "Records on the bus that are not committed yet",
    ["topic", "partition"],
  ),
  watermarkFailures: metrics.counter(
    "conversation_export_ingest_watermark_failures_total",
    "Requests for the watermarks that failed",
    ["topic", "step"],
  ),
  unregistered: metrics.counter(
    "conversation_export_ingest_unregistered_client_records_total",
    "Records of clients that are not registered, which nobody can read",
    ["topic"],
  ),
  lagUnknown: metrics.gauge(
    "conversation_export_ingest_lag_unknown",
    "1 while the lag of a partition is unknown",
    ["topic", "partition"],
  ),
});

export type IngestMetrics = ReturnType<typeof createIngestMetrics>;
