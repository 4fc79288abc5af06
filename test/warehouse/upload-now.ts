import type { WriteTicket } from "@conversation-export/domain";
import type { RunUpload } from "@conversation-export/warehouse";

/** A ticket of the present, judged by whatever. */
export const ticketNow = (): WriteTicket => ({
  stamp: Date.now() * 1000,
  generation: Number.MAX_SAFE_INTEGER,
});

/** Uploads with such a ticket. */
export const uploadNow: RunUpload = (work) => work(ticketNow());
