/** Pieces of at most `most` items, whose sizes add up to at most `room`, or of one larger item. */
export const piecesOf = <T>(
  items: readonly T[],
  { most = Infinity, room, sizeOf }: { most?: number; room: number; sizeOf: (item: T) => number },
): T[][] => {
  const pieces: T[][] = [];
  let left = 0;
  for (const item of items) {
    const size = sizeOf(item);
    let piece = pieces.at(-1);
    if (piece === undefined || piece.length >= most || size > left) {
      piece = [];
      pieces.push(piece);
      left = room;
    }
    piece.push(item);
    left -= size;
  }
  return pieces;
};
