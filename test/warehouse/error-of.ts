import { WarehouseError } from "@conversation-export/warehouse";

export async function errorOf(promise: Promise<unknown>): Promise<WarehouseError> {
  const error = await promise.then(
    () => new Error("no error"),
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof WarehouseError)) throw new Error("not a WarehouseError", { cause: error });
  return error;
}
