/** Values that JSON would empty: refused as results, as what a handler says, and as what is enqueued. */
import { describe, expect, it } from 'vitest';
import { defineHandlers, type HandlerContext, type Job } from '../../src/handler';
import { runHandler } from '../../src/testing';
import { fakeQueue } from '../client/fake-queue';

class Point {
  constructor(
    readonly x: number,
    readonly y: number,
  ) {}
}
class Money {
  #cents = 990;
  toJSON() {
    return { cents: this.#cents };
  }
}
class Hidden {
  #value = 1;
  get value() {
    return this.#value;
  }
}

const EMPTIED: [string, unknown, RegExp][] = [
  ['a Response', new Response('upstream broke', { status: 502 }), /a Response, which JSON empties: pass its status/],
  ['a Request', new Request('https://example.com/'), /a Request/],
  ['Headers', new Headers({ a: 'b' }), /Object\.fromEntries\(headers\)/],
  ['a Map', new Map([[1, 2]]), /a Map, which JSON empties: pass Object\.fromEntries\(map\)/],
  ['a Set', new Set([1]), /a Set, which JSON empties: pass \[\.\.\.set\]/],
  ['a stream', new ReadableStream(), /a ReadableStream/],
  ['an error', new RangeError('no'), /an? Error, which JSON empties: throw it/],
  ['an error with members', Object.assign(new Error('no'), { code: 'E' }), /an? Error/],
  ['an ArrayBuffer', new ArrayBuffer(8), /an? ArrayBuffer/],
  ['a regular expression', /x/, /a RegExp/],
  ['a function', () => 1, /a function, which JSON leaves out/],
  ['a symbol', Symbol('s'), /a symbol, which JSON leaves out/],
  ['an instance without members', new Hidden(), /a Hidden, of which JSON keeps nothing/],
  ['a generator', (function* () {})(), /a Generator/],
  ['NaN', Number.NaN, /it is NaN, for which JSON has null/],
  ['infinity', Number.NEGATIVE_INFINITY, /it is -Infinity/],
  ['an invalid date', new Date(Number.NaN), /an invalid Date/],
  ['a BigInt', 1n, /a BigInt: pass a text or a number/],
];

const KEPT: [string, unknown, unknown][] = [
  ['a date', { at: new Date(0) }, { at: '1970-01-01T00:00:00.000Z' }],
  ['undefined members', { a: undefined, b: 1 }, { b: 1 }],
  ['an object with toJSON', [new Money()], [{ cents: 990 }]],
  ['a plain object that says its own JSON', { toJSON: () => 'own' }, 'own'],
  ['an object without prototype', Object.assign(Object.create(null), { a: 1 }), { a: 1 }],
  ['an instance of a class', new Point(1, 2), { x: 1, y: 2 }],
  ['a boxed text', [Object('x')], ['x']],
  ['a URL', new URL('https://example.com/'), 'https://example.com/'],
  ['what is nested twice', [(() => ({ a: 1 }))(), {}], [{ a: 1 }, {}]],
];

const run = (handler: (ctx: HandlerContext) => unknown) =>
  runHandler(defineHandlers({ 'a.b': (_: Job, ctx: HandlerContext) => handler(ctx) }), 'a.b', []);

describe('a result', () => {
  it.each(EMPTIED)('that is %s is refused', async (_, value, why) => {
    const { status, error } = await run(() => value);
    expect({ status, type: error?.type }).toEqual({ status: 'failed', type: 'UnserialisableResult' });
    expect(error?.message).toMatch(/^The result is not JSON: it is/);
    expect(error?.message).toMatch(why);
  });

  it.each([...EMPTIED, ['a promise', Promise.resolve(1), /a Promise, which JSON empties: await it/] as const])(
    'that holds %s is refused, with the path',
    async (_, value, why) => {
      const { error } = await run(() => ({ rows: [{ id: 1 }, { 'first name': value }] }));
      expect(error?.message).toMatch(/^The result is not JSON: at rows\[1\]\["first name"\] it is/);
      expect(error?.message).toMatch(why);
    },
  );

  it.each(KEPT)('may have %s', async (_, value, expected) => {
    expect(await run(() => value)).toMatchObject({ status: 'completed', result: expected });
  });

  it('that holds promises is refused, and their rejections end nothing', async () => {
    const unhandled: unknown[] = [];
    const note = (event: Event) => unhandled.push(Reflect.get(event, 'reason'));
    addEventListener('unhandledrejection', note);
    const refused = (name: string) => Promise.reject(new Error(name));
    for (const give of [
      () => [refused('a'), refused('b')],
      () => ({ rows: [new Map(), refused('c')], more: refused('d') }),
      () => {
        throw refused('thrown');
      },
    ]) {
      expect((await run(give)).status).toBe('failed');
    }
    await new Promise((resolve) => setTimeout(resolve, 5));
    removeEventListener('unhandledrejection', note);
    expect(unhandled).toEqual([]);
  });

  it('that holds itself is refused', async () => {
    const circle: { own?: unknown } = {};
    circle.own = circle;
    expect((await run(() => circle)).error?.message).toMatch(/^The result is not JSON: /);
  });
});

describe('what a handler says', () => {
  it.each<[string, (ctx: HandlerContext, value: unknown) => unknown]>([
    ['the result of a step', (ctx, value) => ctx.step('s', () => ({ value }))],
    ['a checkpoint', (ctx, value) => ctx.checkpoint({ value })],
    ['data of progress', (ctx, value) => ctx.progress(0.5, 'half', { value })],
    ['an argument', (ctx, value) => ctx.enqueue('a.b', [{ value }])],
    ['meta', (ctx, value) => ctx.enqueue('a.b', [], { meta: { value } })],
    ['an argument of many', (ctx, value) => ctx.enqueueMany([{ type: 'a.b', args: [value] }])],
  ])('is refused as %s', async (_, say) => {
    const { status, error } = await run((ctx) => say(ctx, new Map()));
    expect({ status, type: error?.type }).toEqual({ status: 'failed', type: 'TypeError' });
    expect(error?.message).toMatch(/^ctx\.\w+: the .* is not JSON: at \S+ it is a Map/);
  });
});

describe('ctx.enqueueMany', () => {
  it.each<[string, readonly unknown[], RegExp]>([
    ['null', [{ type: 'a.b', args: [] }, null], /\[1\] is null; pass a list of/],
    ['a text', ['a.b'], /\[0\] is a\.b; pass a list of/],
    ['a gap', new Array(2), /\[0\] is undefined; pass a list of/],
  ])('refuses a list with %s', async (_, jobs, why) => {
    const { status, error, enqueued } = await run((ctx) => ctx.enqueueMany(jobs as never));
    expect({ status, type: error?.type, enqueued }).toEqual({ status: 'failed', type: 'TypeError', enqueued: [] });
    expect(error?.message).toMatch(why);
  });
});

describe('a client', () => {
  it.each(EMPTIED)('refuses to enqueue %s, and names where it is', async (_, value, why) => {
    const { client, requests } = fakeQueue();
    const args = [{ value }];
    for (const enqueue of [
      () => client.enqueue('a.b', args),
      () => client.enqueue('a.b', args, { idempotencyKey: 'k' }),
      () => client.enqueueMany([{ type: 'a.b', args }]),
    ]) {
      await expect((async () => await enqueue())()).rejects.toMatchObject({
        code: 'unserialisable',
        message: expect.stringMatching(why),
        details: { field: expect.stringMatching(/args\[0\]\.value$/) },
      });
    }
    expect((await client.enqueueEach([{ type: 'a.b', args }])).items).toMatchObject([
      { status: 'failed', error: { code: 'unserialisable', message: expect.stringMatching(why) } },
    ]);
    await expect((async () => await client.enqueue('a.b', [], { meta: { value } }))()).rejects.toMatchObject({
      details: { field: 'meta.value' },
    });
    await expect((async () => await client.signal('id', 'go', { value }))()).rejects.toMatchObject({
      details: { field: 'payload.value' },
    });
    expect(requests).toEqual([]);
  });

  it.each(KEPT)('enqueues %s', async (_, value, expected) => {
    const { client, requests } = fakeQueue();
    await client.enqueue('a.b', [value]);
    expect(requests[0]?.body?.args).toEqual([expected]);
  });
});
