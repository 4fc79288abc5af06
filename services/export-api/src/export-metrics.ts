import type { Metrics } from "@conversation-export/runtime";
import type { Slots } from "./admission/slots.ts";

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

export type ExportMetrics = ReturnType<typeof createExportMetrics>;

/** Labels never come from a request, except ids of registered clients. */
export const createExportMetrics = (metrics: Metrics, slots: Pick<Slots, "waiting">) => ({
  requests: metrics.counter(
    "conversation_export_api_requests_total",
    "Requests answered, by route, method and status.",
    ["route", "method", "status"],
  ),
  seconds: metrics.histogram(
    "conversation_export_api_request_seconds",
    "From the request to the last byte of its answer.",
    ["route"],
    SECONDS,
  ),
  firstByteSeconds: metrics.histogram(
    "conversation_export_api_first_byte_seconds",
    "From the request to the first byte of a page.",
    ["route"],
    SECONDS,
  ),
  bytes: metrics.counter("conversation_export_api_page_bytes_total", "Bytes of pages, by route and client.", [
    "route",
    "client",
  ]),
  pagesInFlight: metrics.gauge("conversation_export_api_pages_in_flight", "Pages being read or written."),
  pagesWaiting: metrics.gauge(
    "conversation_export_api_pages_waiting",
    "Requests that wait for a slot.",
    [],
    (gauge) => gauge.set(slots.waiting),
  ),
  brokenPages: metrics.counter(
    "conversation_export_api_broken_pages_total",
    "Pages that began and did not end whole.",
    ["reason"],
  ),
  repeatedPages: metrics.counter(
    "conversation_export_api_repeated_pages_total",
    "First pages sent again to a client that repeats its request and follows no link, by list and client.",
    ["list", "client"],
  ),
  refusedConnections: metrics.counter(
    "conversation_export_api_connections_refused_total",
    "Connections closed at once, since there were as many as allowed.",
  ),
  errors: metrics.counter("conversation_export_api_errors_total", "Answers with an error_id, by status.", [
    "status",
  ]),
  keyLookups: metrics.counter(
    "conversation_export_api_key_lookups_total",
    "Keys checked, by where the answer came from.",
    ["result"],
  ),
  authFailures: metrics.counter(
    "conversation_export_api_auth_failures_total",
    "Failed authentications, however they were answered, by result.",
    ["result"],
  ),
  keyLoads: metrics.counter(
    "conversation_export_api_known_key_loads_total",
    "Loads of the hashes of valid keys.",
    ["result"],
  ),
});
