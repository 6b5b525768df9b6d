/** `tocsin failures`, `tocsin failures redrive` and `tocsin failures discard` */
import type { Command } from 'commander';
import type { FailureGroup, FailureState } from '../../client/failures';
import { integer, list } from '../command';
import { CliError, usageError } from '../failure';
import type { Terminal } from '../output';
import { resourceCommand, tableOf, verb } from '../resource';
import { type Column, FAILURES } from '../views';

const STATES = ['dead', 'discarded', 'retrying'];

const COLUMNS: readonly Column<FailureGroup>[] = [['FINGERPRINT', ({ fingerprint }) => fingerprint], ...FAILURES];

interface Options {
  queue?: string[];
  type?: string[];
  state?: string[];
}

const LONGEST_WAIT_MS = 600_000;

export function failuresCommand(terminal: Terminal): Command {
  return resourceCommand<Options & { since?: string; limit: number }>(terminal, {
    name: 'failures',
    summary: 'group failed jobs by error',
    options: (command) =>
      conditions(command)
        .option('--since <when>', 'only failures after this time (RFC 3339), or in the last such as 24h')
        .option('--limit <n>', 'maximum number of groups', integer(1, 200), 20),
    async list({ tocsin, options }) {
      const query = { ...partOf(options), ...(options.since && { since: options.since }) };
      const { items, searched, more } = await tocsin.failures.list(query);
      const failures = items.slice(0, options.limit);
      const rest = more ? `\nOnly the newest ${searched} failures were searched.` : '';
      const text = tableOf(failures, COLUMNS, 'No failures.', terminal.now()) + rest;
      return { value: { failures, searched, more }, text };
    },
    one: [['<fingerprint>', 'fingerprint of the group']],
    verbs: [
      acting('redrive', 'retry the jobs of a group', 'retried'),
      acting('discard', 'delete the jobs of a group permanently', 'deleted'),
    ],
  });
}

function conditions(command: Command): Command {
  return command
    .option('--queue <name>', 'only this queue; a list, or several times', list)
    .option('--type <type>', 'only this job type; * matches anything', list)
    .option('--state <state>', `only jobs in this state: ${STATES.join(', ')}`, list);
}

function partOf({ queue, type, state }: Options) {
  const wrong = state?.find((name) => !STATES.includes(name));
  if (wrong !== undefined)
    throw usageError(`${wrong} is not a state of a failure.`, `States are ${STATES.join(', ')}.`);
  return { ...(queue && { queue }), ...(type && { type }), ...(state && { state: state as FailureState[] }) };
}

// Its options stand on both sides: commander reads what comes before the verb as those of `failures`.
const acting = (name: 'redrive' | 'discard', summary: string, done: string) =>
  verb<Options>({
    ...{ name, summary, options: conditions },
    async run({ tocsin, options }, fingerprint = '') {
      const begun = await tocsin.failures[name](fingerprint, partOf(options));
      const { matched, succeeded, skipped, failed } = await tocsin.bulk.wait(begun, { timeoutMs: LONGEST_WAIT_MS });
      const answer = { value: { matched, succeeded, skipped, failed }, text: `${succeeded} of ${matched} ${done}.` };
      if (failed === 0) return answer;
      return { ...answer, failure: new CliError(`${failed} could not be changed.`, 'tocsin failures', 'partial') };
    },
  });
