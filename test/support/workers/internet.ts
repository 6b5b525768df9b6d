/**
 * The rest of the world, as far as the queue's Worker can tell: every request of its own `fetch` comes here. The first word of
 * the host says what is there: `down` nothing, `unresolved` what Cloudflare answers for that, `batch` a handler of batches, any
 * other a handler that answers as its job asks. `hook` is a receiver of events, which answers as its URL asks.
 */
interface Order {
  status?: number;
  body?: string;
  /** The body once the job has something on record. */
  again?: string;
  headers?: Record<string, string>;
  /** `gate`: answers once `/open?gate=…` was called; `hang`: not at all; `cut`: the connection breaks within the answer. */
  do?: 'gate' | 'hang' | 'cut';
  gate?: string;
}

interface Job {
  id: string;
  args: [Order?];
  steps?: object;
}

/** A request as it arrived. */
export interface Arrival {
  url: string;
  host: string;
  headers: Record<string, string>;
  body: string;
}

const arrivals: Arrival[] = [];
const open = new Set<string>();
const load = new Map<string, { now: number; most: number }>();

async function passGate(gate: string): Promise<void> {
  const here = load.get(gate) ?? { now: 0, most: 0 };
  load.set(gate, here);
  here.now++;
  here.most = Math.max(here.most, here.now);
  while (!open.has(gate)) await scheduler.wait(3);
  here.now--;
}

async function answer({ args: [order = {}], steps }: Job): Promise<Response> {
  if (order.do === 'gate') await passGate(order.gate ?? '');
  if (order.do === 'hang') await scheduler.wait(60_000);
  if (order.do === 'cut') {
    const half = new ReadableStream({
      start(controller) {
        controller.enqueue(new TextEncoder().encode('{"status":'));
        controller.error(new Error('cut'));
      },
    });
    return new Response(half);
  }
  const body = steps ? (order.again ?? order.body) : order.body;
  return new Response(body ?? null, { status: order.status ?? 200, headers: order.headers ?? {} });
}

/** How often each receiver was called. */
const calls = new Map<string, number>();

/** The first `times` calls are answered with `status`; all others, and all where nothing is said, with 200. */
async function receive({ origin, pathname, searchParams }: URL): Promise<Response> {
  const count = (calls.get(pathname) ?? 0) + 1;
  calls.set(pathname, count);
  const asked = Number(searchParams.get('status') ?? 200);
  const status = count > Number(searchParams.get('times') ?? 1e9) ? 200 : asked;
  if (searchParams.has('gate')) await passGate(searchParams.get('gate') ?? '');
  if (status === 0) throw new Error('connection refused');
  const headers = new Headers();
  const location = searchParams.get('location');
  if (status !== 200 && location !== null) headers.set('Location', location.replace('{origin}', origin));
  const wait = searchParams.get('retry_after');
  if (status !== 200 && wait !== null) headers.set('Retry-After', wait);
  return new Response(searchParams.get('body') ?? 'thanks', { status, headers });
}

/** Its own questions come over a binding, from a host that no test sends jobs to. */
function control({ pathname, searchParams }: URL): Response {
  const gate = searchParams.get('gate') ?? '';
  if (pathname === '/load') return Response.json(load.get(gate) ?? { now: 0, most: 0 });
  if (pathname === '/open') return Response.json({ opened: open.add(gate).has(gate) });
  const at = searchParams.get('at');
  if (at !== null) return Response.json(arrivals.filter(({ url }) => url.includes(at)));
  return Response.json(arrivals.filter(({ body }) => body.includes(searchParams.get('about') ?? '?')));
}

export default {
  async fetch(request: Request): Promise<Response> {
    const url = new URL(request.url);
    if (url.host === 'handler.test') return control(url);
    const body = await request.text();
    arrivals.push({ url: request.url, host: url.host, headers: Object.fromEntries(request.headers), body });
    const [word] = url.host.split('.');
    if (word === 'down') throw new Error('connection refused');
    if (word === 'unresolved') return new Response('error code: 1016', { status: 530 });
    if (word === 'hook') return receive(url);
    const sent = JSON.parse(body);
    if (word === 'batch') {
      const { lines } = sent.deliveries[0].job.args[0] ?? {};
      if (lines !== undefined) {
        const { delivery_id } = sent.deliveries[0];
        const said = lines.map((line: object) => JSON.stringify({ delivery_id, ...line })).join('\n');
        return new Response(said, { headers: { 'Content-Type': 'application/x-ndjson' } });
      }
      const results = sent.deliveries.map(({ delivery_id, job }: { delivery_id: string; job: Job }) =>
        job.args[0]?.body === 'missing' ? {} : { delivery_id, status: 'completed', result: sent.deliveries.length },
      );
      return Response.json({ results });
    }
    return answer(sent.job ?? sent);
  },
};
