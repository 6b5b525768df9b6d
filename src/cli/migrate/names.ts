/** The names that queues, types, schedules and jobs of another system get here. The same ones each time. */
import { createHash } from 'node:crypto';
import { isJobType, isQueueName } from '../../job/envelope/names';
import { isCronName } from '../../schedules/definition';
import { usageError } from '../failure';
import type { FoundJob } from './found';

type Origin = Pick<FoundJob, 'id' | 'queue' | 'name'>;

export interface Renamed {
  queue?: string;
  type?: string;
}

/** Reads `<their name>=<queue>[:<type>]`; of queue and type one may be empty. @throws {CliError} */
export const readAs = (given: readonly string[]): Map<string, Renamed> =>
  new Map(
    given.map((text) => {
      const at = text.lastIndexOf('=');
      const [queue = '', type = ''] = text.slice(at + 1).split(':', 2);
      const isRead = at > 0 && (queue !== '' || type !== '');
      if (!isRead || (queue !== '' && !isQueueName(queue)) || (type !== '' && !isJobType(type))) {
        const hint = 'Write --as "SendEmail=mail:email.send", or only a queue (mail), or only a type (:email.send).';
        throw usageError(`--as ${text} does not say what a name becomes.`, hint);
      }
      return [text.slice(0, at), { ...(queue !== '' && { queue }), ...(type !== '' && { type }) }];
    }),
  );

/** The words of a name: split at capitals and at anything but letters and digits. Accents go; other scripts stay. */
const words = (name: string, isKept: RegExp): string[] =>
  name
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1 $2')
    .toLowerCase()
    .split(isKept)
    .filter((word) => word !== '');

/** The name if it is a job type, else its words joined by dots: `SendEmail` is `send.email`, `step 2` `step-2`. */
export function typeOf(name: string): string {
  if (isJobType(name)) return name;
  const parts = words(name, /[^\p{L}\p{N}_-]+/u);
  return parts.map((word, at) => (at === 0 ? word : joint(word) + word)).join('');
}

/** Each part of a type starts with a letter. */
const joint = (word: string): string => (/^\p{L}/u.test(word) ? '.' : '-');

/** The name of a queue: the same where it can be, else its words joined by hyphens. `High_Prio` becomes `high-prio`. */
export const queueOf = (name: string): string => (isQueueName(name) ? name : words(name, /[^\p{L}\p{N}.]+/u).join('-'));

/** Where a job goes: by `--as` for its name, else by `--as` for its queue, else by its own names. */
export function placeOf({ queue, name }: Pick<Origin, 'queue' | 'name'>, renamed: ReadonlyMap<string, Renamed>) {
  const [ofName, ofQueue] = [renamed.get(name), renamed.get(queue)];
  return {
    queue: ofName?.queue ?? ofQueue?.queue ?? queueOf(queue),
    type: ofName?.type ?? ofQueue?.type ?? typeOf(name),
  };
}

/** The name of a schedule. Where something of theirs is lost in it, a hash of theirs tells it from others. */
export function scheduleNameOf(system: string, { queue, id }: Pick<Origin, 'queue' | 'id'>): string {
  const plain = `${queue}.${id}`;
  const name = `${system}.${words(plain, /[^a-z0-9.]+/).join('-')}`.slice(0, 200);
  if (name === `${system}.${plain}` && isCronName(name)) return name;
  return `${name}-${createHash('sha256').update(plain).digest('hex').slice(0, 8)}`;
}

/** A UUIDv7 of a job's creation and a hash of its identity, so it moves once. @param within the prefix or schema */
export function idOf(
  system: string,
  within: string,
  { queue, id, createdAt, hasOwnId }: Pick<FoundJob, 'queue' | 'id' | 'createdAt' | 'hasOwnId'>,
): string {
  const origin = JSON.stringify([system, within, hasOwnId ? '' : queue, id]);
  const digest = createHash('sha256').update(origin).digest('hex');
  const ms = Math.min(Math.max(0, Math.floor(createdAt) || 0), 2 ** 48 - 1);
  const time = ms.toString(16).padStart(12, '0');
  const variant = (0x8 + (Number.parseInt(digest[3] as string, 16) % 4)).toString(16);
  const parts = [time.slice(0, 8), time.slice(8), `7${digest.slice(0, 3)}`, variant + digest.slice(4, 7)];
  return [...parts, digest.slice(7, 19)].join('-');
}
