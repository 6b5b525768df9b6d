import type { Alert } from '../../client/alerts';
import { pathTo } from '../../client/requests';
import type { Webhook, WebhookDelivery, WebhookFormat } from '../../client/webhooks';
import { defined } from '../../job/envelope/fields';
import { action, limitOf, list, oneOf, resource, type Session } from '../command';
import { CliError } from '../failure';
import { facts } from '../output';
import { bodyOf, FILE, listed, removal, shown } from '../resource';
import { columns, since, WEBHOOKS } from '../views';

const ALERTS = columns<Alert>({
  ...{ ID: 'id', STATE: ({ active, state }) => (active ? state : 'off'), NAME: 'name' },
  QUEUE: ({ queue }) => queue ?? 'each',
  FIRES: ({ metric, above, for: least }) => `${metric} > ${above}${least === 'PT0S' ? '' : ` for ${least}`}`,
  ...{ SINCE: since('since'), LAST: 'lastValue' },
});

/** A number stays one: anything else is for the server to judge. */
const bound = (text: string) => (text.trim() !== '' && !Number.isNaN(Number(text)) ? Number(text) : text);

const ALERT_FLAGS = {
  queue: ['--queue <name>', 'watch only this queue; default: each queue separately'],
  metric: ['--metric <metric>', 'error_rate, oldest_age, depth, dead_letters'],
  above: ['--above <n>', 'threshold: a number; for oldest_age seconds, or such as 5m', bound],
  for: ['--for <duration>', 'time the metric must stay above the threshold: 1m, PT1M'],
  subscription_id: ['--webhook <id>', 'notify only this webhook; default: all that subscribe to alert.*'],
  ...FILE,
} as const;

export const alerts = resource(
  action('alerts', 'list alert rules', {}, (opened) =>
    listed(opened, 'alerts', opened.tocsin.alerts.list(), ALERTS, 'No alert rules.'),
  ),
  [['<id>', 'id of the rule']],
  [
    action('show', 'show a rule and its state in each queue', {}, async (opened, id) =>
      shown(opened, 'alert', await opened.tocsin.alerts.get(id)),
    ),
    action(
      'add',
      'create a rule',
      { takes: [['[name]', 'display name']], flags: ALERT_FLAGS },
      async (opened, name) => {
        const body = bodyOf({ ...opened.members, name });
        return shown(opened, 'alert', await opened.write('POST', '/admin/alerts', body));
      },
    ),
    action(
      'change',
      'change a rule',
      { flags: { name: ['--name <text>', 'display name'], ...ALERT_FLAGS } },
      (opened, id) => change(opened, id, bodyOf(opened.members)),
    ),
    action('pause', 'pause a rule; its firing alerts resolve', {}, (opened, id) =>
      change(opened, id, { active: false }),
    ),
    action('resume', 'resume a rule', {}, (opened, id) => change(opened, id, { active: true })),
    removal('the rule', ({ tocsin }, id = '') => tocsin.alerts.delete(id)),
  ],
);

const change = async (opened: Session, id: string, body: object) =>
  shown(opened, 'alert', await opened.write('PATCH', pathTo`/admin/alerts/${id}`, body));

const STATUSES = ['pending', 'delivered', 'failed', 'dead'] as const satisfies WebhookDelivery['status'][];

const COLUMNS = [...columns<Webhook>({ ID: 'id' }), ...WEBHOOKS];

const DELIVERIES = columns<WebhookDelivery>({
  ...{ ID: 'id', STATUS: 'status', EVENT: 'eventType', JOB: 'jobId', MADE: since('createdAt') },
  TRIES: ({ attempts }) => attempts.length,
  SAID: ({ attempts }) => attempts.at(-1)?.error ?? attempts.at(-1)?.statusCode,
  NEXT: since('nextAttemptAt'),
});

/** The server checks it. */
const formatOf = (text: string): WebhookFormat =>
  text.trimStart().startsWith('{') ? { template: text } : (text as WebhookFormat);

