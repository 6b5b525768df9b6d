/** `tocsin maintenance`, with `on` and `off` */
import type { Command } from 'commander';
import type { MaintenanceState } from '../../client/maintenance';
import type { Duration } from '../../producer/envelope';
import { remote, session } from '../command';
import type { ConnectionOptions } from '../connection';
import { type Terminal, timeText } from '../output';

/** Shows, starts and ends maintenance. */
export function maintenanceCommand(terminal: Terminal): Command {
  const shown = remote('maintenance', 'show whether maintenance is on').action(async (options: ConnectionOptions) => {
    const { tocsin, answer } = session(terminal, options);
    const state = await tocsin.maintenance.get();
    answer({ maintenance: state }, () => stateText(state, terminal.now()));
  });
  shown.addCommand(
    remote('on', 'start maintenance: no job starts, no schedule fires; jobs are still accepted')
      .option('--reason <text>', 'reason, shown where jobs wait')
      .option('--for <duration>', 'end maintenance after this time: 20m, PT1H')
      .action(async (_: unknown, command: Command) => {
        const options = command.optsWithGlobals<ConnectionOptions & { reason?: string; for?: string }>();
        const { tocsin, answer } = session(terminal, options);
        const { reason, for: duration } = options;
        const notice = { ...(reason && { reason }), ...(duration && { duration: duration as Duration }) };
        const state = await tocsin.maintenance.begin(notice);
        answer({ maintenance: state }, () => stateText(state, terminal.now()));
      }),
  );
  shown.addCommand(
    remote('off', 'end maintenance').action(async (_: unknown, command: Command) => {
      const { tocsin, answer } = session(terminal, command.optsWithGlobals<ConnectionOptions>());
      const state = await tocsin.maintenance.end();
      answer({ maintenance: state }, () => stateText(state, terminal.now()));
    }),
  );
  return shown;
}

function stateText({ enabled, reason, startedAt, endsAt, pendingQueues }: MaintenanceState, now: number): string {
  const untold = pendingQueues ? `\n${pendingQueues} queues could not be reached yet; they are retried.` : '';
  if (!enabled) return `off${untold}`;
  const end = endsAt === null ? '' : `, ends ${timeText(endsAt, now)}`;
  const why = reason === null ? '' : `: ${reason.replace(/\s+/g, ' ')}`;
  return `on since ${timeText(startedAt ?? undefined, now)}${end}${why}${untold}`;
}
