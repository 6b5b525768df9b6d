/** `tocsin webhooks`, with `add`, `remove`, `pause`, `resume`, `test`, `rotate`, `deliveries` and `redeliver` */
import type { Command } from 'commander';
import type { WebhookDelivery, WebhookFormat } from '../../client/webhooks';
import { integer, list } from '../command';
import { CliError, usageError } from '../failure';
import { facts, type Terminal } from '../output';
import { listed, removal, resourceCommand, shown, verb } from '../resource';
import { ago, type Column, WEBHOOKS } from '../views';

const STATUSES: readonly WebhookDelivery['status'][] = ['pending', 'delivered', 'failed', 'dead'];

const DELIVERIES: readonly Column<WebhookDelivery>[] = [
  ['ID', ({ id }) => id],
  ['STATUS', ({ status }) => status],
  ['EVENT', ({ eventType }) => eventType],
  ['JOB', ({ jobId }) => jobId],
  ['MADE', ({ createdAt }, now) => ago(createdAt, now)],
  ['TRIES', ({ attempts }) => attempts.length],
  ['SAID', ({ attempts }) => attempts.at(-1)?.error ?? attempts.at(-1)?.statusCode],
  ['NEXT', ({ nextAttemptAt }, now) => ago(nextAttemptAt, now)],
];

interface AddOptions {
  event: string[];
  queue?: string[];
  type?: string[];
  group?: string[];
  format?: string;
  routingKey?: string;
}

/** The server says what is wrong with it. */
const formatOf = (text: string): WebhookFormat =>
  text.trimStart().startsWith('{') ? { template: text } : (text as WebhookFormat);

export function webhooksCommand(terminal: Terminal): Command {
  return resourceCommand(terminal, {
    name: 'webhooks',
    summary: 'list the webhooks',
    list: (opened) =>
      listed(
        opened,
        'subscriptions',
        opened.tocsin.webhooks.list(),
        [['ID', ({ id }) => id], ...WEBHOOKS],
        'No webhooks.',
      ),
    one: [['<id>', 'id of the webhook']],
    verbs: [
      verb({
        name: 'show',
        summary: 'show a webhook in full',
        run: async (opened, id = '') => shown(opened, 'subscription', await opened.tocsin.webhooks.get(id)),
      }),
      verb<AddOptions>({
        name: 'add',
        summary: 'create a webhook: send events to a URL',
        takes: [['<url>', 'HTTPS address of the receiver']],
        options: (command) =>
          command
            .requiredOption('--event <name>', 'job.discarded, job.* or *; a list, or several times', list)
            .option('--queue <name>', 'only events of this queue; a list, or several times', list)
            .option('--type <type>', 'only events of this job type; a list, or several times', list)
            .option('--group <group>', 'only events of this group of jobs; a list, or several times', list)
            .option('--format <form>', 'slack, pagerduty, or a template: JSON with {{data.job_id}} and the like')
            .option('--routing-key <key>', 'routing key of PagerDuty'),
        async run({ tocsin, options }, url = '') {
          const { event: events, queue: queues, type: types, group: groups, format, routingKey } = options;
          const wanted = { ...(queues && { queues }), ...(types && { types }), ...(groups && { groups }) };
          const filter = Object.keys(wanted).length > 0 ? { filter: wanted } : {};
          const { secret, ...subscription } = await tocsin.webhooks.create({
            ...{ url, events, ...filter },
            ...(format !== undefined && { format: formatOf(format) }),
            ...(routingKey !== undefined && { routingKey }),
          });
          const text = facts([
            ['id', subscription.id],
            ['secret', secret],
            ['', 'The secret is shown only now. It signs each request.'],
          ]);
          return { value: { subscription, secret }, text };
        },
      }),
      removal('the webhook', ({ tocsin }, id = '') => tocsin.webhooks.delete(id), {
        summary: 'delete the webhook',
      }),
      turned('pause', false, 'pause a webhook'),
      turned('resume', true, 'resume a webhook'),
      verb({
        name: 'test',
        summary: 'send the event webhook.test once',
        async run({ tocsin }, id = '') {
          const outcome = await tocsin.webhooks.test(id);
          const { success, statusCode, error, responseTimeMs } = outcome;
          const said = statusCode === null ? (error ?? 'no answer') : String(statusCode);
          const text = `${success ? 'delivered' : 'not delivered'}  ${said}  ${responseTimeMs} ms`;
          if (success) return { value: { outcome }, text };
          const failure = new CliError('The receiver did not accept it.', `tocsin webhooks deliveries ${id}`, 'failed');
          return { value: { outcome }, text, failure };
        },
      }),
      verb({
        name: 'rotate',
        summary: 'create a new secret; the old one also signs for a day',
        async run({ tocsin }, id = '') {
          const secret = await tocsin.webhooks.rotateSecret(id);
          return { value: { id, secret }, text: secret };
        },
      }),
      verb<{ status?: WebhookDelivery['status']; limit: number }>({
        name: 'deliveries',
        summary: 'list deliveries, newest first',
        takes: [['[id]', 'id of the webhook; default: all']],
        options: (command) =>
          command
            .option('--status <status>', STATUSES.join(', '))
            .option('--limit <n>', 'maximum number of deliveries', integer(1, 1_000), 20),
        async run(opened, subscription) {
          const { status, limit } = opened.options;
          if (status !== undefined && !STATUSES.includes(status)) {
            throw usageError(`${status} is not a status of a delivery.`, `Statuses are ${STATUSES.join(', ')}.`);
          }
          const query = { ...(subscription && { subscription }), ...(status && { status }) };
          const found = opened.tocsin.webhooks.deliveries(query, { limit });
          return await listed(opened, 'deliveries', found, DELIVERIES, 'No deliveries.');
        },
      }),
      verb({
        name: 'redeliver',
        summary: 'repeat a delivery now',
        takes: [['<id>', 'id of the delivery']],
        async run({ tocsin }, id = '') {
          const delivery = await tocsin.webhooks.redeliver(id);
          return { value: { delivery }, text: `${delivery.id}  ${delivery.status}` };
        },
      }),
    ],
  });
}

const turned = (name: string, active: boolean, summary: string) =>
  verb({
    name,
    summary,
    async run({ tocsin }, id = '') {
      const subscription = await tocsin.webhooks.change(id, { active });
      return { value: { subscription }, text: `${id}  ${active ? 'on' : 'off'}` };
    },
  });
