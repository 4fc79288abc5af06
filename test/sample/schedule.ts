/** Ties: first in, first out. */
export type Schedule<T> = {
  add(at: number, item: T): void;
  take(until: number): T | undefined;
};

type Waiting<T> = { readonly at: number; readonly order: number; readonly item: T };

export function createSchedule<T>(): Schedule<T> {
  const heap: Waiting<T>[] = [];
  let added = 0;

  const isBefore = (a: Waiting<T>, b: Waiting<T>): boolean =>
    a.at < b.at || (a.at === b.at && a.order < b.order);

  const siftUp = (start: number, moved: Waiting<T>): void => {
    let at = start;
    while (at > 0) {
      const above = (at - 1) >> 1;
      const parent = heap[above];
      if (parent === undefined || !isBefore(moved, parent)) break;
      heap[at] = parent;
      at = above;
    }
    heap[at] = moved;
  };

  const siftDown = (moved: Waiting<T>): void => {
    let at = 0;
    for (;;) {
      const left = heap[2 * at + 1];
      const right = heap[2 * at + 2];
      if (left === undefined) break;
      const useRight = right !== undefined && isBefore(right, left);
      const child = useRight ? right : left;
      if (!isBefore(child, moved)) break;
      heap[at] = child;
      at = 2 * at + (useRight ? 2 : 1);
    }
    heap[at] = moved;
  };

  return {
    add: (at, item) => {
      siftUp(heap.length, { at, order: added, item });
      added += 1;
    },
    take: (until) => {
      const first = heap[0];
      if (first === undefined || first.at > until) return undefined;
      const last = heap.pop();
      if (last !== undefined && heap.length > 0) siftDown(last);
      return first.item;
    },
  };
}
