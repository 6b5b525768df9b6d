/** The body of an open call: the batch, then messages to the handler. Only for targets that announce `control`. */

import type { ErrorData } from '../job/errors';

/** The header that tells the library to read line by line. */
export const CONTROL_HEADER = 'Tocsin-Control';

export class ControlStream {
  readonly body: ReadableStream;
  private readonly writer: WritableStreamDefaultWriter;

  constructor(batch: string) {
    const { readable, writable } = new IdentityTransformStream();
    this.body = readable;
    this.writer = writable.getWriter();
    void this.write(batch);
  }

  cancel(deliveryId: string): void {
    void this.write(JSON.stringify({ cancel: deliveryId }));
  }

  /** The reply to a message of the handler. @returns when the handler has read it, or will not */
  reply(call: number, said: { value?: unknown } | { error: ErrorData }): Promise<void> {
    return this.write(JSON.stringify({ reply: call, ...('error' in said ? { error: shown(said.error) } : said) }));
  }

  close(): void {
    this.writer.close().catch(() => undefined);
  }

  // A handler that is gone cannot be notified, and its call ends by itself.
  private write(line: string): Promise<void> {
    return this.writer.write(new TextEncoder().encode(`${line}\n`)).catch(() => undefined);
  }
}

function shown({ code, type, message, retryable, details }: ErrorData): object {
  return { code, type: type ?? code, message, retryable, ...(details && { details }) };
}
