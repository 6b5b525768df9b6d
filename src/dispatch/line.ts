/**
 * The body of a call that stays open while the call runs: its first line is the batch, each later line is something that
 * the handler library must hear meanwhile. Only targets that announce `control` are called so.
 */

/** The header that tells the library to read line by line. */
export const CONTROL_HEADER = 'Tocsin-Control';

export class CallLine {
  readonly body: ReadableStream;
  private readonly writer: WritableStreamDefaultWriter;

  constructor(batch: string) {
    const { readable, writable } = new IdentityTransformStream();
    this.body = readable;
    this.writer = writable.getWriter();
    this.write(batch);
  }

  /** The job of this delivery was cancelled. */
  cancel(deliveryId: string): void {
    this.write(JSON.stringify({ cancel: deliveryId }));
  }

  /** The answer has come, or nobody waits for it any more. */
  close(): void {
    this.writer.close().catch(() => undefined);
  }

  // A handler that is gone cannot be told anything, and its call ends by itself.
  private write(line: string): void {
    this.writer.write(new TextEncoder().encode(`${line}\n`)).catch(() => undefined);
  }
}
