const [QUOTE, COMMA, BACKSLASH, OPEN, CLOSE] = [34, 44, 92, 123, 125];

/** Of objects with a comma between them; texts keep every character. */
export const splitRecords = (list: string): string[] => {
  const records: string[] = [];
  let depth = 0;
  let start = 0;
  let isText = false;
  for (let at = 0; at < list.length; at += 1) {
    const char = list.charCodeAt(at);
    if (isText) {
      if (char === BACKSLASH) at += 1;
      else if (char === QUOTE) isText = false;
    } else if (char === QUOTE) isText = true;
    else if (char === OPEN) depth += 1;
    else if (char === CLOSE) {
      depth -= 1;
      if (depth > 0) continue;
      records.push(list.slice(start, at + 1));
      start = at + 2;
      if (at + 1 < list.length && list.charCodeAt(at + 1) !== COMMA) throw new Error(`no comma behind ${at}`);
    }
  }
  if (list.length > 0 && start !== list.length + 1)
    throw new Error(`no record at the end: ${list.slice(start, start + 100)}`);
  return records;
};
