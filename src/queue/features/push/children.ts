/**
 * Jobs that a handler enqueues with its answer, because its call had no live connection. They are validated before the
 * answer is written, and written with it as messages. So they are enqueued once if the answer counts, and not at all
 * otherwise.
 */

import type { TargetConfig } from '../../../dispatch/config';
import { type MessageKind, posted } from '../../../durable/outbox-relay';
import { errorDataOf } from '../../../durable/platform-errors';
import { type Parent, parseChildren } from '../../../job/envelope/children';
import type { ParsedJob } from '../../../job/envelope/parse';
import { refusal } from '../../../job/errors';
import { bytesOf, grouped } from '../../../job/size';
import type { Host } from '../../feature';

/** The kind of their outbox messages. */
export const CHILDREN = 'children';

/** Bytes of the jobs in one outbox message, unless a single one is larger: a row holds 2 MB. */
const MAX_MESSAGE_BYTES = 512 * 1024;

interface ChildrenMessage {
  parent: Parent;
  /** When they were enqueued, epoch ms: delays count from then. */
  at: number;
  /** As the handler wrote them. */
  children: unknown[];
}

/** The queues in which the handler's target may enqueue. */
export type Enqueuer = Pick<TargetConfig, 'name' | 'mayEnqueue'>;

/** Reads the jobs. @throws {ApiError} as {@link parseChildren}; 403 for a queue in which the target may not enqueue */
export async function childrenOf(
  target: Enqueuer,
  children: unknown,
  parent: Parent,
  now: number,
): Promise<ParsedJob[]> {
  const jobs = await parseChildren(children, parent, now);
  const { name, mayEnqueue } = target;
  if (mayEnqueue === undefined || mayEnqueue.includes('*')) return jobs;
  const elsewhere = jobs.find(({ queue }) => !mayEnqueue.includes(queue))?.queue;
  if (elsewhere === undefined) return jobs;
  const message = `${name} may not enqueue in queue ${elsewhere}: its mapping in HANDLERS does not list it in may_enqueue.`;
  throw refusal(403, 'forbidden', message, { details: { queue: elsewhere } });
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
  const groups = grouped(children as unknown[], (child) => bytesOf(JSON.stringify(child)), MAX_MESSAGE_BYTES);
  return Array.from(groups, (group) => JSON.stringify({ parent, at, children: group } satisfies ChildrenMessage));
}

/**
 * Their delivery. The result for a message's key is remembered, so a repeated message enqueues nothing twice. One child
 * that is refused for good does not affect the others: they continue in a message of their own, under another key. That
 * message is written before it is sent, so the first one cannot come back, even if the refusal would not be repeated.
 */
export function childMessages({ q, write, others }: Host): MessageKind {
  return posted(q.store.outbox, write, {
    kind: CHILDREN,
    send: async (address, [{ data }], taken) => {
      const { parent, at, children } = JSON.parse(data) as ChildrenMessage;
      try {
        // The number of the messages written before each refusal got a message of its own.
        const once = { key: `children\n${address}\n0`, hash: '' };
        await others.enqueue(await parseChildren(children, parent, at), once);
      } catch (error) {
        const refused = errorDataOf(error);
        if (!refused || refused.retryable) throw error;
        console.error(`tocsin: a job that ${parent.id} enqueued was refused:`, refused.message);
        const { index } = refused.details ?? {};
        const rest = children.toSpliced(typeof index === 'number' ? index : 0, 1);
        await taken((now) => {
          const message: ChildrenMessage = { parent, at, children: rest };
          if (rest.length > 0)
            q.store.outbox.post(CHILDREN, addressOfRest(address, rest.length), JSON.stringify(message), now);
        });
        return;
      }
      await taken(() => undefined);
    },
  });
}

/** The outbox message with the remaining jobs of another one: unique, since there are fewer each time. */
function addressOfRest(address: string, left: number): string {
  const [delivery, message] = address.split(' ');
  return `${delivery} ${message} ${left}`;
}
