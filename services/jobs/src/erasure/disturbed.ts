import { ServiceError } from "@conversation-export/runtime";

/** Another run, or an operator, came in between: the run is tried again. */
export const disturbed = (message: string): ServiceError =>
  new ServiceError("erasure_disturbed", message, { retryable: true });
