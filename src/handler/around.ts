/** What surrounds every run of a handler Worker: middleware, and hooks after failures. */
import { endsJob, type Failure } from './failure';
import { atMost } from './timing';
import type { HandlerContext, HandlerFunction, Job } from './types';
import type { FailureHook, Middleware } from './worker-types';

/** What is around all handlers. */
export interface Around {
  use?: readonly Middleware[] | undefined;
  onFailed?: FailureHook | undefined;
  onDiscarded?: FailureHook | undefined;
}

/** @throws {TypeError} when something in it is none */
export function checkAround({ use, onFailed, onDiscarded }: Around): void {
  if (use !== undefined && !(Array.isArray(use) && use.every((each) => typeof each === 'function'))) {
    throw new TypeError('defineHandlers: option use must be a list of functions');
  }
  for (const [name, hook] of Object.entries({ onFailed, onDiscarded })) {
    if (hook !== undefined && typeof hook !== 'function') {
      throw new TypeError(`defineHandlers: option ${name} must be a function`);
    }
  }
}

/** Does anything of it take the context? */
export const takesContext = ({ use = [], onFailed, onDiscarded }: Around): boolean =>
  use.length > 0 || [onFailed, onDiscarded].some((hook) => hook !== undefined && hook.length > 1);

/** Runs a handler; `guard` is what surrounds the handler itself. */
export type Surrounded = (
  job: Job,
  ctx: HandlerContext,
  guard: (handler: Promise<unknown>) => Promise<unknown>,
) => unknown;

/** The handler inside of the middleware; the first one is the outermost. */
export function within(use: readonly Middleware[], run: HandlerFunction): Surrounded {
  const innermost: Surrounded = (job, ctx, guard) => guard((async () => run(job, ctx))());
  return use.reduceRight<Surrounded>(
    (inner, middleware) => (job, ctx, guard) => {
      let isCalled = false;
      const next = async (): Promise<unknown> => {
        if (isCalled) throw new Error('next() was called twice by one middleware');
        isCalled = true;
        return await inner(job, ctx, guard);
      };
      return middleware(job, ctx, next);
    },
    innermost,
  );
}

/** Notifies the hooks of a failed attempt, for at most `patienceMs`. `complain` gets what they throw. */
export async function tellHooks(
  around: Around,
  failed: { job: Job; ctx: HandlerContext; thrown: unknown; failure: Failure; attempt: number },
  patienceMs: number,
  complain: (name: string, error: unknown) => void,
): Promise<void> {
  const { job, ctx, thrown, failure, attempt } = failed;
  const told = { onFailed: true, onDiscarded: endsJob(failure, job, attempt) };
  const tell = async (name: keyof typeof told): Promise<void> => {
    try {
      if (told[name]) await around[name]?.(job, ctx, thrown);
    } catch (error) {
      complain(name, error);
    }
  };
  if (around.onFailed === undefined && around.onDiscarded === undefined) return;
  const all = tell('onFailed').then(() => tell('onDiscarded'));
  ctx.waitUntil(all);
  await atMost(patienceMs, all);
}
