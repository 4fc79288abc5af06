import { ServiceError } from "@conversation-export/runtime";

/** Throws `offset_range` beyond 2^53 - 1. */
export const toOffset = (given: string | bigint): number => {
  const offset = Number(given);
  if (Number.isSafeInteger(offset)) return offset;
  throw new ServiceError("offset_range", `offset ${given} is not a safe integer`);
};
