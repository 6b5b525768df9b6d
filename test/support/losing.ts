/** Requests whose driver dies in the middle, as the objects see it. */
import { env } from 'cloudflare:workers';
import { TestServer } from './server';

/** A server that loses the n-th call of a queue's method on the way, as when the caller died. */
export function losing(method: string, nth = 1, when: 'before' | 'after' = 'before'): TestServer {
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
  return TestServer.with({ QUEUES: queues });
}
