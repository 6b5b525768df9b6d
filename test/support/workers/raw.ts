/** Speaks batches without the library, and does to the whole batch what any job in it asks for. */
interface Order {
  /**
   * `throw` and `hang` take the whole batch down, `missing` leaves this delivery out, others replace the answer;
   * `echo` answers with the digits of `number` as they stood in the request, which reading them as a number would round.
   */
  do?:
    | 'echo'
    | 'throw'
    | 'hang'
    | 'missing'
    | 'empty'
    | 'rubbish'
    | 'no-results'
    | 'status'
    | 'strange'
    | 'break'
    | 'fail';
  status?: number;
  /** What every text of the error ends with, so many times. */
  text?: string;
  times?: number;
  /** Characters of the result. */
  size?: number;
}

interface Delivery {
  delivery_id: string;
  job: { id: string; attempt: number; args: [Order?] };
}

/** Every call: the jobs in it. */
const calls: { id: string; attempt: number }[][] = [];

function answerTo(order: Order, together: number): object {
  if (order.do === 'fail') {
    const text = `${'x'.repeat(254)}${(order.text ?? '').repeat(order.times ?? 1)}`;
    return { status: 'failed', error: { code: text, type: text, message: text, classes: [text] } };
  }
  if (order.do === 'strange') return { status: 'maybe' };
  return { status: 'completed', result: order.size === undefined ? together : 'x'.repeat(order.size) };
}

/** An answer that ends in the middle of an entry, after those of the jobs before `break`. */
function broken(deliveries: Delivery[]): ReadableStream {
  const whole = deliveries.slice(
    0,
    deliveries.findIndex(({ job }) => job.args[0]?.do === 'break'),
  );
  const entries = whole.map(({ delivery_id, job }) =>
    JSON.stringify({ delivery_id, ...answerTo(job.args[0] ?? {}, deliveries.length) }),
  );
  const chunks = [`{"results":[${entries.join(',')},{"delivery_id":`];
  return new ReadableStream({
    pull(stream) {
      const chunk = chunks.shift();
      if (chunk === undefined) stream.error(new Error('the connection broke'));
      else stream.enqueue(new TextEncoder().encode(chunk));
    },
  });
}

export default {
  async fetch(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (pathname === '/.well-known/tocsin') return Response.json({ types: [{ type: '*' }], payload: 'batch' });
    if (pathname === '/calls') return Response.json(calls);
    const text = await request.text();
    const { deliveries } = JSON.parse(text) as { deliveries: Delivery[] };
    calls.push(deliveries.map(({ job }) => ({ id: job.id, attempt: job.attempt })));
    const orders = deliveries.map(({ job }) => job.args[0] ?? {});
    const asked = (what: Order['do']) => orders.find((order) => order.do === what);
    if (asked('throw')) throw new Error('one job took the isolate down');
    if (asked('hang')) await scheduler.wait(60_000);
    if (asked('echo')) {
      const digits = /"number":(-?\d+)/.exec(text)?.[1];
      const results = deliveries.map(
        ({ delivery_id }) => `{"delivery_id":"${delivery_id}","status":"completed","result":[${digits}]}`,
      );
      return new Response(`{"results":[${results.join(',')}]}`);
    }
    if (asked('empty')) return new Response(null);
    if (asked('rubbish')) return new Response('<html>');
    if (asked('no-results')) return Response.json({ status: 'completed' });
    const status = asked('status')?.status;
    if (status !== undefined) return new Response('refused', { status });
    if (asked('break')) return new Response(broken(deliveries));
    const results = deliveries
      .filter(({ job }) => job.args[0]?.do !== 'missing')
      .map(({ delivery_id, job }) => ({
        delivery_id,
        ...answerTo(job.args[0] ?? {}, deliveries.length),
      }));
    return Response.json({ results: [null, 5, { delivery_id: 'del_unknown', status: 'failed' }, ...results] });
  },
};
