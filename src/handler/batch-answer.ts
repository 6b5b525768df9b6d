/**
 * The answer to a batch. It is one text while it is small. Once the results are many it is sent as they come, so that the
 * Worker does not hold all of them at once, and the queue has those that came even if a later run takes the Worker down.
 */

/** Characters of entries that wait for the others of their batch. */
const MAX_WAITING = 1_048_576;

const START = '{"results":[';
const END = ']}';

/** Answers with all entries; a large answer in the order in which they come. @param entries none may reject */
export async function batchAnswer(entries: readonly Promise<string>[]): Promise<string | ReadableStream<Uint8Array>> {
  const waiting: string[] = [];
  let chars = 0;
  let left = entries.length;
  /** Called when an entry has come that the stream may wait for. */
  let came: () => void = () => undefined;
  const isLarge = new Promise<undefined>((resolve) => {
    for (const entry of entries) {
      void entry.then((text) => {
        waiting.push(text);
        chars += text.length;
        left--;
        if (chars > MAX_WAITING) resolve(undefined);
        came();
      });
    }
  });
  const all = await Promise.race([Promise.all(entries), isLarge]);
  if (all) return `${START}${all.join(',')}${END}`;

  const encoder = new TextEncoder();
  let before = START;
  return new ReadableStream<Uint8Array>({
    async pull(stream) {
      while (waiting.length === 0 && left > 0) await new Promise<void>((resolve) => (came = resolve));
      const text = waiting.shift();
      stream.enqueue(encoder.encode(text === undefined ? END : `${before}${text}`));
      before = ',';
      if (text === undefined) stream.close();
    },
  });
}
