/** Reads an answer of type `text/event-stream`. */

export interface StreamMessage {
  id?: string;
  data?: string;
  /** How long to wait before connecting again, in ms. */
  retry?: number;
}

/** Nothing, not even a sign of life, came for too long. */
export class SilentStream extends Error {}

/**
 * Messages as they arrive, until the server ends the stream. @param silentMs the longest time without a byte
 * @throws {SilentStream} and whatever the connection fails with
 */
export async function* messagesOf(body: ReadableStream<Uint8Array>, silentMs: number): AsyncGenerator<StreamMessage> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = '';
  let fields: StreamMessage = {};
  try {
    for (;;) {
      const { value, done } = await inTime(reader.read(), silentMs);
      if (done) return;
      text += decoder.decode(value, { stream: true });
      const lines = text.split('\n');
      text = lines.pop() ?? '';
      for (const line of lines.map((each) => (each.endsWith('\r') ? each.slice(0, -1) : each))) {
        if (line !== '') read(line, fields);
        else {
          yield fields;
          fields = {};
        }
      }
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

function read(line: string, fields: StreamMessage): void {
  const colon = line.indexOf(':');
  const name = colon < 0 ? line : line.slice(0, colon);
  const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
  if (name === 'id') fields.id = value;
  else if (name === 'data') fields.data = fields.data === undefined ? value : `${fields.data}\n${value}`;
  else if (name === 'retry' && /^\d+$/.test(value)) fields.retry = Number(value);
}

async function inTime<T>(promise: Promise<T>, ms: number): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const silence = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new SilentStream(`Nothing was received for ${ms} ms.`)), ms);
  });
  try {
    return await Promise.race([promise, silence]);
  } finally {
    if (timer !== undefined) clearTimeout(timer);
  }
}
