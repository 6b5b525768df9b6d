/**
 * The output streams of one run. Chunks are gathered for a moment, numbered, and kept until the queue confirms that it
 * has written them.
 */
import { memberOf } from '../job/thrown';
import { ConflictError, TocsinError } from '../producer/errors';
import { requireName } from './step-rules';
import { jsonCopy } from './text';
import { Changes } from './timing';
import type { OutputStream } from './types';
import type { StreamMessage, Voice } from './voice';

/** The job has as many streams, or bytes in them, as it may have: 16, and 10 MiB. */
export class StreamFullError extends TocsinError {
  override readonly name: string = 'StreamFullError';
}

/** How long chunks are gathered, ms; or until they have these bytes. */
const GATHER_MS = 50;
const GATHER_BYTES = 32 * 1024;
/** Bytes of one message, unless a single chunk has more. */
const MAX_MESSAGE_BYTES = 512 * 1024;
/** Bytes that are not confirmed; beyond, `write` waits. */
const MAX_UNCONFIRMED = 1024 * 1024;
const MAX_CHUNK_BYTES = 256 * 1024;

/** What writes a stream: a try of a step, or the handler outside of steps. */
type Writer = { readonly step: string } | undefined;

interface Chunk {
  value: unknown;
  bytes: number;
}

class Output implements OutputStream {
  /** From the number {@link #confirmed} on. */
  #chunks: Chunk[] = [];
  #confirmed = 0;
  #sent = 0;
  #bytes = 0;
  #waitingBytes = 0;
  #underWay = 0;
  #isLast = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #failure: { thrown: unknown } | undefined;
  readonly #changes = new Changes();

  constructor(
    private readonly run: { voice: Voice; check(output: Output): void },
    readonly name: string,
    readonly writer: Writer,
    readonly execution: number,
  ) {}

