/** `tocsin maintenance`, with `on` and `off` */
import type { Command } from 'commander';
import type { MaintenanceState } from '../../client/maintenance';
import type { Duration } from '../../producer/envelope';
import { remote, session } from '../command';
import type { ConnectionOptions } from '../connection';
import { printable, type Terminal, timeText } from '../output';

/** Says whether maintenance holds, begins and ends it. */
export function maintenanceCommand(terminal: Terminal): Command {
  const shown = remote('maintenance', 'say whether queues are shut for maintenance').action(
    async (options: ConnectionOptions) => {
      const { tocsin, answer } = session(terminal, options);
      const state = await tocsin.maintenance.get();
      answer({ maintenance: state }, () => stateText(state, terminal.now()));
    },
  );
  shown.addCommand(
    remote('on', 'hand out no jobs and fire no schedules; jobs are still accepted')
      .option('--reason <text>', 'shown as the reason why jobs wait')
      .option('--for <duration>', 'end by itself after this time: 20m, PT1H')
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
  const untold = pendingQueues ? `\n${pendingQueues} queues were not reached yet; it is sent to them again.` : '';
  if (!enabled) return `off${untold}`;
  const end = endsAt === null ? '' : `, ends ${timeText(endsAt, now)}`;
  const why = reason === null ? '' : `: ${reason.replace(/\s+/g, ' ')}`;
  return printable(`on since ${timeText(startedAt ?? undefined, now)}${end}${why}`) + untold;
}
