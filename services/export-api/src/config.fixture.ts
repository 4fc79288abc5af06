export const REQUIRED = {
  CLICKHOUSE_URL: "http://reader:secret@127.0.0.1:8123/export",
  CLICKHOUSE_LOOKUP_URL: "http://lookup:secret@127.0.0.1:8123/export",
  CLICKHOUSE_INTAKE_URL: "http://intake:secret@127.0.0.1:8123/export",
  REDIS_URL: "redis://127.0.0.1:6379",
  KAFKA_BROKERS: "127.0.0.1:9092",
  CURSOR_SECRET: "a secret of the tests, 32 characters long",
};
