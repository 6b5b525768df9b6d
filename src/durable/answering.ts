/** Objects that answer by a table of verbs. */
import { DurableObject } from 'cloudflare:workers';

type Call = (...args: never[]) => unknown;

/** The methods of `Api`, each as a function of the `Life` behind the object. */
export type Verbs<Life, Api> = {
  [K in keyof Api]: Api[K] extends Call
    ? (life: Life, ...args: Parameters<Api[K]>) => ReturnType<Api[K]> | Awaited<ReturnType<Api[K]>>
    : never;
};

/** A class of objects with the verbs on its prototype, where the runtime looks for methods callable over RPC. */
export function answering<Env, Life, Api>(verbs: Verbs<Life, Api>) {
  abstract class Answering extends DurableObject<Env> {
    abstract readonly life: Life;
  }
  for (const [name, verb] of Object.entries(verbs) as [string, (life: Life, ...args: unknown[]) => unknown][]) {
    Object.defineProperty(Answering.prototype, name, {
      // Like a method that is written in a class.
      writable: true,
      configurable: true,
      value(this: Answering, ...args: unknown[]) {
        return verb(this.life, ...args);
      },
    });
  }
  return Answering as unknown as new (
    ctx: DurableObjectState,
    env: Env,
  ) => DurableObject<Env> & Api;
}
