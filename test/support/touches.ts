/** What wakes an object: every call of it, its alarm, and whatever comes over its sockets, also after it was evicted. */
import { runInDurableObject } from 'cloudflare:test';
import type { DurableObject } from 'cloudflare:workers';

type Method = (this: { ctx: DurableObjectState }, ...args: unknown[]) => unknown;

/** Who is to hear what is called of an object, by its id. */
const watched = new Map<string, (name: string) => void>();
const patched = new WeakSet<object>();

/**
 * The names of what is called of an object from now on: its verbs, `alarm`, `fetch`, `webSocketMessage`. The list grows.
 * @param only calls of these alone
 */
export async function touchesOf(
  stub: DurableObjectStub<Rpc.DurableObjectBranded & DurableObject>,
  ...only: string[]
): Promise<readonly string[]> {
  const touched: string[] = [];
  const wanted = (name: string) => only.length === 0 || only.includes(name);
  await runInDurableObject(stub, (instance, state) => {
    for (let proto = Object.getPrototypeOf(instance); proto !== null; proto = Object.getPrototypeOf(proto))
      patch(proto);
    watched.set(String(state.id), (name) => {
      if (wanted(name)) touched.push(name);
    });
  });
  return touched;
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
        watched.get(String(this.ctx?.id))?.(name);
        return method.apply(this, args);
      },
    });
  }
}
