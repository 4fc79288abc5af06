import { escapesOf } from "@conversation-export/runtime";

/** Controls, marks of direction, halves of surrogate pairs. */
const HIDDEN = /[^\P{C}\n\t]|[\p{Zl}\p{Zp}]/gu;

/** Texts of others must not move the cursor. */
export const visibleLines = (text: string): string => text.replace(HIDDEN, (hidden) => escapesOf(hidden));
