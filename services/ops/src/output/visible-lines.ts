import { escapesOf } from "@conversation-export/runtime";

/** Controls but line ends and tabs, marks of direction, halves of surrogate pairs. */
const HIDDEN = /[^\P{C}\n\t]|[\p{Zl}\p{Zp}]/gu;

/** Texts of others must not move the cursor: hidden characters are escaped as in JSON. */
export const visibleLines = (text: string): string => text.replace(HIDDEN, (hidden) => escapesOf(hidden));
