import { type Rejected, rejected } from "../event/outcome.ts";
import { MAX_ID_LENGTH } from "./schemas.ts";

/**
 * Refuses an id of a person that no request for erasure could name, as it would be stored for good. null: it can be
 * named, or is none.
 */
export const unnameable = (field: string, id: string | null | undefined): Rejected | null =>
  id == null || id.length <= MAX_ID_LENGTH
    ? null
    : rejected("invalid_record", `${field} has more than ${MAX_ID_LENGTH} characters`);
