// What tests run against real servers without the process around it.
export { createCorrectRecords } from "./correct-records.ts";
export { createErasure, type ErasureDeps } from "./erasure.ts";
export { createPendingWrites } from "./pending-writes.ts";
export { createWritersConfirmed, type WritersConfirmed } from "./writers-confirmed.ts";
