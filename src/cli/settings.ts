import type { Deployment } from '../client/server';

export interface SettingsLine {
  name: 'place' | 'handlers' | 'queues' | 'limits' | 'schedules' | 'webhooks' | 'alerts';
  message: string;
}

export function settingsLines(deployment: Deployment): SettingsLine[] {
  const { dataLocation, handlers, queues, queuesTotal, limits, crons, webhooks = [], alerts = [] } = deployment;
  const outside = 'not the Worker, its logs, webhooks and analytics';
  const more = queuesTotal - queues.length;
  const lines: SettingsLine[] = [
    { name: 'place', message: dataLocation ? `${dataLocation}: all queues and settings; ${outside}` : '' },
    { name: 'handlers', message: handlers.join(', ') },
    {
      name: 'queues',
      message: namesText(
        queues.map(({ name }) => name),
        queues.flatMap(({ name, changed }) => changed.map((setting) => `${name}.${setting}`)),
        more > 0 ? `and ${more} more` : '',
      ),
    },
    {
      name: 'limits',
      message: namesText(
        limits.map(({ key }) => key),
        limits.flatMap(({ key, override }) => (override ? [key] : [])),
      ),
    },
    { name: 'schedules', message: statesText(crons.map((one) => ({ ...one, active: one.enabled }))) },
    { name: 'webhooks', message: statesText(webhooks) },
    { name: 'alerts', message: statesText(alerts) },
  ];
  return lines.filter(({ message }) => message !== '');
}

/** What operators may change, delete and switch off. */
function statesText(all: readonly { name: string; state: string; active?: boolean | undefined }[]): string {
  return namesText(
    all.map(({ name }) => name),
    all.flatMap(({ name, state, active }) =>
      state === 'changed' || state === 'deleted' ? [`${name} (${state})`] : active === false ? [`${name} (off)`] : [],
    ),
  );
}

function namesText(declared: readonly string[], changed: readonly string[], more = ''): string {
  if (declared.length === 0) return '';
  const names = [declared.join(', '), more].filter(Boolean).join(' ');
  return `in code: ${names}${changed.length > 0 ? `; changed by an operator: ${changed.join(', ')}` : ''}`;
}
