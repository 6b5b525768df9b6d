/** Makes up jobs: where they go, when they may run, how often they fail, and what the checker must know of them. */
import { DURABLE_QUEUES, DURABLE_TIMEOUT_MS, KINDS, PUSH_TIMEOUT_MS, QUEUES } from '../queues.mjs';

/** Jobs parked this far in the future must still wait when the test ends, ms. */
export const PARKED_MS = 3_600_000;

export class Planner {
  #ledger;
  #prefix;
  #count = 0;

  /** @param prefix makes the tokens of this planner its own */
  constructor(ledger, prefix) {
    this.#ledger = ledger;
    this.#prefix = prefix;
  }

  /**
   * A new job as it is sent, under a token of its own. It is in the ledger from now on.
   * @param want.timing `now`, `soon`, `parked` or `pending`; absent: the dice decide
   * @param want.id an id chosen by the client
   * @param want.maxAttempts, want.onExhaustion absent: the dice decide
   * @param want.extra more that the checker must know of it
   * @param want.args, want.options more members of its argument and its options
   */
  job(random, want = {}) {
    const token = `${this.#prefix}-${this.#count++}`;
    const queue = want.queue ?? random.pick(Object.keys(QUEUES));
    const kind = KINDS[queue];
    const type = want.type ?? (kind === 'mixed' ? random.pick(['push.work', 'pull.work']) : `${kind}.work`);
    const timing = want.timing ?? random.weighted({ now: 72, soon: 20, parked: 4, pending: 4 });
    const isPushed = kind === 'push' || type === 'push.work';
    const plan = { token, ...(want.plan ?? makePlan(random, isPushed)) };
    const maxAttempts =
      want.maxAttempts ?? (plan.end === 'exhaust' ? random.int(1, 3) : plan.failures + random.int(4, 8));
    const onExhaustion = want.onExhaustion ?? (random.chance(0.3) ? 'dead_letter' : 'discard');
    const wait = want.waitMs ?? random.int(200, 4_000);
    const relative = timing === 'soon' && random.chance(0.5);
    const now = Date.now();
    const at = timing === 'soon' ? now + wait : timing === 'parked' ? now + PARKED_MS : undefined;
    this.#ledger.addJob({
      ...{ token, queue, type, plan, maxAttempts, onExhaustion },
      ...{ parked: timing === 'parked', pending: timing === 'pending' },
      ...(at !== undefined && { notBefore: at, relative }),
      ...(want.id !== undefined && { chosenId: want.id }),
      ...want.extra,
    });
    return {
      ...(want.id !== undefined && { id: want.id }),
      type,
      args: [{ ...plan, ...want.args }],
      options: {
        queue,
        ...(isPushed && { timeout_ms: queue in DURABLE_QUEUES ? DURABLE_TIMEOUT_MS : PUSH_TIMEOUT_MS }),
        ...(random.chance(0.2) && { priority: random.int(-3, 3) }),
        ...(at !== undefined && { scheduled_at: relative ? `+PT${wait / 1000}S` : new Date(at).toISOString() }),
        ...(timing === 'pending' && { pending: true }),
        retry: {
          max_attempts: maxAttempts,
          initial_interval_ms: random.int(50, 600),
          backoff_strategy: random.pick(['constant', 'linear']),
          jitter: random.chance(0.5),
          on_exhaustion: onExhaustion,
        },
        ...want.options,
      },
    };
  }
}

function makePlan(random, isPushed) {
  const end = random.weighted({ complete: 94, exhaust: 3, fatal: 3 });
  const failures = Number(random.weighted({ 0: 75, 1: 12, 2: 8, 3: 5 }));
  const hangs = isPushed && random.chance(0.01);
  return { failures, end, work_ms: random.int(0, 60), ...(hangs && { hang_ms: 3_000 }) };
}
