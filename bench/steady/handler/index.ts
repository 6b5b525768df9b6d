/** The handler of the steady load, bound to the queue or in its Worker: it works 1 ms, and counts how long jobs waited. */
import { defineHandlers } from '../../../src/handler';
import { Histogram } from '../histogram.mjs';

let waited = new Histogram();
let silentUntil = 0;

/** Which the jobs of a call that begin in the same turn share. */
let pausing: Promise<void> | undefined;

/** Waits. The runtime ends the timers of a request one after the other, a millisecond each: 64 jobs would take 64. */
function pause(ms: number): Promise<void> {
  if (!pausing) {
    pausing = scheduler.wait(ms);
    queueMicrotask(() => {
      pausing = undefined;
    });
  }
  return pausing;
}

export const handlers = defineHandlers({
  'steady.work': async (job) => {
    const silentMs = silentUntil - Date.now();
    if (silentMs > 0) await pause(silentMs);
    waited.record(Date.now() - (job.args[0] as number));
    await pause(1);
  },
  /** For so long no job is answered. */
  'steady.silence': (job) => {
    silentUntil = Date.now() + (job.args[0] as number);
  },
  /** The counts since it was last asked. */
  'steady.starts': () => {
    const { counts, max } = waited.toJSON();
    waited = new Histogram();
    return { counts, max };
  },
});

export default handlers;
