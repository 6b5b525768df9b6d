/** Reading an output stream of a job. */
import { orThrow } from '../job/thrown';
import { malformed, member } from './answers';
import type { StreamMessage } from './event-stream';
import { type Following, type FollowOptions, received } from './follow';
import { pathTo } from './requests';

export interface StreamOptions extends FollowOptions {
  /** The place of a chunk: continue after it. Default: from the beginning. */
  after?: string | undefined;
}

/** A chunk of an output stream. */
export interface StreamChunk<T = unknown> {
  data: T;
  /** The writer executes again: the stream has only what follows from this chunk on. */
  isReset: boolean;
  /** The place of the chunk, to continue after it. */
  id: string;
}

/** An output stream of a job, to be read once: by `for await`, or as a `ReadableStream`. */
export class JobStream<T = unknown> implements AsyncIterable<StreamChunk<T>> {
  readonly #following: Following;

  /** @internal */
  constructor(
    following: Following,
    private readonly id: string,
    private readonly name: string,
    private readonly options: StreamOptions,
  ) {
    this.#following = following;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<StreamChunk<T>> {
    yield* this.#chunks(this.#following);
  }

  /** As a stream: of chunks, or with the format `sse` of bytes for a `Response` of type `text/event-stream`. */
  readable(options: { format: 'sse' }): ReadableStream<Uint8Array>;
  readable(options?: { format?: undefined }): ReadableStream<StreamChunk<T>>;
  readable({ format }: { format?: 'sse' | undefined } = {}): ReadableStream<Uint8Array | StreamChunk<T>> {
    const stop = new AbortController();
    const { open, retrier } = this.#following;
    const signal = AbortSignal.any([stop.signal, ...(retrier.signal ? [retrier.signal] : [])]);
    const stoppable: Following = {
      open: (path, headers, own) => open(path, headers, AbortSignal.any([own, stop.signal])),
      retrier: { ...retrier, signal },
    };
    const items: AsyncGenerator<Uint8Array | StreamChunk<T>> =
      format === 'sse' ? this.#bytes(stoppable) : this.#chunks(stoppable);
    return new ReadableStream({
      async pull(controller) {
        const { value, done } = await items.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      cancel: () => stop.abort(),
    });
  }

  async *#messages(following: Following): AsyncGenerator<StreamMessage & { data: string }> {
    const path = pathTo`/jobs/${this.id}/streams/${this.name}`;
    const { after, ...options } = this.options;
    for await (const message of received(following, path, after, { ...options, isOfJob: true })) {
      const { event, data } = message;
      if (data === undefined) continue;
      yield { ...message, data };
      if (event === 'end') return;
    }
  }

  async *#chunks(following: Following): AsyncGenerator<StreamChunk<T>> {
    let isReset = false;
    for await (const { id = '', event, data } of this.#messages(following)) {
      if (event === 'reset') isReset = true;
      if (event !== 'chunk') continue;
      yield { data: chunkIn(data) as T, isReset, id };
      isReset = false;
    }
  }

  async *#bytes(following: Following): AsyncGenerator<Uint8Array> {
    const encoder = new TextEncoder();
    for await (const { id = '', event, data } of this.#messages(following)) {
      yield encoder.encode(`id: ${id}\nevent: ${event}\ndata: ${data}\n\n`);
    }
  }
}

const chunkIn = (data: string): unknown =>
  orThrow(
    () => member(JSON.parse(data), 'chunk'),
    () => malformed('a chunk'),
  );
