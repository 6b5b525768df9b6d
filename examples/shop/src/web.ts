/**
 * A shop that gives its work to a queue: a typical Worker that produces jobs, follows them, and acts on them. A real
 * shop must check who may call which path; here everybody may.
 */
import { type ServiceLike, TocsinClient, TocsinError } from '../../../src/client';
import type { Order, Shop, ShopJobs } from './jobs';
import { payAgain, placeOrder } from './orders';
import { catalogueChanged, setUp, startPayments, stopPayments } from './upkeep';

interface Env {
  TOCSIN: ServiceLike;
  TOCSIN_KEY?: string;
}

type Route = (tocsin: Shop, request: Request, name: string) => Promise<unknown>;

const ROUTES: Record<string, Route> = {
  'POST /setup': (tocsin) => setUp(tocsin),
  'POST /orders': async (tocsin, request) => placeOrder(tocsin, await request.json<Order>()),
  'GET /orders/:name': (tocsin, _, id) => tocsin.workflows.get(id),
  'POST /payments/:name': async (tocsin, request, number) => {
    const { card } = await request.json<{ card: string }>();
    return (await payAgain(tocsin, number, card)) ?? { state: 'nothing to pay' };
  },
  'POST /payments-stop': (tocsin) => stopPayments(tocsin, 15),
  'POST /payments-start': (tocsin) => startPayments(tocsin),
  'POST /catalogue': (tocsin) => catalogueChanged(tocsin),
};

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const [path = '', name] = new URL(request.url).pathname.slice(1).split('/');
    const route = ROUTES[`${request.method} /${path}${name === undefined ? '' : '/:name'}`];
    if (!route) return Response.json({ error: 'no such page' }, { status: 404 });
    const tocsin: Shop = new TocsinClient<ShopJobs>({
      service: env.TOCSIN,
      safeRetries: true,
      // When the visitor leaves, the wait for the job ends too.
      signal: request.signal,
      ...(env.TOCSIN_KEY !== undefined && { key: env.TOCSIN_KEY }),
    });
    try {
      return Response.json((await route(tocsin, request, name ?? '')) ?? { done: true });
    } catch (error) {
      if (!(error instanceof TocsinError)) throw error;
      const { code, details, retryable } = error;
      return Response.json({ error: error.message, code, details }, { status: retryable ? 503 : 422 });
    }
  },
};
