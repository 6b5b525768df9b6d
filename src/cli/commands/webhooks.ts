/** `tocsin webhooks`, with `add`, `remove`, `pause`, `resume`, `test`, `rotate`, `deliveries` and `redeliver` */
import type { Command } from 'commander';
import type { Webhook, WebhookDelivery } from '../../client/webhooks';
import { integer, list, remote, session } from '../command';
import type { ConnectionOptions } from '../connection';
import { CliError, usageError } from '../failure';
import { facts, type Terminal, table, whenText } from '../output';

const STATUSES: readonly WebhookDelivery['status'][] = ['pending', 'delivered', 'failed', 'dead'];

/** Lists who is told of events, and changes it. */
export function webhooksCommand(terminal: Terminal): Command {
  const webhooks = remote('webhooks', 'list who is told of events').action(async (options: ConnectionOptions) => {
    const { tocsin, answer } = session(terminal, options);
    const subscriptions: Webhook[] = [];
    for await (const one of tocsin.webhooks.list()) subscriptions.push(one);
    answer({ subscriptions }, () => webhookTable(subscriptions, terminal.now()));
  });
  const opened = <Options extends object>(command: Command) =>
    session(terminal, command.optsWithGlobals<Options & ConnectionOptions>());
  const onOne = (name: string, summary: string) => remote(name, summary).argument('<id>', 'of the webhook');

  webhooks.addCommand(
    remote('add', 'tell a URL of events')
      .argument('<url>', 'HTTPS address of the receiver')
      .requiredOption('--event <name>', 'job.discarded, job.* or *; a list, or several times', list)
      .option('--queue <name>', 'only of this queue; a list, or several times', list)
      .option('--type <type>', 'only of this job type; a list, or several times', list)
      .action(async (url: string, _: unknown, command: Command) => {
        const { tocsin, answer, options } = opened<{ event: string[]; queue?: string[]; type?: string[] }>(command);
        const { event: events, queue: queues, type: types } = options;
        const filter = queues || types ? { filter: { ...(queues && { queues }), ...(types && { types }) } } : {};
        const { secret, ...subscription } = await tocsin.webhooks.create({ url, events, ...filter });
        answer({ subscription, secret }, () =>
          facts([
            ['id', subscription.id],
            ['secret', secret],
            ['', 'The secret is shown only now. It signs each request.'],
          ]),
        );
      }),
  );
  webhooks.addCommand(
    onOne('remove', 'tell it of nothing any more').action(async (id: string, _: unknown, command: Command) => {
      const { tocsin, answer } = opened(command);
      await tocsin.webhooks.delete(id);
      answer({ removed: id }, () => `${id}  removed`);
    }),
  );
  for (const [name, active, summary] of [
    ['pause', false, 'tell it of nothing for now'],
    ['resume', true, 'tell it of events again'],
  ] as const) {
    webhooks.addCommand(
      onOne(name, summary).action(async (id: string, _: unknown, command: Command) => {
        const { tocsin, answer } = opened(command);
        const subscription = await tocsin.webhooks.change(id, { active });
        answer({ subscription }, () => `${id}  ${active ? 'on' : 'off'}`);
      }),
    );
  }
  webhooks.addCommand(
    onOne('test', 'send it webhook.test once').action(async (id: string, _: unknown, command: Command) => {
      const { tocsin, answer } = opened(command);
      const outcome = await tocsin.webhooks.test(id);
      const { success, statusCode, error, responseTimeMs } = outcome;
      const said = statusCode === null ? (error ?? 'no answer') : String(statusCode);
      answer({ outcome }, () => `${success ? 'delivered' : 'not delivered'}  ${said}  ${responseTimeMs} ms`);
      if (!success) throw new CliError('The receiver did not take it.', `tocsin webhooks deliveries ${id}`, 'failed');
    }),
  );
  webhooks.addCommand(
    onOne('rotate', 'make another secret; the former one signs as well for a day').action(
      async (id: string, _: unknown, command: Command) => {
        const { tocsin, answer } = opened(command);
        const secret = await tocsin.webhooks.rotateSecret(id);
        answer({ id, secret }, () => secret);
      },
    ),
  );
  webhooks.addCommand(
    remote('deliveries', 'list what became of events, newest first')
      .argument('[id]', 'of the webhook; default: all')
      .option('--status <status>', STATUSES.join(', '))
      .option('--limit <n>', 'at most so many', integer(1, 1_000), 20)
      .action(async (id: string | undefined, _: unknown, command: Command) => {
        const { tocsin, answer, options } = opened<{ status?: WebhookDelivery['status']; limit: number }>(command);
        const { status, limit } = options;
        if (status !== undefined && !STATUSES.includes(status)) {
          throw usageError(`${status} is not a status of a delivery.`, `Statuses are ${STATUSES.join(', ')}.`);
        }
        const query = { ...(id && { subscription: id }), ...(status && { status }) };
        const deliveries: WebhookDelivery[] = [];
        for await (const one of tocsin.webhooks.deliveries(query, { limit })) deliveries.push(one);
        answer({ deliveries }, () => deliveryTable(deliveries, terminal.now()));
      }),
  );
  webhooks.addCommand(
    remote('redeliver', 'deliver an event again now')
      .argument('<id>', 'of the delivery')
      .action(async (id: string, _: unknown, command: Command) => {
        const { tocsin, answer } = opened(command);
        const delivery = await tocsin.webhooks.redeliver(id);
        answer({ delivery }, () => `${delivery.id}  ${delivery.status}`);
      }),
  );
  return webhooks;
}

function webhookTable(webhooks: readonly Webhook[], now: number): string {
  if (webhooks.length === 0) return 'Nobody is told of events.';
  const rows = webhooks.map((one) => [
    one.id,
    one.active ? 'on' : (one.disabledReason ?? 'off'),
    one.url,
    one.events.join(','),
    one.successCount,
    one.failureCount,
    one.pendingCount,
    whenText(one.lastDeliveryAt ?? undefined, now) ?? 'never',
  ]);
  return table(['ID', 'STATUS', 'URL', 'EVENTS', 'SENT', 'FAILED', 'PENDING', 'LAST'], rows);
}

function deliveryTable(deliveries: readonly WebhookDelivery[], now: number): string {
  if (deliveries.length === 0) return 'No deliveries.';
  const rows = deliveries.map(({ id, status, eventType, jobId, attempts, createdAt, nextAttemptAt }) => {
    const last = attempts.at(-1);
    const said = last ? (last.error ?? String(last.statusCode)) : '';
    const next = nextAttemptAt === null ? '' : (whenText(nextAttemptAt, now) ?? '');
    return [id, status, eventType, jobId ?? '', whenText(createdAt, now), attempts.length, said, next];
  });
  return table(['ID', 'STATUS', 'EVENT', 'JOB', 'MADE', 'TRIES', 'SAID', 'NEXT'], rows);
}
