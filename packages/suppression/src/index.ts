export { createSubjectHash, type SubjectHash } from "./subject-hash.ts";
export {
  createSuppressionGate,
  type SuppressionGate,
  type SuppressionGateDeps,
} from "./suppression-gate.ts";
