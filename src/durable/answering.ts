import { DurableObject } from 'cloudflare:workers';

/** A table of verbs: each is a function of the `Life` behind the object, and of the arguments of a call. */
export type Verbs<Life> = Readonly<Record<string, (life: Life, ...args: never[]) => unknown>>;

/** What an object answers over RPC by a table of verbs. */
export type Answers<Table> = {
  [Verb in keyof Table]: Table[Verb] extends (life: never, ...args: infer Args) => infer Answer
    ? (...args: Args) => Promise<Awaited<Answer>>
    : never;
};

/** A class of objects with the verbs on its prototype, where the runtime looks for methods callable over RPC. */
export function answering<Env, Life, Api>(verbs: Verbs<Life>) {
  abstract class Answering extends DurableObject<Env> {
    abstract readonly life: Life;
  }
  for (const [name, verb] of Object.entries<(life: Life, ...args: never[]) => unknown>(verbs)) {
    Object.defineProperty(Answering.prototype, name, {
      // Like a method that is written in a class.
      writable: true,
      configurable: true,
      value(this: Answering, ...args: never[]) {
        return verb(this.life, ...args);
      },
    });
  }
  return Answering as unknown as new (
    ctx: DurableObjectState,
    env: Env,
  ) => DurableObject<Env> & Api;
}
