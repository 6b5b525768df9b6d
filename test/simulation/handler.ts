/**
 * A handler Worker that does nothing by itself: it takes the calls of the queue and keeps them, until the simulation says what
 * becomes of each. It dies with the object that called it, as far as that can tell.
 */

/** How the Worker wants to be called, and what it announces. */
export interface HandlerTerms {
  /** `lines`: the calls stay open, and the handlers may speak. */
  payload: 'batch' | 'lines' | 'envelope';
  batchSize: number;
  /** Jobs that it runs at once; 0: it does not say. */
  concurrency: number;
}

/** A delivery as the Worker has read it. */
export interface Sent {
  id: string;
  job: { id: string; attempt: number };
}

const JSON_LINES = 'application/x-ndjson';

export class HandlerCall {
  /** Known once the call is read. */
  sent: Sent[] = [];
  readonly ready: Promise<void>;
  /** Replies that came over the live line, by the number of what was asked. */
  readonly replies = new Map<number, { error?: { code: string } }>();
  /** Deliveries of which the Worker was told that they are cancelled. */
  readonly cancelled = new Set<string>();
  /** Deliveries whose outcome was said. */
  readonly answered = new Set<string>();
  readonly hasLine: boolean;
  isOver = false;
  private writer: WritableStreamDefaultWriter<Uint8Array> | undefined;

  constructor(
    private readonly request: Request,
    private readonly answer: { resolve(response: Response): void; reject(error: Error): void },
    private readonly over: (call: HandlerCall) => void,
  ) {
    this.hasLine = request.headers.get('Tocsin-Control') === 'lines';
    this.ready = this.hasLine ? this.listen() : this.read();
  }

  /** Nobody waits for the answer any more: the time was up, or nothing of it is wanted. */
  get isAborted(): boolean {
    return this.request.signal.aborted;
  }

  /** Has its answer begun? */
  get hasSpoken(): boolean {
    return this.writer !== undefined;
  }

  /** Deliveries without an outcome. */
  get open(): Sent[] {
    return this.sent.filter(({ id }) => !this.answered.has(id));
  }

  /** The answer is there, whole. */
  respond(response: Response): void {
    this.end();
    this.answer.resolve(response);
  }

  /** The Worker dies. */
  die(): void {
    this.end();
    const error = new Error('the handler died');
    if (this.writer) void this.writer.abort(error).catch(() => undefined);
    else this.answer.reject(error);
  }

  /** Says something while the call goes on. */
  say(line: unknown): void {
    if (!this.writer) {
      const { readable, writable } = new IdentityTransformStream();
      this.writer = writable.getWriter();
      this.answer.resolve(new Response(readable, { headers: { 'Content-Type': JSON_LINES } }));
    }
    const text = typeof line === 'string' ? line : JSON.stringify(line);
    this.writer.write(new TextEncoder().encode(`${text}\n`)).catch(() => undefined);
  }

  /** Says no more. */
  close(): void {
    this.end();
    void this.writer?.close().catch(() => undefined);
  }

  /** It is over. */
  end(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.over(this);
  }

  private async read(): Promise<void> {
    const body = JSON.parse(await this.request.text());
    this.sent = sentIn(body);
  }

  private listen(): Promise<void> {
    return new Promise((resolve, reject) => {
      const heard = (text: string): void => {
        const line = JSON.parse(text);
        if (line.deliveries) {
          this.sent = sentIn(line);
          resolve();
        } else if (line.cancel) this.cancelled.add(line.cancel);
        else if (line.reply !== undefined) this.replies.set(line.reply, line);
      };
      this.eachLine(heard).catch(reject);
    });
  }

  private async eachLine(heard: (line: string) => void): Promise<void> {
    const reader = (this.request.body as ReadableStream<Uint8Array>).getReader();
    const decoder = new TextDecoder();
    for (let text = ''; ; ) {
      const { done, value } = await reader.read().catch(() => ({ done: true as const, value: undefined }));
      if (done) return;
      const lines = (text + decoder.decode(value, { stream: true })).split('\n');
      text = lines.pop() as string;
      for (const line of lines) heard(line);
    }
  }
}

interface Entry {
  delivery_id: string;
  job: { id: string; attempt: number };
}

function sentIn(body: Entry | { deliveries: Entry[] }): Sent[] {
  const entries = 'deliveries' in body ? body.deliveries : [body];
  return entries.map(({ delivery_id: id, job }) => ({ id, job: { id: job.id, attempt: job.attempt } }));
}

export class Handler {
  readonly calls: HandlerCall[] = [];
  /** It was asked what it takes, so many times. */
  asked = 0;

  /** @param withheld what keeps something under way in the object that calls */
  constructor(
    private readonly terms: HandlerTerms,
    private readonly type: string,
    private readonly withheld: Set<unknown>,
  ) {}

  fetch(request: Request): Promise<Response> {
    if (request.method === 'GET') {
      this.asked++;
      return Promise.resolve(Response.json(this.announcement()));
    }
    return new Promise((resolve, reject) => {
      const call = new HandlerCall(request, { resolve, reject }, (over) => this.withheld.delete(over));
      this.withheld.add(call);
      this.calls.push(call);
    });
  }

  private announcement() {
    const { payload, concurrency } = this.terms;
    const entry = { type: this.type, ...(concurrency > 0 && { concurrency }), talks: payload === 'lines' };
    return {
      types: [entry],
      version: '1',
      payload: payload === 'lines' ? 'batch' : payload,
      control: payload === 'lines',
    };
  }
}