const EVENTS = ['--event <name>', 'job.discarded, job.* or *; a list, or several times', list] as const;

const MEMBERS = {
  queues: ['--queue <name>', 'only events of this queue; a list, or several times', list],
  types: ['--type <type>', 'only events of this job type; a list, or several times', list],
  groups: ['--group <group>', 'only events of this group of jobs; a list, or several times', list],
  format: ['--format <form>', 'slack, pagerduty, or a template: JSON with {{data.job_id}} and the like', formatOf],
  routingKey: ['--routing-key <key>', 'routing key of PagerDuty'],
} as const;

const FOUND = {
  status: ['--status <status>', STATUSES.join(', '), oneOf(STATUSES, 'a status of a delivery', 'Statuses')],
  limit: limitOf('deliveries', 1_000),
} as const;

const turned = (name: string, active: boolean, summary: string) =>
  action(name, summary, {}, async ({ tocsin }, id) => {
    const subscription = await tocsin.webhooks.change(id, { active });
    return { value: { subscription }, text: `${id}  ${active ? 'on' : 'off'}` };
  });

export const webhooks = resource(
  action('webhooks', 'list the webhooks', {}, (opened) =>
    listed(opened, 'subscriptions', opened.tocsin.webhooks.list(), COLUMNS, 'No webhooks.'),
  ),
  [['<id>', 'id of the webhook']],
  [
    action('show', 'show a webhook in full', {}, async (opened, id) =>
      shown(opened, 'subscription', await opened.tocsin.webhooks.get(id)),
    ),
    action(
      'add',
      'create a webhook: send events to a URL',
      { takes: [['<url>', 'HTTPS address of the receiver']], needs: { events: EVENTS }, flags: MEMBERS },
      async ({ tocsin, members: { queues, types, groups, ...members } }, url) => {
        const filter = defined({ queues, types, groups });
        const { secret, ...subscription } = await tocsin.webhooks.create({
          ...{ url, ...members },
          ...(Object.keys(filter).length > 0 && { filter }),
        });
        const text = facts([
          ['id', subscription.id],
          ['secret', secret],
          ['', 'The secret is shown only now. It signs each request.'],
        ]);
        return { value: { subscription, secret }, text };
      },
    ),
    removal('the webhook', ({ tocsin }, id = '') => tocsin.webhooks.delete(id)),
    turned('pause', false, 'pause a webhook'),
    turned('resume', true, 'resume a webhook'),
    action('test', 'send the event webhook.test once', {}, async ({ tocsin }, id) => {
      const outcome = await tocsin.webhooks.test(id);
      const { success, statusCode, error, responseTimeMs } = outcome;
      const answer = statusCode === null ? (error ?? 'no answer') : String(statusCode);
      const text = `${success ? 'delivered' : 'not delivered'}  ${answer}  ${responseTimeMs} ms`;
      if (success) return { value: { outcome }, text };
      const failure = new CliError('The receiver did not accept it.', `tocsin webhooks deliveries ${id}`, 'failed');
      return { value: { outcome }, text, failure };
    }),
    action('rotate', 'create a new secret; the old one also signs for a day', {}, async ({ tocsin }, id) => {
      const secret = await tocsin.webhooks.rotateSecret(id);
      return { value: { id, secret }, text: secret };
    }),
    action(
      'deliveries',
      'list deliveries, newest first',
      { takes: [['[id]', 'id of the webhook; default: all']], flags: FOUND },
      (opened, subscription) => {
        const { limit, ...query } = opened.members;
        const found = opened.tocsin.webhooks.deliveries({ ...query, ...(subscription && { subscription }) }, { limit });
        return listed(opened, 'deliveries', found, DELIVERIES, 'No deliveries.');
      },
    ),
    action(
      'redeliver',
      'repeat a delivery now',
      { takes: [['<id>', 'id of the delivery']] },
      async ({ tocsin }, id) => {
        const delivery = await tocsin.webhooks.redeliver(id);
        return { value: { delivery }, text: `${delivery.id}  ${delivery.status}` };
      },
    ),
  ],
);
