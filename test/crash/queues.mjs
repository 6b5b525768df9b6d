/** The queues of the crash test, and what is known of them beforehand. */

/** Time limit of a pushed run, ms. */
export const PUSH_TIMEOUT_MS = 2_000;
/** A pushed attempt that a crash cut off is given up this long after its time limit, ms. */
export const PUSH_GRACE_MS = 10_000;

/** Takes only the jobs of quiet rounds, so that no run is cut off there and nothing holds its jobs up. */
export const QUIET_QUEUE = 'push-quiet';

/** Gets its first jobs a moment before the last crash: what wakes it afterwards was stored with them. */
export const LAST_QUEUE = 'push-last';

/** `push`: only handlers work here; `pull`: only workers do; `mixed`: both. */
export const QUEUES = { 'push-a': 'push', 'push-b': 'push', 'pull-a': 'pull', 'pull-b': 'pull', mixed: 'mixed' };
/** All of them, for the audits. */
export const ALL = [...Object.keys(QUEUES), QUIET_QUEUE, LAST_QUEUE];
export const PULLED = Object.keys(QUEUES).filter((name) => QUEUES[name] !== 'push');
export const PUSHED = Object.keys(QUEUES).filter((name) => QUEUES[name] === 'push');

/** The server's `HANDLERS`: one queue gets batches, the other one job to a call; elsewhere the type decides. */
export const HANDLERS = {
  'push-a/*': { binding: 'HANDLER', timeout_ms: PUSH_TIMEOUT_MS },
  'push-b/*': { binding: 'HANDLER', timeout_ms: PUSH_TIMEOUT_MS, payload: 'envelope' },
  'push.*': { binding: 'HANDLER', timeout_ms: PUSH_TIMEOUT_MS, batch_size: 5 },
};
