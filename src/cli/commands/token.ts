import type { TokenOptions } from '../../client/tokens';
import { action, list } from '../command';

/** Prints a token alone, for scripts. */
export const token = action(
  'token',
  'make a token for a browser',
  {
    flags: {
      job: ['--job <id>', 'job that may be read, or signalled'],
      read: ['--read', 'allow reading state, progress and result of the job'],
      signals: ['--signal <name>', 'signal that may be sent to the job; a list, or several times', list],
      type: ['--enqueue <type>', 'allow enqueuing one job of this type'],
      queue: ['--queue <name>', 'queue of that job'],
      group: ['--group <name>', 'group of that job'],
      expiresIn: ['--expires <duration>', 'lifetime, at most 24h; default 15m'],
    },
  },
  async ({ tocsin, members: { type, queue, group, ...rights } }) => {
    const enqueue = type === undefined ? {} : { enqueue: { type, queue, group } };
    const made = await tocsin.tokens.create({ ...rights, ...enqueue } as TokenOptions);
    return { value: made, text: made.token };
  },
);
