/** Subscriptions that are told in the form of others. */
import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { freshName } from '../../support/queue';
import { type Json, server, V1 } from '../../support/server';
import { deliveriesOf, Receiver, subscribe, subscription } from '../../support/webhooks';

const LIST = `${V1}/webhooks/subscriptions`;

describe('a subscription with a form', () => {
  server.emptyBeforeEach();

  const FORMS: [string, Json, (queue: string, id: string) => Json, unknown][] = [
    ['slack', { format: 'slack' }, (queue, id) => ({ text: `*job.enqueued: test.echo in ${queue}*\n${id}` }), 'slack'],
    [
      'pagerduty',
      { format: 'pagerduty', routing_key: 'R0' },
      (_, id) => ({ routing_key: 'R0', event_action: 'trigger', dedup_key: `tocsin/job.enqueued/${id}` }),
      'pagerduty',
    ],
    [
      'a template',
      { format: { template: '{"jobId": "{{data.job_id}}", "n": "{{data.attempt}}", "who_is": "ops"}' } },
      (_, id) => ({ jobId: id, n: 0, who_is: 'ops' }),
      { template: { jobId: '{{data.job_id}}', n: '{{data.attempt}}', who_is: 'ops' } },
    ],
  ];

  it.each(FORMS)(
    '%s is sent that, signed, is shown without a key, and is tested so',
    async (_, members, expected, shown) => {
      const [receiver, queue] = [new Receiver(), freshName('formed')];
      const made = await subscribe(receiver, { ...members, events: ['job.enqueued'] });
      expect(made.format).toEqual(shown);
      expect((await subscription(made.id)).subscription).toMatchObject({ format: shown });
      expect(JSON.stringify(await server.ok(200, 'GET', LIST))).not.toContain('R0');
      const id = await server.enqueue(queue);
      const [arrival] = await receiver.received(1);
      expect(arrival?.event).toMatchObject(expected(queue, id));
      new Webhook(made.secret as string).verify(arrival?.body ?? '', arrival?.headers ?? {});

      expect(await server.ok(200, 'POST', `${LIST}/${made.id}/test`)).toMatchObject({ success: true });
      const [, test] = await receiver.received(2);
      expect(test?.event).not.toHaveProperty('specversion');
      expect(Object.keys(test?.event ?? {})).toEqual(Object.keys(arrival?.event ?? {}));
    },
  );

  it('takes another one, and goes back to the event', async () => {
    const [receiver, queue] = [new Receiver(), freshName('formed')];
    const { id } = await subscribe(receiver, { format: 'slack', events: ['job.enqueued'] });
    await server.enqueue(queue);
    expect((await receiver.received(1))[0]?.event).toHaveProperty('text');
    expect(await server.ok(200, 'PATCH', `${LIST}/${id}`, { format: null })).not.toHaveProperty('format');
    const [delivery] = await deliveriesOf(id);
    await server.ok(202, 'POST', `${V1}/webhooks/deliveries/${delivery?.id}/retry`);
    expect((await receiver.received(2))[1]?.event).toMatchObject({ type: 'job.enqueued' });
    const wrong = await server.refusal('PATCH', `${LIST}/${id}`, { format: 'pagerduty' });
    expect(wrong).toMatchObject({ status: 400, field: 'routing_key' });
    expect(await subscription(id)).not.toHaveProperty('format');
  });
});
