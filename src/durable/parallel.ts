/** Runs `task` over `items`, at most `width` at a time; results keep the order of the items. */
export async function inParallel<T, R>(
  items: readonly T[],
  task: (item: T) => Promise<R>,
  width: number = 20,
): Promise<R[]> {
  const results: R[] = [];
  for (let at = 0; at < items.length; at += width) {
    results.push(...(await Promise.all(items.slice(at, at + width).map(task))));
  }
  return results;
}
