import type { Command } from 'commander';
import type { MaintenanceState } from '../../client/maintenance';
import type { Duration } from '../../producer/envelope';
import type { Session } from '../command';
import { type Terminal, timeText } from '../output';
import { resourceCommand, type Said, verb } from '../resource';

/** Shows, starts and ends maintenance. */
export function maintenanceCommand(terminal: Terminal): Command {
  return resourceCommand(terminal, {
    name: 'maintenance',
    summary: 'show whether maintenance is on',
    list: async (opened) => stands(opened, await opened.tocsin.maintenance.get()),
    one: [],
    verbs: [
      verb<{ reason?: string; for?: string }>({
        name: 'on',
        summary: 'start maintenance: no job starts, no schedule fires; jobs are still accepted',
        options: (command) =>
          command
            .option('--reason <text>', 'reason, shown where jobs wait')
            .option('--for <duration>', 'end maintenance after this time: 20m, PT1H'),
        async run(opened) {
          const { reason, for: duration } = opened.options;
          const notice = { ...(reason && { reason }), ...(duration && { duration: duration as Duration }) };
          return stands(opened, await opened.tocsin.maintenance.begin(notice));
        },
      }),
      verb({
        name: 'off',
        summary: 'end maintenance',
        run: async (opened) => stands(opened, await opened.tocsin.maintenance.end()),
      }),
    ],
  });
}

const stands = ({ terminal }: Session<object>, state: MaintenanceState): Said => {
  return { value: { maintenance: state }, text: stateText(state, terminal.now()) };
};

function stateText({ enabled, reason, startedAt, endsAt, pendingQueues }: MaintenanceState, now: number): string {
  const pending = pendingQueues ? `\n${pendingQueues} queues could not be reached yet; they are retried.` : '';
  if (!enabled) return `off${pending}`;
  const end = endsAt === null ? '' : `, ends ${timeText(endsAt, now)}`;
  const why = reason === null ? '' : `: ${reason.replace(/\s+/g, ' ')}`;
  return `on since ${timeText(startedAt ?? undefined, now)}${end}${why}${pending}`;
}
