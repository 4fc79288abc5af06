import type { RunUpload } from "@conversation-export/warehouse";

/** Uploads at once, without asking for leave. */
export const uploadNow: RunUpload = (work) => {
  const now = Date.now();
  return work({ notAfter: now + 60_000, uploadFrom: 0, uploadedAt: now * 1000 });
};
