export {
  checksum,
  type ExportedRecord,
  normaliseExported,
  normalisePage,
  pickFields,
  windowCreated,
  windowUpdated,
} from "./compare.ts";
export type { Delivered, RejectionReason } from "./delivered.ts";
export {
  type ExpectedRecord,
  type ExpectedRecords,
  fold,
  type Folded,
  type Rejection,
  type Topics,
} from "./fold.ts";
export { LEGACY_FIELDS } from "./legacy-fields.ts";
