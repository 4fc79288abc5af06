import type { Session } from "../session/session.ts";

/** Also those of dead processes. @throws WarehouseError */
export const deletionsUnderWay = async (
  session: Pick<Session, "rows" | "names">,
  tables: readonly string[],
  options: { readonly mark?: string; readonly signal?: AbortSignal | undefined } = {},
): Promise<readonly { readonly failing: boolean }[]> => {
  const { mark = "", signal } = options;
  const rows = await session.rows<{ failing: number | boolean }>(
    "deletion.under_way",
    // A lightweight DELETE is stored as an update of `_row_exists`.
    `SELECT latest_fail_reason != '' AS failing FROM ${session.names.system("mutations")}
      WHERE database = currentDatabase() AND NOT is_done AND table IN {tables:Array(String)}
        AND (position(command, 'DELETE') > 0 OR position(command, '_row_exists') > 0)
        AND position(command, {mark:String}) > 0`,
    { parameters: { tables: tables.map(session.names.local), mark }, signal },
  );
  return rows.map(({ failing }) => ({ failing: Boolean(failing) }));
};
