import type { JobEnvelope } from '../../producer/envelope';
import { action, condition, limitOf, resource } from '../command';
import { CliError, usageError } from '../failure';
import { BULK_WAIT, listed } from '../resource';
import { ago, type Column } from '../views';

const COLUMNS: readonly Column<JobEnvelope>[] = [
  ['ID', ({ id }) => id],
  ['QUEUE', ({ queue }) => queue],
  ['TYPE', ({ type }) => type],
  ['ATTEMPT', ({ attempt, maxAttempts }) => `${attempt}/${maxAttempts}`],
  ['DISCARDED', ({ discardedAt }, now) => ago(discardedAt, now)],
  ['LAST ERROR', ({ error }) => (error ? `${error.type}: ${error.message}` : '')],
];

const FILTERS = {
  queue: ['--queue <name>', 'only this queue', condition],
  type: ['--type <type>', 'only this job type', condition],
  errorType: ['--error-type <type>', 'only jobs whose last error has this type', condition],
  group: ['--group <name>', 'only jobs of this group', condition],
} as const;

export const dead = resource(
  action(
    'dead',
    'list dead letters: discarded jobs kept for review',
    { flags: { ...FILTERS, limit: limitOf('dead letters') } },
    (opened) => {
      const { limit, ...query } = opened.members;
      return listed(opened, 'jobs', opened.tocsin.deadLetters.list(query, { limit }), COLUMNS, 'No dead letters.');
    },
  ),
  [],
  [
    // Its filters stand on both sides: commander reads what comes before `retry` as those of `dead`.
    action(
      'retry',
      'retry dead letters: one, or all that match',
      {
        takes: [['[id]', 'id of one dead letter']],
        flags: { ...FILTERS, all: ['--all', 'all dead letters of all queues'] },
      },
      async ({ tocsin, members: { all, ...query } }, id) => {
        const isFiltered = Object.keys(query).length > 0;
        if (isFiltered && all) throw usageError('--all cannot be combined with other conditions.');
        if (id !== undefined) {
          if (isFiltered || all) throw usageError('Give an id or a selection, not both.');
          const job = await tocsin.deadLetters.retry(id);
          const value = { succeeded: 1, failed: 0, jobs: [job] };
          return { value, text: `${job.id}  ${job.state}  ${job.queue}` };
        }
        if (!isFiltered && !all) {
          throw usageError('Which dead letters?', 'Give an id, --type, --queue, --group, --error-type or --all.');
        }
        const begun = await tocsin.deadLetters.retryMany(isFiltered ? query : 'all');
        const done = await tocsin.bulk.wait(begun, BULK_WAIT);
        const { matched, succeeded, skipped, failed, items } = done;
        return {
          value: { matched, succeeded, skipped, failed, items },
          text: `${succeeded} of ${matched} retried.`,
          failure: failed > 0 ? new CliError(`${failed} remain dead letters.`, 'tocsin dead', 'partial') : undefined,
        };
      },
    ),
  ],
);
