export type { BusEvent, RecordKind } from "./event.ts";
export { loadDialogs } from "./values/load-dialogs.ts";
export { SAMPLE_DEFAULTS, type SampleOptions } from "./options.ts";
export { createSample, type Sample, type SampleTotals } from "./sample.ts";
export type { Dialog } from "./script.ts";
