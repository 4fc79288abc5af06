import type { OpenStep } from "@conversation-export/warehouse";
import type { Call } from "../operations/endpoint.ts";
import type { SendPage } from "../page/send-page.ts";
import { PARQUET_TYPE } from "../page/stream-type.ts";
import { openWindow } from "../page/window-stream.ts";
import { joinFiles } from "./join-files.ts";

/**
 * Answers a call with a whole list as one Parquet file. Its footer tells how many records there are, and the
 * facts given.
 * @throws WarehouseError while nothing has been sent
 */
export const sendParquet = async (
  sendPage: SendPage,
  call: Call,
  open: OpenStep,
  {
    headers,
    facts,
  }: { headers: Record<string, string>; facts: Readonly<Record<string, string | undefined>> },
): Promise<void> => {
  const known = Object.fromEntries(
    Object.entries(facts).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
  const join = joinFiles(() => ({ count: String(join.count()), ...known }));
  const file = await openWindow(open, call, join);
  await sendPage(call, {
    contentType: PARQUET_TYPE,
    isCompressed: true,
    head: "",
    records: file.records,
    rows: file.count,
    tail: () => "",
    headers,
  });
};
