export { createSubjectHash, type SubjectHash } from "./subject-hash.ts";
export {
  createSuppressionGate,
  type SuppressionGate,
  type SuppressionGateDeps,
  type Ticket,
} from "./suppression-gate.ts";
