import type { SuppressionGate } from "@conversation-export/suppression";

/** Keeps the records of erased persons out. */
export type ErasureGate = Pick<SuppressionGate, "ticket" | "judgement" | "suspects" | "suppresses">;
