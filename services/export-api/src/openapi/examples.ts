export const REQUEST = {
  request_id: "5f2d0c1b7a9e4d3c8b6a5f4e3d2c1b0a-0",
  type: "ERASURE",
  status: "completed",
  received_at: "2026-10-20T09:30:00.000000+00:00",
  updated_at: "2026-10-20T09:34:12.000000+00:00",
};
export const DEADLINE = "2026-10-23T09:30:00.000000+00:00";

export const DELETED_AT = "2026-10-20T10:00:00.000000+00:00";
export const WATERMARK = "2026-10-20T10:30:00.000000Z";
/** Only looks like a cursor; no service takes it. */
export const CURSOR =
  "q3fW1Yk0nV8mC2tLxZ5dJbQe7RhUoIaPsGvK4y9NwTEyMzQ1Njc4OTBhYmNkZWYwMWMxOjE3NjA5NTYyMDAwMDAwMDA6MTc2MDkyMDAwMDAwMDAwMDo";
