/** A Worker written without the library: answers with the status and body its job asks for. */
interface Order {
  status?: number;
  body?: string;
  headers?: Record<string, string>;
  /** `throw`: an uncaught exception; `hang`: no answer. */
  do?: 'throw' | 'hang';
}

const seen: { headers: Record<string, string>; body: unknown }[] = [];

export default {
  async fetch(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (pathname === '/seen') return Response.json(seen);
    if (pathname !== '/') return new Response('not here', { status: 404 });
    const body = (await request.json()) as { job: { args: [Order?] } };
    seen.push({ headers: Object.fromEntries(request.headers), body });
    const order = body.job.args[0] ?? {};
    if (order.do === 'throw') throw new Error('uncaught in the handler Worker');
    if (order.do === 'hang') await new Promise(() => {});
    return new Response(order.body ?? null, { status: order.status ?? 200, headers: order.headers ?? {} });
  },
};
