import type { MaintenanceState } from '../../client/maintenance';
import type { Duration } from '../../producer/envelope';
import { action, condition, type Result, resource, type Session } from '../command';
import { timeText } from '../output';

const NOTICE = {
  reason: ['--reason <text>', 'reason, shown where jobs wait', condition],
  duration: [
    '--for <duration>',
    'end maintenance after this time: 20m, PT1H',
    (text: string) => condition(text) as Duration | undefined,
  ],
} as const;

export const maintenance = resource(
  action('maintenance', 'show whether maintenance is on', {}, async (opened) =>
    stateOf(opened, await opened.tocsin.maintenance.get()),
  ),
  [],
  [
    action(
      'on',
      'start maintenance: no job starts, no schedule fires; jobs are still accepted',
      { flags: NOTICE },
      async (opened) => stateOf(opened, await opened.tocsin.maintenance.begin(opened.members)),
    ),
    action('off', 'end maintenance', {}, async (opened) => stateOf(opened, await opened.tocsin.maintenance.end())),
  ],
);

const stateOf = ({ terminal }: Session, state: MaintenanceState): Result => {
  return { value: { maintenance: state }, text: stateText(state, terminal.now()) };
};

function stateText({ enabled, reason, startedAt, endsAt, pendingQueues }: MaintenanceState, now: number): string {
  const pending = pendingQueues ? `\n${pendingQueues} queues could not be reached yet; they are retried.` : '';
  if (!enabled) return `off${pending}`;
  const end = endsAt === null ? '' : `, ends ${timeText(endsAt, now)}`;
  const why = reason === null ? '' : `: ${reason.replace(/\s+/g, ' ')}`;
  return `on since ${timeText(startedAt ?? undefined, now)}${end}${why}${pending}`;
}
