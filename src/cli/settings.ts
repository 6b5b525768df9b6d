/** What the code of a deployment declares and what operators changed, in a line for each kind of setting. */
import type { Deployment } from '../client/server';

/** A line about one kind of setting. */
export interface SettingsLine {
  name: 'handlers' | 'queues' | 'limits' | 'schedules';
  message: string;
}

/** The settings that the code declares; kinds without any are left out. */
export function settingsLines({ handlers, queues, queuesTotal, limits, crons }: Deployment): SettingsLine[] {
  const more = queuesTotal - queues.length;
  const lines: SettingsLine[] = [
    { name: 'handlers', message: handlers.join(', ') },
    {
      name: 'queues',
      message: said(
        queues.map(({ name }) => name),
        queues.flatMap(({ name, changed }) => changed.map((setting) => `${name}.${setting}`)),
        more > 0 ? `and ${more} more` : '',
      ),
    },
    {
      name: 'limits',
      message: said(
        limits.map(({ key }) => key),
        limits.flatMap(({ key, override }) => (override ? [key] : [])),
      ),
    },
    {
      name: 'schedules',
      message: said(
        crons.map(({ name }) => name),
        crons.flatMap(({ name, state, enabled }) =>
          state === 'changed' || state === 'deleted'
            ? [`${name} (${state})`]
            : enabled === false
              ? [`${name} (off)`]
              : [],
        ),
      ),
    },
  ];
  return lines.filter(({ message }) => message !== '');
}

function said(declared: readonly string[], changed: readonly string[], more = ''): string {
  if (declared.length === 0) return '';
  const names = [declared.join(', '), more].filter(Boolean).join(' ');
  return `in code: ${names}${changed.length > 0 ? `; changed by an operator: ${changed.join(', ')}` : ''}`;
}
