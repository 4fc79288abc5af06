import type { Metrics } from "@conversation-export/runtime";
import type { PartCount, PartCounts } from "@conversation-export/warehouse";

/** Without an answer the series are absent. */
export const registerPartMetrics = (metrics: Metrics, store: Pick<PartCounts, "read">): void => {
  let asking: Promise<readonly PartCount[]> | undefined;
  // One scrape needs one query.
  const ask = (): Promise<readonly PartCount[]> => {
    asking ??= store
      .read()
      .catch(() => [])
      .finally(() => {
        asking = undefined;
      });
    return asking;
  };
  const gauge = (name: string, help: string, valueOf: (count: PartCount) => number): void => {
    metrics.gauge(name, help, ["table"], async (one) => {
      const counts = await ask();
      one.reset();
      for (const count of counts) one.set({ table: count.table }, valueOf(count));
    });
  };
  gauge("conversation_export_warehouse_parts", "active parts of the table", ({ parts }) => parts);
  gauge(
    "conversation_export_warehouse_partition_parts",
    "active parts of the partition that has the most",
    ({ inFullestPartition }) => inFullestPartition,
  );
  gauge("conversation_export_warehouse_bytes", "bytes of the active parts on disk", ({ bytes }) => bytes);
};
