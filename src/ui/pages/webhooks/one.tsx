import { useState } from 'preact/hooks';
import type { Webhook, WebhookTest } from '../../../contract/webhooks';
import { BAD, Badge, GOOD } from '../../components/badge';
import { Code } from '../../components/json';
import { Drawer } from '../../components/overlays';
import { Facts, Section } from '../../components/page';
import { Button, Count, Foreign, Time, Words } from '../../components/text';
import { api } from '../../core/api';
import { href } from '../../core/base';
import { act, askAndAct } from '../../core/dialogs';
import { number } from '../../core/format';
import { aside, openAside } from '../../core/router';
import { can } from '../../core/session';
import { Secret } from './form';
import { Health } from './subscriptions';
import { FORMS, formOf, subscriptionPath } from './types';

export function SubscriptionDrawer({ of: one, onChanged }: { of: Webhook; onChanged: () => void }) {
  const [secret, setSecret] = useState('');
  const [answer, setAnswer] = useState<WebhookTest>();
  const path = subscriptionPath(one.id);
  const done = async (work: Promise<boolean>) => (await work) && onChanged();

  const test = () =>
    act(async () => {
      setAnswer(undefined);
      setAnswer(await api.post<WebhookTest>(`${path}/test`));
    });
  const rotate = () =>
    askAndAct(
      {
        title: 'Create a new secret?',
        text: 'Both secrets sign for 24 hours, so that you can update the receiver.',
        action: 'Create a new secret',
      },
      async () => setSecret((await api.post<{ secret: string }>(`${path}/rotate-secret`)).secret),
    );
  const toggle = () =>
    act(() => api.patch(path, { active: !one.active }), one.active ? 'Deliveries paused.' : 'Deliveries resumed.');
  const remove = async () => {
    const text = `${number(one.pending_count)} waiting deliveries are dropped.`;
    const question = { title: 'Delete this webhook?', text, action: 'Delete the webhook', danger: true };
    if (!(await askAndAct(question, () => api.del(path), 'The webhook is deleted.'))) return;
    openAside({ open: null });
    onChanged();
  };
  return (
    <Drawer title="Webhook">
      {can('admin:write') && (
        <div class="actions">
          <Button label="Test" onClick={() => done(test())} />
          <Button label={one.active ? 'Disable' : 'Enable'} onClick={() => done(toggle())} />
          <Button label="Edit" onClick={() => openAside({ edit: one.id })} />
          <Button label="New secret" onClick={() => done(rotate())} />
          <Button label="Delete" class="danger" onClick={remove} />
        </div>
      )}
      {secret && <Secret text={secret} />}
      {answer && <TestAnswer of={answer} />}
      {one.disabled_reason && (
        <p class="failure">
          {one.disabled_reason === 'gone'
            ? 'The receiver answered 410 Gone. No events are sent until you enable the webhook again.'
            : 'Every attempt failed for days. No events are sent until you enable the webhook again.'}
        </p>
      )}
      <Facts
        of={[
          ['Health', <Health of={one} />],
          ['Sent to', <Foreign>{one.url}</Foreign>],
          ['Name in code', one.declared && <Foreign>{one.declared}</Foreign>],
          ['Format', FORMS[formOf(one)]],
          ['Last delivery', <Time at={one.last_delivery_at} />],
          ['Status', one.last_delivery_status],
          ['Delivered', <Count value={one.success_count} exact />],
          ['Abandoned', <Count value={one.failure_count} exact />],
          ['Waiting', <Count value={one.pending_count} exact />],
          ['Failing since', one.failing_since && <Time at={one.failing_since} />],
          ['Both secrets sign until', one.former_secret_until && <Time at={one.former_secret_until} />],
          ['Created', <Time at={one.created_at} />],
          ['Id', <span class="mono">{one.id}</span>],
        ]}
      />
      <Section title="Events">
        <p>
          <Words of={one.events} />
        </p>
        {one.filter?.queues && <p>Queues {one.filter.queues.join(', ')}.</p>}
        {one.filter?.types && <p>Job types {one.filter.types.join(', ')}.</p>}
        {one.filter?.groups && <p>Groups {one.filter.groups.join(', ')}.</p>}
      </Section>
      {typeof one.format === 'object' && (
        <Section title="Template">
          <Code text={JSON.stringify(one.format.template, null, 2)} label="template" />
        </Section>
      )}
      <p>
        <a href={href('webhooks', { tab: 'deliveries', subscription: one.id })}>All deliveries</a>
        {' · '}
        <a href={aside({ open: null, tab: 'deliveries', subscription: one.id, status: 'dead' })}>
          Abandoned deliveries
        </a>
      </p>
    </Drawer>
  );
}

function TestAnswer({ of: answer }: { of: WebhookTest }) {
  return (
    <div class="card answer" role="status">
      <Badge look={answer.success ? GOOD : BAD} text={answer.status_code ?? 'no answer'} /> after{' '}
      {number(answer.response_time_ms)} ms
      {answer.error && <Foreign before=": ">{answer.error}</Foreign>}
      {answer.response_body && <Code text={answer.response_body} label="answer" />}
    </div>
  );
}
