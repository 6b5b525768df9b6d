/** Reads answers within bounds: an object has 128 MB for all its calls together. */

/** Bytes of one text, or of one entry in the answer to a batch, that are held. A result may have 1 MiB of them. */
export const MAX_TEXT_BYTES = 4 * 1024 * 1024;

/** Bytes of an entry that is too long to be held that are kept, to see which delivery it is about. */
const HEAD_BYTES = 1024;

/** Bytes of the first read: most answers have no more. */
const FIRST_BYTES = 16 * 1024;
const NEXT_BYTES = 64 * 1024;

export class BodyReader {
  private readonly reader: ReadableStreamBYOBReader;

  constructor(body: ReadableStream<Uint8Array>) {
    this.reader = body.getReader({ mode: 'byob' });
  }

  /** The beginning: more than `maxBytes`, or the whole. */
  async start(maxBytes: number): Promise<{ chunks: Uint8Array[]; isWhole: boolean }> {
    const chunks: Uint8Array[] = [];
    for (let bytes = 0, wanted = FIRST_BYTES; bytes <= maxBytes; wanted = NEXT_BYTES) {
      const { value } = await this.reader.readAtLeast(wanted, new Uint8Array(wanted));
      if (value) chunks.push(value);
      bytes += value?.length ?? 0;
      // A read that was not filled reached the end.
      if ((value?.length ?? 0) < wanted) return { chunks, isWhole: true };
    }
    return { chunks, isWhole: false };
  }

  async next(): Promise<Uint8Array | undefined> {
    const { done, value } = await this.reader.read(new Uint8Array(NEXT_BYTES));
    return done ? undefined : value;
  }

  cancel(): void {
    this.reader.cancel().catch(() => undefined);
  }
}

/** The body as text; what is beyond `maxBytes` is left out. */
export async function readText(
  { body }: Response,
  maxBytes = MAX_TEXT_BYTES,
): Promise<{ text: string; isWhole: boolean }> {
  if (body === null) return { text: '', isWhole: true };
  const reader = new BodyReader(body);
  const { chunks, isWhole } = await reader.start(maxBytes);
  if (!isWhole) reader.cancel();
  return { text: textOf(chunks), isWhole };
}

/** The text of some bytes; half a character at the end is left out. */
export function textOf(chunks: readonly Uint8Array[]): string {
  const decoder = new TextDecoder();
  if (chunks.length === 1) return decoder.decode(chunks[0], { stream: true });
  return chunks.map((chunk) => decoder.decode(chunk, { stream: true })).join('');
}

/** An entry of `results`: its text, or the beginning of one that was too long to be held. */
export interface EntryText {
  text: string;
  isWhole: boolean;
}

class HeldText {
  private buffer = new Uint8Array(0);
  private held = 0;
  private isWhole = true;

  get isEmpty(): boolean {
    return this.held === 0;
  }

  /** Of a text that is too long only the beginning stays. */
  hold(bytes: Uint8Array): void {
    if (!this.isWhole) return;
    const fits = this.held + bytes.length <= MAX_TEXT_BYTES;
    const room = fits ? bytes.length : Math.max(0, HEAD_BYTES - this.held);
    const length = fits ? this.held + room : Math.min(this.held + room, HEAD_BYTES);
    if (length > this.buffer.length) {
      const larger = new Uint8Array(2 * length);
      larger.set(this.buffer.subarray(0, this.held));
      this.buffer = larger;
    }
    this.buffer.set(bytes.subarray(0, room), this.held);
    this.held = length;
    this.isWhole = fits;
  }

  /** The text with its last piece; the next one begins. */
  take(last: Uint8Array): EntryText {
    this.hold(last);
    const entry = { text: textOf([this.buffer.subarray(0, this.held)]), isWhole: this.isWhole };
    this.buffer = new Uint8Array(0);
    this.held = 0;
    this.isWhole = true;
    return entry;
  }
}

const [QUOTE, BACKSLASH, OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x22, 0x5c, 0x5b, 0x5d, 0x7b, 0x7d];
const RESULTS = [...new TextEncoder().encode('results')];

/** Finds the unvalidated entries of `{"results": [{…}, …]}` in byte chunks: the marks of JSON are single bytes. */
export class EntryScanner {
  sawResults = false;
  private depth = 0;
  private inString = false;
  private escaped = false;
  private inResults = false;
  /** The last text at the top level of the outermost object. */
  private name: number[] = [];
  private readonly entry = new HeldText();
  private inEntry = false;

  /** Takes the next bytes. @returns the entries that they complete */
  push(chunk: Uint8Array): EntryText[] {
    const entries: EntryText[] = [];
    let start = 0;
    for (let i = 0; i < chunk.length; i++) {
      const byte = chunk[i] as number;
      if (this.inString) this.inText(byte);
      else if (byte === QUOTE) {
        this.inString = true;
        this.name = [];
      } else if (byte === OPEN_OBJECT || byte === OPEN_LIST) {
        if (this.opens(byte)) start = i;
      } else if (byte === CLOSE_OBJECT || byte === CLOSE_LIST) {
        if (this.closes()) entries.push(this.entry.take(chunk.subarray(start, i + 1)));
      }
    }
    if (this.inEntry) this.entry.hold(chunk.subarray(start));
    return entries;
  }

  private inText(byte: number): void {
    if (this.escaped) this.escaped = false;
    else if (byte === BACKSLASH) this.escaped = true;
    else if (byte === QUOTE) {
      this.inString = false;
      return;
    }
    if (this.depth === 1 && this.name.length <= RESULTS.length) this.name.push(byte);
  }

  private opens(byte: number): boolean {
    this.depth++;
    if (this.inResults) {
      if (this.depth !== 3) return false;
      this.inEntry = true;
      return true;
    }
    if (this.depth === 2 && byte === OPEN_LIST && RESULTS.every((each, at) => this.name[at] === each)) {
      this.inResults = this.name.length === RESULTS.length;
      this.sawResults ||= this.inResults;
    }
    return false;
  }

  private closes(): boolean {
    this.depth--;
    if (this.depth === 1) this.inResults = false;
    if (!this.inEntry || this.depth !== 2) return false;
    this.inEntry = false;
    return true;
  }
}

const LINE_FEED = 0x0a;

/** Finds the lines in chunks of bytes as they arrive, each as soon as it is whole. */
export class LineScanner {
  private readonly line = new HeldText();

  /** Takes the next bytes. @returns the lines that they complete */
  push(chunk: Uint8Array): EntryText[] {
    const lines: EntryText[] = [];
    let start = 0;
    for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, start)) {
      lines.push(this.line.take(chunk.subarray(start, end)));
      start = end + 1;
    }
    this.line.hold(chunk.subarray(start));
    return lines;
  }

  /** The text has ended: what came after the last line feed. */
  end(): EntryText[] {
    return this.line.isEmpty ? [] : [this.line.take(new Uint8Array(0))];
  }
}
