/** Speaks batches without the library, and does to the whole batch what any job in it asks for. */
interface Order {
  /** `throw` and `hang` take the whole batch down, `missing` leaves this delivery out, others replace the answer. */
  do?: 'throw' | 'hang' | 'missing' | 'empty' | 'rubbish' | 'no-results' | 'status' | 'strange' | 'slow-sibling';
  status?: number;
}

interface Delivery {
  delivery_id: string;
  job: { id: string; attempt: number; args: [Order?] };
}

/** Every call: the jobs in it. */
const calls: { id: string; attempt: number }[][] = [];

export default {
  async fetch(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (pathname === '/.well-known/tocsin') return Response.json({ types: [{ type: '*' }], payload: 'batch' });
    if (pathname === '/calls') return Response.json(calls);
    const { deliveries } = (await request.json()) as { deliveries: Delivery[] };
    calls.push(deliveries.map(({ job }) => ({ id: job.id, attempt: job.attempt })));
    const orders = deliveries.map(({ job }) => job.args[0] ?? {});
    const asked = (what: Order['do']) => orders.find((order) => order.do === what);
    if (asked('throw')) throw new Error('one job took the isolate down');
    if (asked('hang')) await scheduler.wait(60_000);
    if (asked('empty')) return new Response(null);
    if (asked('rubbish')) return new Response('<html>');
    if (asked('no-results')) return Response.json({ status: 'completed' });
    const status = asked('status')?.status;
    if (status !== undefined) return new Response('refused', { status });
    const results = deliveries
      .filter(({ job }) => job.args[0]?.do !== 'missing')
      .map(({ delivery_id, job }) => ({
        delivery_id,
        status: job.args[0]?.do === 'strange' ? 'maybe' : 'completed',
        result: deliveries.length,
      }));
    return Response.json({ results: [null, 5, { delivery_id: 'del_unknown', status: 'failed' }, ...results] });
  },
};
