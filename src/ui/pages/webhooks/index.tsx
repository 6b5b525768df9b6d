/** Webhooks: what each is sent, how that goes, and what can be done to it. */

import { useState } from 'preact/hooks';
import type { Webhook, WebhookTest } from '../../../contract/webhooks';
import { type Action, Actions, NewButton } from '../../components/actions';
import { Code, Secret } from '../../components/json';
import { Drawer } from '../../components/overlays';
import { Empty, Facts, openTab, PageHead, Section, Tabs } from '../../components/page';
import { Collection, type Column, column, countColumn, textColumn, timeColumn } from '../../components/table';
import { BAD, Badge, Count, Foreign, GOOD, Link, Time, Words } from '../../components/text';
import { api, can, type Resource, useGet } from '../../core/api';
import { act, askAndAct } from '../../core/dialogs';
import { number } from '../../core/format';
import { aside, href, openAside, query } from '../../core/router';
import { Deliveries } from './deliveries';
import { SECRET, SubscriptionForm } from './form';
import { FORMS, formOf, healthOf, type List, nameOf, SUBSCRIPTIONS, subscriptionPath } from './types';
import { isNotified, useAfterEvents } from './updates';
import './page.css';

const TABS = [
  { id: 'subscriptions', label: 'Subscriptions' },
  { id: 'deliveries', label: 'Deliveries' },
];

export default function WebhooksPage() {
  const subscriptions = useGet<List<Webhook>>(SUBSCRIPTIONS, { per_page: 100 });
  const tab = openTab(TABS);
  const reload = subscriptions.reload;
  const before = subscriptions.data?.items.find(({ id }) => id === query('edit'));
  return (
    <div class="webhooks-page">
      <PageHead title="Webhooks" sub="HTTPS requests that notify other servers of events.">
        <NewButton label="New webhook" />
      </PageHead>
      <Tabs tabs={TABS} />
      {tab === 'subscriptions' && <Subscriptions of={subscriptions} />}
      {tab === 'deliveries' && <Deliveries subscriptions={subscriptions.data?.items ?? []} />}
      {can('admin:write') && query('edit') && subscriptions.data && <SubscriptionForm of={before} onSaved={reload} />}
    </div>
  );
}

function Subscriptions({ of: subscriptions }: { of: Resource<List<Webhook>> }) {
  useAfterEvents(subscriptions.reload, (event) => isNotified(subscriptions.data?.items ?? [], event));
  return (
    <Collection
      of={subscriptions}
      label="Subscriptions"
      columns={COLUMNS}
      rowKey={({ id }) => id}
      rowHref={({ id }) => aside({ open: id })}
      drawer={(one) => <SubscriptionDrawer of={one} onChanged={subscriptions.reload} />}
      empty={
        <Empty icon="webhooks" title="No webhooks yet">
          A webhook sends events to your server. Create one here, or with{' '}
          <code>POST /ojs/v1/webhooks/subscriptions</code>.
        </Empty>
      }
    />
  );
}

function Health({ of: subscription }: { of: Webhook }) {
  const [tone, icon, text] = healthOf(subscription);
  return <Badge look={[tone, icon]} text={text} />;
}

function filterOf({ filter: { queues = [], types = [] } = {} }: Webhook) {
  if (queues.length + types.length === 0) return null;
  return (
    <>
      {queues.length > 0 && <>in {queues.join(', ')} </>}
      {types.length > 0 && <>of {types.join(', ')}</>}
    </>
  );
}

const COLUMNS: readonly Column<Webhook>[] = [
  textColumn('url', 'Sent to', { under: (one) => one.declared && <Foreign>{one.url}</Foreign> }, (one) => (
    <Link to={aside({ open: one.id })} text={nameOf(one)} />
  )),
  column('health', 'Health', { sort: (row) => healthOf(row)[2] }, (row) => <Health of={row} />),
  column('events', 'Events', { under: filterOf }, ({ events }) => (
    <Words of={events.slice(0, 3)}>
      {events.length > 3 && <span class="faint">and {events.length - 3} more</span>}
    </Words>
  )),
  timeColumn('last_delivery_at', 'Last delivery', {
    sort: ({ last_delivery_at: at }) => -Date.parse(at ?? '1970-01-01'),
  }),
  countColumn('success_count', 'Delivered', { wide: true }),
  countColumn('failure_count', 'Abandoned', { tone: 'red' }),
  countColumn('pending_count', 'Waiting', { wide: true }),
];

function SubscriptionDrawer({ of: one, onChanged }: { of: Webhook; onChanged: () => void }) {
  const [secret, setSecret] = useState('');
  const [answer, setAnswer] = useState<WebhookTest>();
  const path = subscriptionPath(one.id);
  const test = () =>
    act(async () => {
      setAnswer(undefined);
      setAnswer(await api.post<WebhookTest>(`${path}/test`));
    });
  const rotate = () => {
    const text = 'Both secrets sign for 24 hours, so that you can update the receiver.';
    const question = { title: 'Create a new secret?', text, action: 'Create a new secret' };
    return askAndAct(question, async () =>
      setSecret((await api.post<{ secret: string }>(`${path}/rotate-secret`)).secret),
    );
  };
  const actions: readonly Action<Webhook>[] = [
    { label: 'Test', run: test },
    { label: ({ active }) => (active ? 'Disable' : 'Enable'), run: toggle },
    { label: 'Edit', run: ({ id }) => openAside({ edit: id }) },
    { label: 'New secret', run: rotate },
    { label: 'Delete', danger: true, run: remove, removes: true },
  ];
  return (
    <Drawer title="Webhook">
      <Actions scope="admin:write" of={one} actions={actions} onDone={onChanged} />
      {secret && <Secret text={secret} {...SECRET} />}
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

function toggle({ id, active }: Webhook): Promise<boolean> {
  const done = active ? 'Deliveries paused.' : 'Deliveries resumed.';
  return act(() => api.patch(subscriptionPath(id), { active: !active }), done);
}

function remove({ id, pending_count }: Webhook): Promise<boolean> {
  const text = `${number(pending_count)} waiting deliveries are dropped.`;
  const question = { title: 'Delete this webhook?', text, action: 'Delete the webhook', danger: true };
  return askAndAct(question, () => api.del(subscriptionPath(id)), 'The webhook is deleted.');
}

const TestAnswer = ({ of: answer }: { of: WebhookTest }) => (
  <div class="card answer" role="status">
    <Badge look={answer.success ? GOOD : BAD} text={answer.status_code ?? 'no answer'} /> after{' '}
    {number(answer.response_time_ms)} ms
    {answer.error && <Foreign before=": ">{answer.error}</Foreign>}
    {answer.response_body && <Code text={answer.response_body} label="answer" />}
  </div>
);
