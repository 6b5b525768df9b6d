/**
 * The answer to a batch. It is one text while it is small and no message was sent before its end. Otherwise it is
 * streamed: the Worker does not hold all results at once, and runs can send messages while others continue. The queue
 * also has the earlier results if a later run takes the Worker down.
 */
import { type LiveConnection, MessageBuffer } from './live-connection';

/** Characters of entries that wait for the others of their batch. */
const MAX_WAITING = 1_048_576;

const START = '{"results":[';
const END = ']}';

/** The body of an answer, and whether it is lines. */
export interface BatchBody {
  body: string | ReadableStream<Uint8Array>;
  isLines: boolean;
}

/**
 * Answers with all entries; what is sent early is in the order in which it comes.
 * @param entries none may reject
 * @param line of an open call: what is sent early is lines, what was said among them
 */
export async function batchAnswer(entries: readonly Promise<string>[], line?: LiveConnection): Promise<BatchBody> {
  const outbox = line?.outbox ?? new MessageBuffer();
  let chars = 0;
  let left = entries.length;
  if (left === 0) outbox.end();
  const isLarge = new Promise<undefined>((resolve) => {
    for (const entry of entries) {
      void entry.then((text) => {
        outbox.push(text);
        chars += text.length;
        if (chars > MAX_WAITING) resolve(undefined);
        if (--left === 0) outbox.end();
      });
    }
  });
  const all = await Promise.race([Promise.all(entries), isLarge, ...(line ? [line.spoken] : [])]);
  if (all && !line?.hasSpoken) return { body: `${START}${all.join(',')}${END}`, isLines: false };
  return { body: line ? linesOf(outbox, line) : listOf(outbox), isLines: line !== undefined };
}

/** Each text a line, sent as soon as it is there. */
function linesOf(outbox: MessageBuffer, line: LiveConnection): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>({
    async pull(stream) {
      const text = await outbox.next();
      if (text === undefined) stream.close();
      else stream.enqueue(new TextEncoder().encode(`${text}\n`));
    },
    cancel: () => line.lose(),
  });
}

/** The texts as the entries of one list. */
function listOf(outbox: MessageBuffer): ReadableStream<Uint8Array> {
  let before = START;
  return new ReadableStream<Uint8Array>({
    async pull(stream) {
      const text = await outbox.next();
      stream.enqueue(new TextEncoder().encode(text === undefined ? END : `${before}${text}`));
      before = ',';
      if (text === undefined) stream.close();
    },
  });
}
