/** What wakes an object: every call of it, its alarm, and whatever comes over its sockets, also after it was evicted. */
import { runInDurableObject } from 'cloudflare:test';

type Method = (this: { ctx: DurableObjectState }, ...args: unknown[]) => unknown;

/** What was called of each object, by its id, as far as anybody watches it. */
const watched = new Map<string, string[]>();
const patched = new WeakSet<object>();

/**
 * The names of what is called of an object from now on: its verbs, `alarm`, `fetch`, `webSocketMessage`. The list grows.
 * @param only calls of these alone
 */
export async function touchesOf(
  object: { stub: DurableObjectStub } | DurableObjectStub,
  ...only: string[]
): Promise<readonly string[]> {
  const stub = ('stub' in object ? object.stub : object) as DurableObjectStub;
  const touched: string[] = [];
  await runInDurableObject(stub, (instance, state) => {
    for (let proto = Object.getPrototypeOf(instance); proto !== null; proto = Object.getPrototypeOf(proto)) patch(proto);
    watched.set(String(state.id), touched);
  });
  // What looked inside is no touch.
  touched.length = 0;
  if (only.length === 0) return touched;
  return new Proxy(touched, {
    get: (target, name) => Reflect.get(target.filter((call) => only.includes(call)), name),
  });
}

/** Once for a class: the runtime finds methods on prototypes alone. */
function patch(proto: object): void {
  if (patched.has(proto) || proto === Object.prototype) return;
  patched.add(proto);
  for (const [name, { value, writable, configurable }] of Object.entries(Object.getOwnPropertyDescriptors(proto))) {
    if (name === 'constructor' || typeof value !== 'function' || !(writable || configurable)) continue;
    const method = value as Method;
    Object.defineProperty(proto, name, {
      configurable: true,
      writable: true,
      value: function (this: { ctx: DurableObjectState }, ...args: unknown[]) {
        watched.get(String(this.ctx?.id))?.push(name);
        return method.apply(this, args);
      },
    });
  }
}
