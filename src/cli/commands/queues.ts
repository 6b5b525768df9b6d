import type { TocsinClient } from '../../client/client';
import type { QueueOverview } from '../../client/queue-config';
import { didYouMean } from '../../job/near-miss';
import { NotFoundError } from '../../producer/errors';
import { action, resource } from '../command';
import { CliError } from '../failure';
import { shellWord } from '../output';
import { listed } from '../resource';
import type { Column } from '../views';

const COUNTS = ['available', 'active', 'scheduled', 'retryable', 'pending', 'completed', 'discarded'] as const;

const COLUMNS: readonly Column<QueueOverview>[] = [
  ['QUEUE', ({ name }) => name],
  ['STATUS', ({ status }) => status],
  ...COUNTS.map((state): Column<QueueOverview> => [state.toUpperCase(), ({ counts }) => counts[state]]),
];

const NONE = 'No queues yet. A queue is created by its first job.';

const set = (name: 'pause' | 'resume', summary: string) =>
  action(name, summary, {}, async ({ tocsin }, queue) => {
    const state = await tocsin.queues[name](queue).catch(async (error: unknown) => {
      throw error instanceof NotFoundError ? await unknownQueue(tocsin, queue) : error;
    });
    return { value: { queue: state }, text: `${state.name}  ${state.status}` };
  });

export const queues = resource(
  action('queues', 'list queues and how many jobs they have', {}, (opened) =>
    listed(opened, 'queues', opened.tocsin.queues.overview(), COLUMNS, NONE),
  ),
  [['<queue>', 'name of the queue']],
  [
    set('pause', 'pause a queue: it accepts jobs but hands none out'),
    set('resume', 'resume a queue'),
    action('create', 'create a queue before its first job, for example to pause it', {}, async ({ tocsin }, name) => {
      const config = await tocsin.queues.create(name);
      return { value: { queue: { name, config } }, text: `${name}  created` };
    }),
  ],
);

/** The failure for a queue that does not exist, with the name that was probably meant. */
async function unknownQueue(tocsin: TocsinClient, queue: string): Promise<CliError> {
  const names: string[] = [];
  try {
    for await (const { name } of tocsin.queues.list()) names.push(name);
  } catch {
    // A key need not be able to list them.
  }
  const hint = didYouMean(queue, names).trim() || `Create it with: tocsin queues create ${shellWord(queue)}`;
  return new CliError(`There is no queue ${queue}.`, hint, 'not_found');
}
