/** What the compiler holds answers to: each line that must not compile stands under a `@ts-expect-error`. */
import { describe, expect, it } from 'vitest';
import { get, post } from '../../src/contract/route';
import { type AppContext, json, noContent } from '../../src/http/context';
import { serve } from '../../src/http/route';

interface Bell {
  name: string;
  rings?: number;
}

const bells = {
  show: get<{ 200: Bell; errors: 404 }>('/bells/:name'),
  ring: post<{ body: Bell; 200: Bell; 204: null }>('/bells/:name/ring', { audit: 'bell.ring' }),
};

const show = (c: AppContext) => json(c, { name: 'tocsin' });
const ring = (c: AppContext) => (c.req.query('quietly') ? noContent(c) : json(c, { name: 'tocsin', rings: 1 }));

describe('a contract', () => {
  it('gets a handler for each route, in its order, with its rules', () => {
    const served = serve(bells, { show, ring }).map(({ method, path, audit }) => ({ method, path, audit }));
    expect(served).toEqual([
      { method: 'GET', path: '/bells/:name', audit: undefined },
      { method: 'POST', path: '/bells/:name/ring', audit: 'bell.ring' },
    ]);
  });

  it('does not compile without a handler, or with one that answers something else', () => {
    // @ts-expect-error nobody rings
    serve(bells, { show });
    // @ts-expect-error no bell has that
    serve(bells, { show: (c) => json(c, { title: 'tocsin' }), ring });
    // @ts-expect-error a number is a number
    serve(bells, { show: (c) => json(c, { name: 'tocsin', rings: 'twice' }), ring });
    // @ts-expect-error its status is another
    serve(bells, { show: (c) => json(c, { name: 'tocsin' }, 201), ring });
    // @ts-expect-error it promises a body
    serve(bells, { show: (c) => noContent(c), ring });
    // @ts-expect-error who knows what that is?
    serve(bells, { show: () => new Response('{}'), ring });
  });
});
