/** The end of a run that continues later, as middleware sees it. */
import { memberOf } from '../job/thrown';

const MARK = Symbol.for('tocsin.suspended');

/**
 * What `next()` of a middleware throws when the run ends in a `ctx.sleep`, a `ctx.waitFor`, or a step that waits for
 * another call. Nothing failed. The handler itself does not see it: there, the call that ended the run never returns.
 */
export class SuspendedError extends Error {
  static {
    Object.defineProperty(SuspendedError.prototype, 'name', { value: 'SuspendedError', configurable: true });
    Object.defineProperty(SuspendedError.prototype, MARK, { value: true });
  }
}

/** Does this error end a run that continues later? Then nothing failed. */
export function isSuspended(error: unknown): boolean {
  return memberOf(error, MARK) === true;
}
