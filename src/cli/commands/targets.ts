/** `tocsin targets` and `tocsin targets resume` */
import type { Command } from 'commander';
import type { TargetStatus } from '../../client/targets';
import { remote, session } from '../command';
import type { ConnectionOptions } from '../connection';
import { CliError } from '../failure';
import { type Terminal, table, whenText } from '../output';

/** Lists the handlers that jobs are pushed to, and tries one that is down. */
export function targetsCommand(terminal: Terminal): Command {
  const targets = remote('targets', 'list the handlers that jobs are pushed to, and which of them are down').action(
    async (options: ConnectionOptions) => {
      const { tocsin, answer } = session(terminal, options);
      const found = await tocsin.targets.list();
      answer({ targets: found }, () => targetTable(found, terminal.now()));
    },
  );
  return targets.addCommand(
    remote('resume', 'call a handler that is down, to see whether it is up')
      .argument('<name>', 'name of the handler, as tocsin targets shows it')
      .action(async (name: string, _: ConnectionOptions, command: Command) => {
        const { tocsin, answer } = session(terminal, command.optsWithGlobals<ConnectionOptions>());
        const outcome = await tocsin.targets.resume(name);
        const { tried, resumed, queues } = outcome;
        answer(outcome, () => resumedText(name, tried, resumed));
        const down = queues.find(({ state }) => state !== 'up');
        if (down === undefined) return;
        const error = down.lastError ?? 'it does not accept calls';
        throw new CliError(
          `${name} is still down in ${tried - resumed} of ${tried} queues: ${error}`,
          undefined,
          'down',
        );
      }),
  );
}

function resumedText(name: string, tried: number, resumed: number): string {
  if (tried === 0) return `${name} is not down in any queue.`;
  return resumed === 0 ? '' : `${name} is up again in ${resumed} ${resumed === 1 ? 'queue' : 'queues'}.`;
}

function targetTable(targets: readonly TargetStatus[], now: number): string {
  if (targets.length === 0) return 'No handlers are mapped: jobs wait for workers that pull.';
  const rows = targets.map(({ name, state, patterns, types, nextTryAt, lastError }) => [
    name,
    state,
    patterns.join(', '),
    types?.join(', '),
    whenText(nextTryAt, now),
    lastError,
  ]);
  return table(['TARGET', 'STATE', 'TAKES', 'TYPES', 'NEXT TRY', 'LAST ERROR'], rows);
}
