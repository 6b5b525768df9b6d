/**
 * A handler Worker whose announcement a test replaces, as a deploy would: `/announce?status=…` with the new body. Status 0
 * throws when asked, 1 does not answer.
 */
let announcement = '{"types":[]}';
let status = 200;
let asked = 0;

interface Delivery {
  delivery_id: string;
  job: { type: string };
}

export default {
  async fetch(request: Request): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname === '/announce') {
      announcement = await request.text();
      status = Number(searchParams.get('status') ?? 200);
      return Response.json({ asked });
    }
    if (pathname === '/.well-known/tocsin') {
      asked++;
      if (status === 0) throw new Error('the module does not load');
      if (status === 1) await scheduler.wait(60_000);
      return new Response(announcement, { status });
    }
    const { deliveries, job } = (await request.json()) as { deliveries?: Delivery[]; job?: { type: string } };
    const answer = (type: string) =>
      announcement.includes(`"${type}"`)
        ? { status: 'completed' }
        : { status: 'failed', error: { code: 'handler_not_found', message: `nothing for ${type}` } };
    if (!deliveries) return Response.json(answer(job?.type ?? ''));
    return Response.json({
      results: deliveries.map(({ delivery_id, job }) => ({ delivery_id, ...answer(job.type) })),
    });
  },
};
