/** The default export of a Worker that holds the queue, whatever its own code exported before. */
import { createExecutionContext, env } from 'cloudflare:test';
import { WorkerEntrypoint } from 'cloudflare:workers';
import { Hono } from 'hono';
import { describe, expect, it } from 'vitest';
import { type EntrypointClass, type Notice, withQueue } from '../../src/library/default-export';

const serve = (request: Request, _: unknown, hasOwn: boolean) =>
  hasOwn && !new URL(request.url).pathname.startsWith('/ojs') ? undefined : Promise.resolve(new Response('queue'));
type Handlers = Record<string, (...given: unknown[]) => unknown>;
const nobody = () => undefined;
const wrap = (own: unknown, notice: Notice = nobody) => withQueue(own as ExportedHandler, serve, notice) as Handlers;
const get = async (handlers: Handlers, path: string) => {
  const answer = await handlers.fetch?.(new Request(`http://a${path}`), {}, createExecutionContext());
  return await (answer as Response).text();
};

describe('the default export', () => {
  class Base {
    readonly #name = 'ada';
    email() {
      return `email of ${this.#name}`;
    }
    tail() {
      return 'overridden';
    }
  }
  class App extends Base {
    own = () => 'an own one';
    readonly #seen: unknown[] = [];
    fetch(request: Request) {
      return new Response(`own ${new URL(request.url).pathname} ${this.#seen.length}`);
    }
    scheduled(event: unknown) {
      return this.#seen.push(event);
    }
    queue(...given: unknown[]) {
      return given;
    }
    override tail() {
      return 'tail';
    }
    get trace() {
      return () => this.#seen;
    }
  }

  it('keeps the handlers that an instance has of its class and of those above, and their this', async () => {
    const handlers = wrap(new App());
    expect(handlers.scheduled?.('cron')).toBe(1);
    expect(await get(handlers, '/x')).toBe('own /x 1');
    expect(await get(handlers, '/ojs/v1/health')).toBe('queue');
    expect([handlers.email?.(), handlers.tail?.(), handlers.own?.()]).toEqual(['email of ada', 'tail', 'an own one']);
    expect([handlers.queue?.(1, 2, 3), handlers.trace?.()]).toEqual([[1, 2, 3], ['cron']]);
    expect(handlers).not.toHaveProperty('constructor.prototype.scheduled');
  });

  it('keeps those of a plain object, of an object without a prototype, and an app of Hono', async () => {
    expect(wrap({ alarm: () => 'alarm' }).alarm?.()).toBe('alarm');
    expect(wrap(Object.assign(Object.create(null), { test: () => 'test' })).test?.()).toBe('test');
    expect(await get(wrap({ scheduled: () => 1 }), '/anything')).toBe('queue');
    const app = new Hono().get('/x', (c) => c.text('hono'));
    expect([await get(wrap(app), '/x'), await get(wrap(app), '/ojs')]).toEqual(['hono', 'queue']);
  });

  it('is a class where the own one is: it keeps every method', async () => {
    class Own extends WorkerEntrypoint {
      override fetch() {
        return new Response(`own of ${'TEST_HOOKS' in (this.env as object)}`);
      }
      override scheduled() {
        return Promise.resolve();
      }
      add(a: number, b: number) {
        return a + b;
      }
    }
    const Both = withQueue(Own as unknown as EntrypointClass, serve, nobody) as typeof Own;
    const made = new Both(createExecutionContext(), env as never);
    expect(made).toBeInstanceOf(WorkerEntrypoint);
    expect([made.add(1, 2), typeof made.scheduled]).toEqual([3, 'function']);
    expect(await get(made as unknown as Handlers, '/x')).toBe('own of true');
    expect(await get(made as unknown as Handlers, '/ojs')).toBe('queue');
    class Silent extends WorkerEntrypoint {}
    const Queue = withQueue(Silent as unknown as EntrypointClass, serve, nobody) as typeof Own;
    expect(await get(new Queue(createExecutionContext(), env as never) as unknown as Handlers, '/x')).toBe('queue');
  });

  describe('tells of an event of any kind, before the own code sees it', () => {
    const ctx = createExecutionContext();
    const seen: unknown[] = [];
    const notice: Notice = (...given) => void seen.push(given);
    const once = async (act: () => unknown) => {
      await act();
      expect(seen.splice(0)).toEqual([[env, ctx]]);
    };
    const request = (path: string) => new Request(`http://a${path}`);

    it('where it is an object', async () => {
      const done: string[] = [];
      const own = {
        fetch: () => new Response(`${seen.length}`),
        scheduled: () => done.push(`scheduled ${seen.length}`),
      };
      const handlers = wrap({ ...own, queue: () => done.push('queue'), email: () => done.push('email') }, notice);
      for (const path of ['/x', '/ojs']) await once(() => handlers.fetch?.(request(path), env, ctx));
      for (const name of ['scheduled', 'queue', 'email']) await once(() => handlers[name]?.({}, env, ctx));
      expect(done).toEqual(['scheduled 1', 'queue', 'email']);
    });

    it('where it is a class', async () => {
      class Above extends WorkerEntrypoint {
        override async scheduled() {}
      }
      class Own extends Above {
        override fetch() {
          return new Response(`${seen.length}`);
        }
        add(a: number, b: number) {
          return a + b + seen.length;
        }
      }
      const Both = withQueue(Own as unknown as EntrypointClass, serve, notice) as typeof Own;
      const made = new Both(ctx, env as never);
      const handlers = made as unknown as Handlers;
      for (const path of ['/x', '/ojs']) await once(() => handlers.fetch?.(request(path)));
      await once(() => handlers.scheduled?.({}));
      await once(() => expect(made.add(1, 2)).toBe(4));
    });
  });

  it.each([[class {}], [() => 1], ['text'], [null]])('refuses %s, which no Worker can export', (own) => {
    expect(() => wrap(own)).toThrow(TypeError);
  });
});
