/**
 * Jobs that a handler enqueues with its answer, because its call had no live line. They are validated before the answer is
 * written, and written with it as letters: so they are enqueued once if the answer counts, and not at all otherwise.
 */
import { type Kind, posted } from '../../../durable/courier';
import { type Parent, parseChildren } from '../../../job/envelope/children';
import { apiErrorData } from '../../../job/errors';
import { bytesOf, grouped } from '../../../job/size';
import type { Host } from '../../feature';

/** The letters of the outbox. */
export const CHILDREN = 'children';

/** Bytes of the jobs in one letter, unless a single one is larger: a row holds 2 MB. */
const MAX_LETTER_BYTES = 512 * 1024;

interface ChildrenLetter {
  parent: Parent;
  /** When they were enqueued, epoch ms: delays count from then. */
  at: number;
  /** As the handler wrote them. */
  children: unknown[];
}

/** The letters that carry these jobs, as JSON texts. @throws {ApiError} as {@link parseChildren} */
export async function lettersWith(children: unknown, { id, meta }: Parent, at: number): Promise<string[]> {
  await parseChildren(children, { id, meta }, at);
  const { traceparent } = meta;
  const parent: Parent = { id, meta: traceparent === undefined ? {} : { traceparent } };
  const groups = grouped(children as unknown[], (child) => bytesOf(JSON.stringify(child)), MAX_LETTER_BYTES);
  return Array.from(groups, (group) => JSON.stringify({ parent, at, children: group } satisfies ChildrenLetter));
}

/**
 * How they are delivered. What came of a letter's key is remembered, so a letter that is sent again enqueues nothing twice.
 * One child that is refused for good costs the others nothing: they go on in a letter of their own, under another key. That
 * is written before it is sent, so a refusal that would not come again cannot bring the first letter back to life.
 */
export function childLetters({ q, write, others }: Host): Kind {
  return posted(q.outbox, write, {
    kind: CHILDREN,
    send: async (address, [{ data }], taken) => {
      const { parent, at, children } = JSON.parse(data) as ChildrenLetter;
      try {
        // The number is that of letters which were written before each refusal had a letter of its own.
        const once = { key: `children\n${address}\n0`, hash: '' };
        await others.enqueue(await parseChildren(children, parent, at), once);
      } catch (error) {
        const refusal = apiErrorData(error);
        if (!refusal || refusal.retryable) throw error;
        console.error(`tocsin: a job that ${parent.id} enqueued was refused:`, refusal.message);
        const { index } = refusal.details ?? {};
        const rest = children.toSpliced(typeof index === 'number' ? index : 0, 1);
        await taken((now) => {
          const letter: ChildrenLetter = { parent, at, children: rest };
          if (rest.length > 0)
            q.outbox.post(CHILDREN, addressOfRest(address, rest.length), JSON.stringify(letter), now);
        });
        return;
      }
      await taken(() => undefined);
    },
  });
}

/** The letter with those that are left of another one: unique, since there are fewer each time. */
function addressOfRest(address: string, left: number): string {
  const [delivery, letter] = address.split(' ');
  return `${delivery} ${letter} ${left}`;
}
