/** `tocsin failures`, `tocsin failures redrive` and `tocsin failures discard` */
import type { Command } from 'commander';
import type { FailureGroup, FailureState } from '../../client/failures';
import { integer, list, remote, session } from '../command';
import type { ConnectionOptions } from '../connection';
import { CliError, usageError } from '../failure';
import type { Terminal } from '../output';
import { tableOf } from '../resource';
import { type Column, FAILURES } from '../views';

const STATES = ['dead', 'discarded', 'retrying'];

const COLUMNS: readonly Column<FailureGroup>[] = [['FINGERPRINT', ({ fingerprint }) => fingerprint], ...FAILURES];

interface Options extends ConnectionOptions {
  queue?: string[];
  type?: string[];
  state?: string[];
}

/** Longest wait for the jobs of a group, in ms. */
const LONGEST_WAIT_MS = 600_000;

/** Groups failed jobs, and acts on a group. */
export function failuresCommand(terminal: Terminal): Command {
  const failures = conditions(remote('failures', 'group failed jobs by error'))
    .option('--since <when>', 'only failures after this time (RFC 3339), or in the last such as 24h')
    .option('--limit <n>', 'maximum number of groups', integer(1, 200), 20)
    .action(async (options: Options & { since?: string; limit: number }) => {
      const { tocsin, answer } = session(terminal, options);
      const query = { ...partOf(options), ...(options.since && { since: options.since }) };
      const { items, ...found } = await tocsin.failures.list(query);
      const groups = items.slice(0, options.limit);
      answer({ failures: groups, searched: found.searched, more: found.more }, () => {
        const rest = found.more ? `\nOnly the newest ${found.searched} failures were searched.` : '';
        return tableOf(groups, COLUMNS, 'No failures.', terminal.now()) + rest;
      });
    });
  failures.addCommand(actCommand(terminal, 'redrive', 'retry the jobs of a group', 'retried'));
  failures.addCommand(actCommand(terminal, 'discard', 'delete the jobs of a group permanently', 'deleted'));
  return failures;
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

function actCommand(terminal: Terminal, verb: 'redrive' | 'discard', summary: string, done: string): Command {
  // Its options stand on both sides: commander reads what comes before the verb as those of `failures`.
  return conditions(remote(verb, summary))
    .argument('<fingerprint>', 'fingerprint of the group')
    .action(async (fingerprint: string, _: Options, command: Command) => {
      const options = command.optsWithGlobals<Options>();
      const { tocsin, answer } = session(terminal, options);
      const begun = await tocsin.failures[verb](fingerprint, partOf(options));
      const { matched, succeeded, skipped, failed } = await tocsin.bulk.wait(begun, { timeoutMs: LONGEST_WAIT_MS });
      answer({ matched, succeeded, skipped, failed }, () => `${succeeded} of ${matched} ${done}.`);
      if (failed > 0) throw new CliError(`${failed} could not be changed.`, 'tocsin failures', 'partial');
    });
}
