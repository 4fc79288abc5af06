import type { Session } from "./session.ts";

/** ClickHouse's clock, ms. @throws WarehouseError */
export const readServerTime = async (session: Session): Promise<number> => {
  const query = "SELECT toString(toUnixTimestamp64Milli(now64(3))) AS ms";
  const [row] = await session.rows<{ ms: string }>("session.clock", query);
  if (row === undefined) throw new Error("a SELECT without a row");
  return Number(row.ms);
};
