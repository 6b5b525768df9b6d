/**
 * What the queue says while a batch runs. A call with the header {@link CONTROL_HEADER} has a body of lines: the first
 * is the batch, and the body stays open. A later line `{"cancel": "<delivery id>"}` says that this job was cancelled,
 * and `{"reply": n, …}` answers what a run said on its {@link LiveConnection}.
 */
import { LiveConnection } from './live-connection';
import { isObject } from './protocol';

/** Its presence says that the body is lines. */
export const CONTROL_HEADER = 'Tocsin-Control';

/** Longest line after the first, in characters: a reply may hold the result of a step, or a job. */
const MAX_LINE = 4_194_304;
/** Cancellations that are remembered for runs that have not begun. */
const MAX_EARLY = 1_000;

/** The job was cancelled while it ran: the reason of `ctx.signal`. */
export class CancelledError extends Error {
  static {
    // A minifier renames the class, and the name is all that a handler sees.
    Object.defineProperty(CancelledError.prototype, 'name', { value: 'CancelledError', configurable: true });
  }
}

type Stop = (reason: CancelledError) => void;

export class Control {
  readonly #running = new Map<string, Stop>();
  readonly #early = new Set<string>();
  readonly line = new LiveConnection();

  /** Calls `stop` when the job of this delivery is cancelled. @returns ends that */
  onCancel(deliveryId: string | undefined, stop: Stop): () => void {
    if (deliveryId === undefined) return () => undefined;
    this.#running.set(deliveryId, stop);
    if (this.#early.has(deliveryId)) this.cancel(deliveryId);
    return () => void this.#running.delete(deliveryId);
  }

  cancel(deliveryId: string): void {
    const stop = this.#running.get(deliveryId);
    if (stop) stop(new CancelledError('The job was cancelled.'));
    else if (this.#early.size < MAX_EARLY) this.#early.add(deliveryId);
  }

  /** Takes a line. One that says nothing known is left to a later version of this library. */
  hear(line: string): void {
    try {
      const message: unknown = JSON.parse(line);
      if (!isObject(message)) return;
      if (typeof message.cancel === 'string') this.cancel(message.cancel);
      if (typeof message.reply === 'number') this.line.hear(message);
    } catch {
      // Not JSON: nothing was said.
    }
  }
}

/** Reads the body of a delivery, and continues listening where it stays open. @throws what reading the body throws */
export async function readCall(request: Request): Promise<{ body: string; control?: Control }> {
  if (request.body === null || !request.headers.has(CONTROL_HEADER)) return { body: await request.text() };
  const lines = linesOf(request.body);
  const first = await lines.next();
  const control = new Control();
  void listen(lines, control);
  return { body: first.value ?? '', control };
}

async function listen(lines: AsyncGenerator<string, void>, control: Control): Promise<void> {
  try {
    for await (const line of lines) control.hear(line);
  } catch {
    // The caller hung up, which the request's own signal tells.
  } finally {
    control.line.lose();
  }
}

/** The lines of a body; it ends before a later line that is too long. */
async function* linesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string, void> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let parts: string[] = [];
  let chars = 0;
  let limit = Number.POSITIVE_INFINITY;
  for (;;) {
    const { done, value } = await reader.read();
    const [head = '', ...rest] = decoder.decode(value, { stream: !done }).split('\n');
    parts.push(head);
    chars += head.length;
    for (const next of rest) {
      yield parts.join('');
      limit = MAX_LINE;
      parts = [next];
      chars = next.length;
    }
    if (done && chars > 0) yield parts.join('');
    if (done || chars > limit) return;
  }
}
