/** The queues of the crash test, and what is known of them beforehand. */

/** Time limit of a pushed run, ms. */
export const PUSH_TIMEOUT_MS = 2_000;
/** The same of one with durable steps: nine of them, each of which tells what it does, take two seconds where many run at once, and longer on a busy machine. */
export const DURABLE_TIMEOUT_MS = 10_000;
/** The same of one that waits for others: it tells a dozen things at most. */
export const CHILD_TIMEOUT_MS = 5_000;
/** A pushed attempt that a crash cut off is given up this long after its time limit, ms. */
export const PUSH_GRACE_MS = 10_000;

/** Takes only the jobs of quiet rounds, so that no run is cut off there and nothing holds its jobs up. */
export const QUIET_QUEUE = 'push-quiet';

/** Gets its first jobs a moment before the last crash: what wakes it afterwards was stored with them. */
export const LAST_QUEUE = 'push-last';

/** Of single jobs, batches and workflows. `push`: only handlers work here; `pull`: only workers do; `mixed`: both. */
export const QUEUES = { 'push-a': 'push', 'push-b': 'push', 'pull-a': 'pull', 'pull-b': 'pull', mixed: 'mixed' };
/** Of cron entries. */
export const CRON_QUEUES = { 'cron-push': 'push', 'cron-pull': 'pull' };
/** Of unique jobs, all of one type: the queue decides who works. */
export const UNIQUE_QUEUES = { 'unique-push': 'push', 'unique-pull': 'pull', 'unique-more': 'pull' };
/** Where operators are at work: they pause, redrive, change and cancel. */
export const OPS_QUEUES = { 'ops-push': 'push', 'ops-pull': 'pull' };

/** Of jobs with durable steps: over open calls, one to a call, and pulled by the client's own runner. */
export const DURABLE_QUEUES = { 'durable-push': 'push', 'durable-single': 'push', 'durable-pull': 'pull' };

/** Of jobs that wait for others, and of those: some start jobs of their own queue, some of the others. */
export const CHILD_QUEUES = { 'child-home': 'push', 'child-away': 'push', 'child-pull': 'pull' };

/** Of groups in a strict order. */
export const ORDERED_QUEUES = { 'order-push': 'push', 'order-pull': 'pull' };

/** All of them, by the way their jobs are run. */
export const KINDS = {
  ...{
    ...QUEUES,
    ...CRON_QUEUES,
    ...UNIQUE_QUEUES,
    ...OPS_QUEUES,
    ...DURABLE_QUEUES,
    ...CHILD_QUEUES,
    ...ORDERED_QUEUES,
  },
  ...{ [QUIET_QUEUE]: 'push', [LAST_QUEUE]: 'push' },
};
/** All of them, for the audits. */
export const ALL = Object.keys(KINDS);
/** Where the test's own workers fetch. */
export const PULLED = ALL.filter(
  (name) => KINDS[name] !== 'push' && !(name in DURABLE_QUEUES) && !(name in CHILD_QUEUES),
);
/** Where only handlers work: everything that is due there happens although nobody asks for it. */
export const PUSHED = ALL.filter((name) => KINDS[name] === 'push');

/** The server's `HANDLERS`: some queues get batches, others one job to a call; elsewhere the type decides. */
export const HANDLERS = {
  'push-a/*': { binding: 'HANDLER', timeout_ms: PUSH_TIMEOUT_MS },
  'push-b/*': { binding: 'HANDLER', timeout_ms: PUSH_TIMEOUT_MS, payload: 'envelope' },
  'unique-push/*': { binding: 'HANDLER', timeout_ms: PUSH_TIMEOUT_MS },
  'durable-push/*': { binding: 'HANDLER', timeout_ms: DURABLE_TIMEOUT_MS },
  'durable-single/*': { binding: 'HANDLER', timeout_ms: DURABLE_TIMEOUT_MS, payload: 'envelope' },
  'child-home/*': { binding: 'HANDLER', timeout_ms: CHILD_TIMEOUT_MS },
  'child-away/*': { binding: 'HANDLER', timeout_ms: CHILD_TIMEOUT_MS, payload: 'envelope' },
  'push.*': { binding: 'HANDLER', timeout_ms: PUSH_TIMEOUT_MS, batch_size: 5 },
};
