/** Speaks the live line without the library: says what its jobs tell it to say, word for word, and remembers the replies. */
interface Order {
  /** Members of messages, sent in turn; `ask` waits for the reply to one that has a call. */
  say?: Record<string, unknown>[];
  /** Texts sent as they are, before the outcome. */
  raw?: string[];
  /** So many log lines, each of 1 KiB. */
  flood?: number;
  /** So many calls, none of whose replies is waited for. */
  burst?: number;
  /** Sends a checkpoint of so many characters, and remembers the reply. */
  fill?: number;
  /** Sends a step whose result nests so deeply, and remembers the reply. */
  deep?: number;
  /** Sends a line of so many characters that says nothing. */
  babble?: number;
  /** Does not read the live line. */
  deaf?: boolean;
  /** The answer breaks off. */
  dies?: boolean;
  /** Waits for `/open?gate=…` before its outcome. */
  gate?: string;
  /** Members of its outcome; of one with `later`, from its second run on. */
  end?: Record<string, unknown>;
  later?: Record<string, unknown>;
  /** Answers `again` where the call has no live line. */
  needsLine?: boolean;
}

interface Delivery {
  delivery_id: string;
  job: { id: string; attempt: number; args: [Order?]; steps?: unknown };
}

const replies = new Map<string, unknown[]>();
const runs = new Map<string, { open: boolean; attempt: number; steps: unknown }[]>();
const open = new Set<string>();
let written = 0;
let number = 0;

const noted = <T>(map: Map<string, T[]>, id: string): T[] => {
  const list = map.get(id) ?? [];
  map.set(id, list);
  return list;
};

function begin({ job }: Delivery, isOpen: boolean): Order {
  const before = noted(runs, job.id);
  before.push({ open: isOpen, attempt: job.attempt, steps: job.steps ?? null });
  const order = job.args[0] ?? {};
  return before.length > 1 && order.later ? { end: order.later } : order;
}

class Line {
  private readonly waiting = new Map<number, (reply: unknown) => void>();

  constructor(private readonly writer: WritableStreamDefaultWriter<Uint8Array>) {}

  async listen(lines: AsyncGenerator<string>): Promise<void> {
    for await (const line of lines) {
      const message = JSON.parse(line) as { reply?: number };
      if (message.reply !== undefined) this.waiting.get(message.reply)?.(message);
    }
  }

  async write(text: string): Promise<void> {
    await this.writer.write(new TextEncoder().encode(`${text}\n`));
    written += text.length;
  }

  async say(delivery: Delivery, message: Record<string, unknown>): Promise<void> {
    if (!('ask' in message)) return this.write(JSON.stringify({ delivery_id: delivery.delivery_id, ...message }));
    const { ask, ...members } = message;
    const call = ++number;
    const reply = new Promise<unknown>((resolve) => this.waiting.set(call, resolve));
    await this.write(JSON.stringify({ delivery_id: delivery.delivery_id, call, ...(ask as object), ...members }));
    const { reply: _, ...rest } = (await reply) as Record<string, unknown>;
    noted(replies, delivery.job.id).push(rest);
  }

  async run(delivery: Delivery): Promise<void> {
    const order = begin(delivery, true);
    for (const message of order.say ?? []) await this.say(delivery, message);
    for (const text of order.raw ?? []) await this.write(text);
    if (order.fill) await this.say(delivery, { ask: { checkpoint: 'z'.repeat(order.fill) } });
    if (order.deep) {
      const result = JSON.parse('['.repeat(order.deep) + ']'.repeat(order.deep));
      await this.say(delivery, { ask: { step: { name: 'deep', result } } });
    }
    if (order.babble) await this.write('x'.repeat(order.babble));
    const log = [{ at: 1, level: 'info', message: 'x'.repeat(1000) }];
    for (let n = 0; n < (order.flood ?? 0); n++) await this.say(delivery, { log });
    for (let n = 0; n < (order.burst ?? 0); n++) {
      await this.say(delivery, { call: ++number, step: { name: `s${n % 10}`, result: 'y'.repeat(1000) } });
    }
    while (order.gate && !open.has(order.gate)) await scheduler.wait(3);
    if (order.dies) {
      await this.writer.abort(new Error('the connection broke'));
      return;
    }
    await this.say(delivery, { status: 'completed', ...order.end });
  }
}

async function* linesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  let rest = '';
  for await (const text of body.pipeThrough(new TextDecoderStream() as never) as unknown as AsyncIterable<string>) {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
}

async function converse(request: Request, ctx: ExecutionContext): Promise<Response> {
  const lines = linesOf(request.body as ReadableStream<Uint8Array>);
  const { deliveries } = JSON.parse((await lines.next()).value as string) as { deliveries: Delivery[] };
  const { readable, writable } = new IdentityTransformStream();
  const writer = writable.getWriter();
  const line = new Line(writer);
  if (!deliveries[0]?.job.args[0]?.deaf) ctx.waitUntil(line.listen(lines).catch(() => undefined));
  const all = Promise.all(deliveries.map((delivery) => line.run(delivery)));
  ctx.waitUntil(all.then(() => writer.close()).catch(() => undefined));
  return new Response(readable, { headers: { 'Content-Type': 'application/x-ndjson' } });
}

export default {
  async fetch(request: Request, _env: unknown, ctx: ExecutionContext): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname === '/.well-known/tocsin') {
      const types = [{ type: 'talk.quiet' }, { type: '*', talks: true }];
      return Response.json({ types, payload: 'batch', control: true });
    }
    const id = searchParams.get('id') ?? '';
    if (pathname === '/replies') return Response.json(replies.get(id) ?? []);
    if (pathname === '/runs') return Response.json(runs.get(id) ?? []);
    if (pathname === '/written') return Response.json(written);
    if (pathname === '/open') return Response.json(open.add(searchParams.get('gate') ?? '').size);
    if (request.headers.has('Tocsin-Control')) return converse(request, ctx);
    const { deliveries } = (await request.json()) as { deliveries: Delivery[] };
    const results = deliveries.map((delivery) => {
      const order = begin(delivery, false);
      const end = order.needsLine ? { status: 'again' } : { status: 'completed', ...order.end };
      return { delivery_id: delivery.delivery_id, ...end };
    });
    return Response.json({ results });
  },
};