  write = async (chunk: unknown): Promise<void> => {
    this.run.check(this);
    const what = `ctx.stream: a chunk of ${JSON.stringify(this.name)}`;
    const value = jsonCopy(chunk, what);
    if (value === undefined) throw new TypeError(`${what} is undefined; use null`);
    const bytes = new TextEncoder().encode(JSON.stringify(value)).length + 1;
    if (bytes > MAX_CHUNK_BYTES) throw new TypeError(`${what} has ${bytes} bytes; at most ${MAX_CHUNK_BYTES} fit`);
    this.#throwFailure();
    this.#chunks.push({ value, bytes });
    this.#bytes += bytes;
    this.#waitingBytes += bytes;
    if (this.#waitingBytes >= GATHER_BYTES) this.#send();
    else this.#timer ??= setTimeout(() => this.#send(), GATHER_MS);
    await this.#until(() => this.#bytes <= MAX_UNCONFIRMED);
  };

  flush = async (): Promise<void> => {
    const end = this.#confirmed + this.#chunks.length;
    if (this.#confirmed < end) this.#send();
    await this.#until(() => this.#confirmed >= end);
  };

  /** Its writer has ended: everything is written. */
  close(): Promise<void> {
    this.#isLast = true;
    return this.flush();
  }

  /** A later execution of its writer takes its place. */
  abandon(): void {
    this.#stopTimer();
    this.#failure ??= { thrown: new Error(`ctx.stream: another execution writes ${JSON.stringify(this.name)} now`) };
    this.#changes.notify();
  }

  async #until(isSo: () => boolean): Promise<void> {
    while (!this.#failure && !isSo()) await this.#changes.next();
    this.#throwFailure();
  }

  #throwFailure(): void {
    if (this.#failure) throw this.#failure.thrown;
  }

  #stopTimer(): void {
    if (this.#timer !== undefined) clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** Sends what was gathered. A way that keeps no order carries one message at a time. */
  #send(): void {
    this.#stopTimer();
    const { voice } = this.run;
    if (this.#failure || !voice.stream || (this.#underWay > 0 && !voice.keepsOrder?.())) return;
    const first = this.#sent;
    const chunks: unknown[] = [];
    let bytes = 0;
    for (const chunk of this.#chunks.slice(first - this.#confirmed)) {
      bytes += chunk.bytes;
      if (chunks.length > 0 && bytes > MAX_MESSAGE_BYTES) break;
      chunks.push(chunk.value);
    }
    this.#waitingBytes = 0;
    if (chunks.length === 0 && !this.#isLast) return;
    this.#sent += chunks.length;
    const { name, writer, execution } = this;
    const message: StreamMessage = { name, execution, first, chunks, ...writer, ...(this.#isLast && { flush: true }) };
    this.#underWay++;
    const next = first + chunks.length;
    voice.stream(message).then(
      () => this.#took(next),
      (thrown: unknown) => this.#refused(thrown),
    );
    if (this.#sent < this.#confirmed + this.#chunks.length) this.#send();
  }

  #took(next: number): void {
    this.#underWay--;
    for (const { bytes } of this.#chunks.splice(0, Math.max(0, next - this.#confirmed))) this.#bytes -= bytes;
    this.#confirmed = Math.max(this.#confirmed, next);
    this.#goOn();
  }

  /** A queue that lost chunks from its memory gets them again. */
  #refused(thrown: unknown): void {
    this.#underWay--;
    const next = memberOf(memberOf(thrown, 'details'), 'next');
    if (thrown instanceof ConflictError && typeof next === 'number' && next >= this.#confirmed && next < this.#sent) {
      this.#sent = next;
    } else this.#failure ??= { thrown: this.#errorOf(thrown) };
    this.#goOn();
  }

  #goOn(): void {
    if (this.#sent < this.#confirmed + this.#chunks.length && this.#timer === undefined) this.#send();
    this.#changes.notify();
  }

  #errorOf(thrown: unknown): unknown {
    if (!(thrown instanceof TocsinError)) return thrown;
    const { message, status, details } = thrown;
    if ('writer' in details) return new TypeError(`ctx.stream: ${message}`, { cause: thrown });
    return status === 413 && 'limit' in details ? new StreamFullError(message, thrown) : thrown;
  }
}

export class Streams {
  readonly #outputs = new Map<string, Output>();
  #isOver = false;

  /** @param here the try of a step that calls this */
  constructor(
    private readonly voice: Voice,
    private readonly here: () => Writer,
  ) {}

  /** The stream of this name, for the step that calls this, or the handler. @throws {TypeError} for another writer */
  open = (name: string): OutputStream => {
    if (this.#isOver) throw isOver(name);
    requireName('stream', name);
    const writer = this.here();
    const before = this.#outputs.get(name);
    if (before && before.writer?.step !== writer?.step) throw secondWriter(name, before.writer);
    if (before && before.writer === writer) return before;
    before?.abandon();
    const run = { voice: this.voice, check: (output: Output) => this.#check(output) };
    const output = new Output(run, name, writer, before ? before.execution + 1 : 0);
    this.#outputs.set(name, output);
    return output;
  };

  /** Writes all chunks of something that is read, and waits until they are confirmed. */
  pipe = async (name: string, chunks: AsyncIterable<unknown> | ReadableStream<unknown>): Promise<void> => {
    const output = this.open(name);
    const decoder = new TextDecoder();
    for await (const chunk of chunks as AsyncIterable<unknown>) {
      const text = chunk instanceof Uint8Array ? decoder.decode(chunk, { stream: true }) : chunk;
      if (text !== '') await output.write(text);
    }
    const rest = decoder.decode();
    if (rest !== '') await output.write(rest);
    await output.flush();
  };

  /** What a step wrote is there before its record is. @param step absent: all streams, at the end of the run */
  async close(step?: string): Promise<void> {
    const ended = [...this.#outputs.values()].filter(({ writer }) => step === undefined || writer?.step === step);
    await Promise.all(ended.map((output) => output.close()));
  }

  /** Begins nothing more. */
  end(): void {
    this.#isOver = true;
  }

  #check(output: Output): void {
    if (this.#isOver) throw isOver(output.name);
    // The next try of this step would continue what this one wrote.
    if (output.writer === undefined && this.here()) throw secondWriter(output.name, output.writer);
  }
}

const isOver = (name: string) => new Error(`ctx.stream: the run has ended; ${JSON.stringify(name)} was not written`);

function secondWriter(name: string, writer: Writer): TypeError {
  const whose = writer ? `the step ${JSON.stringify(writer.step)}` : 'the handler, outside of steps';
  const hint = 'call ctx.stream where you write, and give each writer a name of its own';
  return new TypeError(`ctx.stream: ${JSON.stringify(name)} belongs to ${whose}; ${hint}`);
}
