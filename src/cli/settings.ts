import type { Deployment } from '../client/server';

/** What a deployment declares, a line for each kind. */
export function settingsLines(deployment: Deployment): { name: string; message: string }[] {
  const { dataLocation, handlers, queues, queuesTotal, limits, crons, webhooks = [], alerts = [] } = deployment;
  const outside = 'not the Worker, its logs, webhooks and analytics';
  const more = queuesTotal - queues.length;
  const lines = {
    place: dataLocation ? `${dataLocation}: all queues and settings; ${outside}` : '',
    handlers: handlers.join(', '),
    queues: namesText(
      queues.map(({ name }) => name),
      queues.flatMap(({ name, changed }) => changed.map((setting) => `${name}.${setting}`)),
      more > 0 ? `and ${more} more` : '',
    ),
    limits: namesText(
      limits.map(({ key }) => key),
      limits.flatMap(({ key, override }) => (override ? [key] : [])),
    ),
    schedules: statesText(crons.map((one) => ({ ...one, active: one.enabled }))),
    webhooks: statesText(webhooks),
    alerts: statesText(alerts),
  };
  return Object.entries(lines).flatMap(([name, message]) => (message === '' ? [] : [{ name, message }]));
}

/** What operators may change, delete and switch off. */
const statesText = (all: readonly { name: string; state: string; active?: boolean | undefined }[]): string =>
  namesText(
    all.map(({ name }) => name),
    all.flatMap(({ name, state, active }) =>
      state === 'changed' || state === 'deleted' ? [`${name} (${state})`] : active === false ? [`${name} (off)`] : [],
    ),
  );

function namesText(declared: readonly string[], changed: readonly string[], more = ''): string {
  if (declared.length === 0) return '';
  const names = [declared.join(', '), more].filter(Boolean).join(' ');
  return `in code: ${names}${changed.length > 0 ? `; changed by an operator: ${changed.join(', ')}` : ''}`;
}
