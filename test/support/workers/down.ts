/** Answers as `wrangler dev` does in the place of a Worker that is not running; `/up` and `/down` change that. */
let running = false;
let calls = 0;

export default {
  async fetch(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (pathname === '/up') running = true;
    if (pathname === '/down') running = false;
    if (pathname === '/up' || pathname === '/down' || pathname === '/calls') return Response.json({ running, calls });
    calls++;
    if (!running) {
      return new Response('Worker "down" not found. Make sure it is running locally.', { status: 503 });
    }
    return pathname === '/' ? new Response('ok') : new Response('not here', { status: 404 });
  },
};
