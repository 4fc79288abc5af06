export { createSubjectHash, type SubjectHash } from "./subject-hash.ts";
export {
  createSuppressionGate,
  type SuppressionGate,
} from "./suppression-gate.ts";
