import type { Session } from "../session/session.ts";
import { WarehouseError } from "../session/warehouse-error.ts";

/** In the order of the names; asks again for missing ones: a migration may add some. @throws WarehouseError */
export const createColumnTypes = ({ session }: { readonly session: Session }) => {
  const known = new Map<string, ReadonlyMap<string, string>>();

  const typesIn = (table: string, columns: readonly string[]): string[] | undefined => {
    const types = columns.map((name) => known.get(table)?.get(name));
    return types.every((type) => type !== undefined) ? types : undefined;
  };

  return async (table: string, columns: readonly string[], signal?: AbortSignal): Promise<string[]> => {
    const types = typesIn(table, columns);
    if (types !== undefined) return types;
    const rows = await session.rows<{ name: string; type: string }>(
      "records.columns",
      "SELECT name, type FROM system.columns WHERE database = currentDatabase() AND table = {table:String}",
      { parameters: { table }, signal },
    );
    known.set(table, new Map(rows.map(({ name, type }) => [name, type])));
    const asked = typesIn(table, columns);
    if (asked !== undefined) return asked;
    throw new WarehouseError("warehouse_unavailable", "NO_SUCH_COLUMN_IN_TABLE", true, undefined);
  };
};
