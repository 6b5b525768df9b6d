/** Requests whose driver dies in the middle, as the objects see it. */
import { env } from 'cloudflare:workers';
import type { Env } from '../../src/config';
import { createApp } from '../../src/http/app';

export type Send = (request: Request) => Response | Promise<Response>;

/** The application, with the n-th call of a queue's method lost on the way, as when whoever asked died. */
export function losing(method: string, nth = 1, when: 'before' | 'after' = 'before'): Send {
  let calls = 0;
  const queues = new Proxy(env.QUEUES, {
    get(target, name) {
      if (name !== 'getByName') return Reflect.get(target, name);
      return (queueName: string) =>
        new Proxy(target.getByName(queueName), {
          get(stub, member) {
            if (member !== method) return Reflect.get(stub, member);
            const object = stub as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>;
            return async (...args: unknown[]) => {
              if (++calls !== nth) return object[method]?.(...args);
              if (when === 'after') await object[method]?.(...args);
              throw new Error('lost');
            };
          },
        });
    },
  });
  const app = createApp();
  return (request) => app.fetch(request, { ...env, QUEUES: queues } as unknown as Env);
}
