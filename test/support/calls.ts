/** What a request asks of the objects. */
import { env } from 'cloudflare:workers';
import { TestServer } from './server';

/** The calls that a server has made, as `object.verb`, the queues by their names. */
export interface Calls {
  server: TestServer;
  /** Takes what was called since the last time. */
  take(): string[];
}

/** A server whose calls are counted. @param broken calls that fail, by `object.verb` */
export function counting(broken: (call: string) => boolean = () => false): Calls {
  let calls: string[] = [];
  const watched = (namespace: DurableObjectNamespace) =>
    new Proxy(namespace, {
      get(target, name) {
        if (name !== 'getByName') return Reflect.get(target, name);
        return (object: string) =>
          new Proxy(target.getByName(object), {
            get(stub, member) {
              if (typeof member !== 'string') return Reflect.get(stub, member);
              const verbs = stub as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>;
              return async (...args: unknown[]) => {
                const call = `${object}.${member}`;
                calls.push(call);
                if (broken(call)) throw new Error(`${call} cannot be reached`);
                return verbs[member]?.(...args);
              };
            },
          });
      },
    });
  const server = TestServer.with({
    QUEUES: watched(env.QUEUES as unknown as DurableObjectNamespace),
    DIRECTORY: watched(env.DIRECTORY as unknown as DurableObjectNamespace),
  });
  return {
    server,
    take() {
      const taken = calls;
      calls = [];
      return taken;
    },
  };
}
