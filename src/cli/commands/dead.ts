import type { FailureGroup } from '../../client/failures';
import type { JobEnvelope } from '../../producer/envelope';
import { action, condition, limitOf, list, resource, stateOf } from '../command';
import { CliError, usageError } from '../failure';
import { BULK_WAIT, listed, tableOf } from '../resource';
import { columns, FAILURES, since } from '../views';

const STATES = ['dead', 'discarded', 'retrying'] as const;

const GROUPS = [...columns<FailureGroup>({ FINGERPRINT: 'fingerprint' }), ...FAILURES];

const CONDITIONS = {
  queue: ['--queue <name>', 'only this queue; a list, or several times', list],
  type: ['--type <type>', 'only this job type; * matches anything', list],
  state: stateOf(STATES, 'jobs', 'a state of a failure'),
} as const;

const SINCE = [
  '--since <when>',
  'only failures after this time (RFC 3339), or in the last such as 24h',
  condition,
] as const;

// Its conditions stand on both sides: commander reads what comes before the verb as those of `failures`.
const acting = (name: 'redrive' | 'discard', summary: string, done: string) =>
  action(name, summary, { flags: CONDITIONS }, async ({ tocsin, members }, fingerprint) => {
    const begun = await tocsin.failures[name](fingerprint, members);
    const { matched, succeeded, skipped, failed } = await tocsin.bulk.wait(begun, BULK_WAIT);
    const answer = { value: { matched, succeeded, skipped, failed }, text: `${succeeded} of ${matched} ${done}.` };
    if (failed === 0) return answer;
    return { ...answer, failure: new CliError(`${failed} could not be changed.`, 'tocsin failures', 'partial') };
  });

export const failures = resource(
  action(
    'failures',
    'group failed jobs by error',
    { flags: { ...CONDITIONS, since: SINCE, limit: limitOf('groups', 200) } },
    async ({ tocsin, members: { limit, ...query }, terminal }) => {
      const { items, searched, more } = await tocsin.failures.list(query);
      const failures = items.slice(0, limit);
      const rest = more ? `\nOnly the newest ${searched} failures were searched.` : '';
      const text = tableOf(failures, GROUPS, 'No failures.', terminal.now()) + rest;
      return { value: { failures, searched, more }, text };
    },
  ),
  [['<fingerprint>', 'fingerprint of the group']],
  [
    acting('redrive', 'retry the jobs of a group', 'retried'),
    acting('discard', 'delete the jobs of a group permanently', 'deleted'),
  ],
);

const COLUMNS = columns<JobEnvelope>({
  ...{ ID: 'id', QUEUE: 'queue', TYPE: 'type' },
  ATTEMPT: ({ attempt, maxAttempts }) => `${attempt}/${maxAttempts}`,
  DISCARDED: since('discardedAt'),
  'LAST ERROR': ({ error }) => (error ? `${error.type}: ${error.message}` : ''),
});

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
