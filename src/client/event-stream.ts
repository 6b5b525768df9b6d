/** Reads an answer of type `text/event-stream`. */

import { atMost } from '../handler/timing';

export interface StreamMessage {
  id?: string;
  event?: string;
  data?: string;
  /** How long to wait before connecting again, in ms. */
  retry?: number;
}

export class SilentStream extends Error {}

/** Messages until the server ends the stream. @param silentMs the longest time without a byte @throws {SilentStream} */
export async function* messagesOf(body: ReadableStream<Uint8Array>, silentMs: number): AsyncGenerator<StreamMessage> {
  const decoder = new TextDecoder();
  let text = '';
  let fields: StreamMessage = {};
  for await (const chunk of chunksOf(body, silentMs)) {
    text += decoder.decode(chunk, { stream: true });
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
}

function read(line: string, fields: StreamMessage): void {
  const colon = line.indexOf(':');
  const name = colon < 0 ? line : line.slice(0, colon);
  const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
  if (name === 'id') fields.id = value;
  else if (name === 'event') fields.event = value;
  else if (name === 'data') fields.data = fields.data === undefined ? value : `${fields.data}\n${value}`;
  else if (name === 'retry' && /^\d+$/.test(value)) fields.retry = Number(value);
}

/** The chunks of a body. @param silentMs the longest time without one; absent: any @throws {SilentStream} */
export async function* chunksOf(body: ReadableStream<Uint8Array>, silentMs?: number): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  try {
    for (;;) {
      const chunk = reader.read();
      if (silentMs !== undefined && !(await atMost(silentMs, chunk)))
        throw new SilentStream(`Nothing was received for ${silentMs} ms.`);
      const { value, done } = await chunk;
      if (done) return;
      yield value;
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
}
