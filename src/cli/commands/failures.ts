import type { FailureGroup } from '../../client/failures';
import { action, condition, limitOf, list, listOf, resource } from '../command';
import { CliError } from '../failure';
import { BULK_WAIT, tableOf } from '../resource';
import { type Column, FAILURES } from '../views';

const STATES = ['dead', 'discarded', 'retrying'] as const;

const COLUMNS: readonly Column<FailureGroup>[] = [['FINGERPRINT', ({ fingerprint }) => fingerprint], ...FAILURES];

const CONDITIONS = {
  queue: ['--queue <name>', 'only this queue; a list, or several times', list],
  type: ['--type <type>', 'only this job type; * matches anything', list],
  state: [
    '--state <state>',
    `only jobs in this state: ${STATES.join(', ')}`,
    listOf(STATES, 'a state of a failure', 'States'),
  ],
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
      const text = tableOf(failures, COLUMNS, 'No failures.', terminal.now()) + rest;
      return { value: { failures, searched, more }, text };
    },
  ),
  [['<fingerprint>', 'fingerprint of the group']],
  [
    acting('redrive', 'retry the jobs of a group', 'retried'),
    acting('discard', 'delete the jobs of a group permanently', 'deleted'),
  ],
);
