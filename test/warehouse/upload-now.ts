import type { WriteTicket } from "@conversation-export/domain";
import type { RunUpload } from "@conversation-export/warehouse";

export const ticketNow = (): WriteTicket => ({
  stamp: Date.now() * 1000,
  generation: Number.MAX_SAFE_INTEGER,
});

export const uploadNow: RunUpload = (work) => work(ticketNow());
