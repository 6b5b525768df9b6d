/** Leases of allowances from the desks of shared keys: derived messages, so the outbox relay repeats what fails. */
import { derived, type MessageKind } from '../../../durable/outbox-relay';
import { plainKey, scopedKey } from '../../../job/limits/policy';
import type { LeaseAnswer } from '../../../rpc/allowances';
import type { Host } from '../../feature';
import { decide } from '../../jobs/limit-check';
import { runningOf } from '../../store/limits/place';
import type { QueueParts } from '../../store/parts';

export function leasing(host: Host): MessageKind<void> {
  const { q } = host;
  const { allowances } = q.store;
  return derived({
    kind: 'allowance of',
    open: () => {
      const now = host.now();
      return allowances.open(now, q.config.isClosed(now));
    },
    deliver: (key) => ask(host, key),
  });
}

async function ask({ q, others, now, write }: Host, key: string): Promise<void> {
  const { allowances, limiters } = q.store;
  const holder = allowances.of(key);
  const situation = allowances.situation(key, now());
  if (!holder?.hasToAsk(situation)) return;
  const request = holder.ask(q.name, situation);
  let answer: LeaseAnswer;
  try {
    answer = await others.desk(plainKey(key)).lease(request);
  } catch (error) {
    holder.failed(request);
    throw error;
  }
  holder.answered(request, answer, now());
  const act = (at: number): boolean => {
    limiters.touch(key);
    allowances.mayAsk(key);
    const limiter = limiters.find(key);
    if (!limiter || limiter.isUndecided(runningOf(q, key), at)) return false;
    limiter.hasArrived = false;
    return decide(q, limiter, at);
  };
  while (await write(act));
}

/** The desk of a key calls. @param recall as of the verb @returns that the queue is there */
export function deskCalls(q: QueueParts, key: string, recall: { most?: number } | undefined, now: number): boolean {
  const { allowances, limiters } = q.store;
  const scoped = scopedKey(key, 'deployment');
  allowances.of(scoped)?.called(recall, now);
  allowances.mayAsk(scoped);
  limiters.touch(scoped);
  return true;
}
