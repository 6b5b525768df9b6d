/** A Worker written without the library: answers with the status and body its job asks for. */
interface Order {
  status?: number;
  body?: string;
  /** The body is an object that says only at its end, after so many characters, that the job failed. */
  failsAfter?: number;
  headers?: Record<string, string>;
  /** `throw`: an uncaught exception; `timeout`: one that looks like a timeout of its own; `hang`: no answer; `gate`: see below. */
  do?: 'throw' | 'timeout' | 'hang' | 'gate' | 'throw-then-gate';
  /** Answers once `/open?gate=…` was called. */
  gate?: string;
}

interface Job {
  id: string;
  attempt: number;
  args: [Order?];
}

interface Run {
  id: string;
  headers: Record<string, string>;
  body: unknown;
  aborted: boolean;
}

const runs: Run[] = [];
const open = new Set<string>();
/** Runs under way, and the most there ever were, by gate. */
const load = new Map<string, { now: number; most: number }>();

async function passGate(gate: string): Promise<void> {
  const here = load.get(gate) ?? { now: 0, most: 0 };
  load.set(gate, here);
  here.now++;
  here.most = Math.max(here.most, here.now);
  while (!open.has(gate)) await scheduler.wait(3);
  here.now--;
}

export default {
  async fetch(request: Request): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url);
    const gate = searchParams.get('gate') ?? '';
    if (pathname === '/runs') return Response.json(runs.filter(({ id }) => id === searchParams.get('id')));
    if (pathname === '/load') return Response.json(load.get(gate) ?? { now: 0, most: 0 });
    if (pathname === '/open') return Response.json({ opened: open.add(gate).has(gate) });
    if (pathname === '/elsewhere') return new Response('{"status":"completed","result":"redirected"}');
    if (pathname !== '/') return new Response('not here', { status: 404 });
    const body = (await request.json()) as Job | { job: Job };
    const job = 'job' in body ? body.job : body;
    const run: Run = { id: job.id, headers: Object.fromEntries(request.headers), body, aborted: false };
    runs.push(run);
    request.signal.addEventListener('abort', () => {
      run.aborted = true;
    });
    const order = job.args[0] ?? {};
    if (order.do === 'throw' || (order.do === 'throw-then-gate' && job.attempt === 1))
      throw new Error('uncaught in the handler Worker');
    if (order.do === 'timeout') throw new DOMException('something else took too long', 'TimeoutError');
    if (order.do === 'hang') await scheduler.wait(60_000);
    if (order.do === 'gate' || order.do === 'throw-then-gate') await passGate(order.gate ?? '');
    if (order.failsAfter) return new Response(`{"result":"${'x'.repeat(order.failsAfter)}","status":"failed"}`);
    return new Response(order.body ?? null, { status: order.status ?? 200, headers: order.headers ?? {} });
  },
};
