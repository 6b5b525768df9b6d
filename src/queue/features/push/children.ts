/**
 * Jobs that a handler enqueues with its answer, because its call had no live connection. They are validated before the
 * answer is written, and written with it as messages. So they are enqueued once if the answer counts, and not at all
 * otherwise.
 */

import { v7 as uuidv7 } from 'uuid';
import { type MessageKind, posted } from '../../../durable/outbox-relay';
import { errorDataOf } from '../../../durable/platform-errors';
import type { Enqueuer } from '../../../job/attempt/outcome';
import { type Parent, parseChildren, parseEachChild } from '../../../job/envelope/children';
import type { ParsedJob } from '../../../job/envelope/parse';
import { ApiError, type ErrorData } from '../../../job/errors';
import { byMessage } from '../../../job/size';
import type { IdempotencyKey } from '../../../rpc/receipts';
import type { Host } from '../../feature';
import { refuseElsewhere } from '../../jobs/may-enqueue';

export const CHILDREN = 'children';

interface ChildrenMessage {
  parent: Parent;
  /** When they were enqueued, epoch ms: delays count from then. */
  at: number;
  children: Record<string, unknown>[];
  /** They were refused together: each is judged alone. */
  each?: true;
}

/** Reads the jobs. @throws {ApiError} as {@link parseChildren}; 403 for a queue in which the target may not enqueue */
export async function childrenOf(
  target: Enqueuer,
  children: unknown,
  parent: Parent,
  now: number,
): Promise<ParsedJob[]> {
  const jobs = await parseChildren(children, parent, now);
  for (const { queue } of jobs) refuseElsewhere(target, queue);
  return jobs;
}

/** The outbox messages that carry these jobs, as JSON texts. @throws {ApiError} as {@link childrenOf} */
export async function messagesWith(
  target: Enqueuer,
  children: unknown,
  { id, meta }: Parent,
  at: number,
): Promise<string[]> {
  await childrenOf(target, children, { id, meta }, at);
  const { traceparent } = meta;
  const parent: Parent = { id, meta: traceparent === undefined ? {} : { traceparent } };
  const groups = byMessage(children as ChildrenMessage['children'], (child) => child);
  return Array.from(groups, (group) => JSON.stringify({ parent, at, children: group } satisfies ChildrenMessage));
}

/**
 * Their delivery. The result for a message's key is remembered, so a repeated message enqueues nothing twice. What is
 * refused as a whole is divided: then each job is judged alone. Those that were taken, or refused for good, leave the
 * message; the others continue in a message of their own, under another key. A message is written before it is sent, so
 * the one that it replaces cannot come back, even if the refusal would not be repeated.
 */
export const childMessages = ({ q, write, others }: Host): MessageKind =>
  posted(q.store.outbox, write, {
    kind: CHILDREN,
    send: async (address, [{ data }], taken) => {
      const message = JSON.parse(data) as ChildrenMessage;
      const { parent, at, children, each } = message;
      const replace = (by: readonly ChildrenMessage[]) =>
        taken((now) => {
          const [delivery] = address.split(' ');
          for (const one of by) q.store.outbox.post(CHILDREN, `${delivery} ${uuidv7()}`, JSON.stringify(one), now);
        });
      const once = { key: `children\n${address}\n${each ? 'each' : 0}`, hash: '' };
      try {
        if (!each) await others.enqueue(await parseChildren(children, parent, at), once);
        const left = each ? await leftOf(others, message, once) : [];
        await replace(left.length > 0 ? [{ ...message, children: left }] : []);
      } catch (error) {
        const refused = errorDataOf(error);
        const isFull = refused?.status === 429 && children.length > 1 && !each;
        if (!refused || (refused.retryable && !isFull)) throw error;
        if (children.length === 1) noteRefused(parent, refused);
        const half = each ? Math.ceil(children.length / 2) : children.length;
        const parts = [children.slice(0, half), children.slice(half)].filter(({ length }) => length > 0);
        await replace(children.length === 1 ? [] : parts.map((part) => ({ ...message, children: part, each: true })));
      }
    },
  });

/** Enqueues each of these jobs that is accepted now. @returns those that must be sent again @throws if all must */
async function leftOf(
  others: Host['others'],
  { parent, at, children }: ChildrenMessage,
  once: IdempotencyKey,
): Promise<ChildrenMessage['children']> {
  const { outcomes, replayed } = await others.enqueueEach(await parseEachChild(children, parent, at), once);
  const later: ErrorData[] = [];
  const left = children.filter((_, index) => {
    const outcome = outcomes[index];
    if (!outcome || outcome.ok) return false;
    if (!outcome.error.retryable) noteRefused(parent, outcome.error);
    else later.push(outcome.error);
    return outcome.error.retryable;
  });
  const [first] = later;
  // A remembered answer stays as it is: the jobs are sent again under another key.
  if (first && left.length === children.length && !replayed) throw new ApiError(first);
  return left;
}

function noteRefused(parent: Parent, { message }: ErrorData): void {
  console.error(`tocsin: a job that ${parent.id} enqueued was refused:`, message);
}
