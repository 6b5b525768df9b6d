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

/** How they are delivered. */
export function childLetters({ q, write, others }: Host): Kind {
  return posted(q.outbox, write, {
    kind: CHILDREN,
    send: async (address, [letter], taken) => {
      const { parent, at, children } = JSON.parse(letter.data) as ChildrenLetter;
      const entries = await parseChildren(children, parent, at);
      // One that is refused for good costs the others nothing: nobody waits for the answer.
      for (let round = 0; entries.length > 0; round++) {
        try {
          await others.enqueue(entries, { key: `children\n${address}\n${round}`, hash: '' });
          break;
        } catch (error) {
          const refusal = apiErrorData(error);
          if (!refusal || refusal.retryable) throw error;
          console.error(`tocsin: a job that ${parent.id} enqueued was refused:`, refusal.message);
          const { index } = refusal.details ?? {};
          entries.splice(typeof index === 'number' ? index : 0, 1);
        }
      }
      await taken(() => undefined);
    },
  });
}
