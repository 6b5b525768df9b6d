/** What was delivered, what is tried again, and what was given up. */
import type { Webhook, WebhookDelivery } from '../../../contract/webhooks';
import { type Action, Actions } from '../../components/actions';
import { Code } from '../../components/json';
import { FilterBar, named } from '../../components/list';
import { Drawer } from '../../components/overlays';
import { Empty, Facts, Loaded, PlainTable, Section } from '../../components/page';
import { Collection, type Column, column, countColumn, timeColumn } from '../../components/table';
import { BAD, Badge, Button, Duration, Foreign, GOOD, Id, JobLink, None, Time } from '../../components/text';
import { api, can, useGet, useResource } from '../../core/api';
import { act } from '../../core/dialogs';
import { number } from '../../core/format';
import { aside, pageNumber, query } from '../../core/router';
import { DELIVERIES, DELIVERY_STATES, deliveryPath, type List, nameOf } from './types';
import { isNotified, useAfterEvents, useAfterTry } from './updates';

const PER_PAGE = 50;

export function Deliveries({ subscriptions }: { subscriptions: readonly Webhook[] }) {
  const page = pageNumber();
  const [subscription, status] = [query('subscription'), query('status')];
  const deliveries = useGet<List<WebhookDelivery>>(DELIVERIES, { subscription, status, page, per_page: PER_PAGE });
  const shown = subscriptions.filter(({ id }) => subscription === '' || id === subscription);
  useAfterEvents(deliveries.reload, (event) => isNotified(shown, event));
  useAfterTry(deliveries.reload, earliest(deliveries.data?.items));
  const urls = new Map(subscriptions.map((one) => [one.id, nameOf(one)]));
  return (
    <>
      <FilterBar
        of={[
          { name: 'status', label: 'Status', choice: ['Any status', named(Object.keys(DELIVERY_STATES))] },
          { name: 'subscription', label: 'Webhook', choice: ['Any webhook', Object.fromEntries(urls)] },
        ]}
      >
        <Button label="Refresh" onClick={deliveries.reload} />
      </FilterBar>
      <Collection
        of={deliveries}
        label="Deliveries"
        columns={columns(urls)}
        rowKey={({ id }) => id}
        rowHref={({ id }) => aside({ delivery: id })}
        actions={can('admin:write') && ACTIONS}
        perPage={PER_PAGE}
        empty={
          <Empty icon="webhooks" title="No deliveries">
            The last thousand deliveries of each webhook are kept for a week.
          </Empty>
        }
      />
      {query('delivery') && <DeliveryDrawer id={query('delivery')} urls={urls} onReplay={deliveries.reload} />}
    </>
  );
}

const earliest = (items: readonly WebhookDelivery[] = []): string | undefined =>
  items.flatMap(({ next_attempt_at: at }) => at ?? []).sort()[0];

export function DeliveryStatus({ status }: { status: WebhookDelivery['status'] }) {
  return <Badge look={DELIVERY_STATES[status]} text={status} />;
}

const ACTIONS: readonly Action<WebhookDelivery>[] = [
  {
    label: 'Replay',
    key: ['r', 'Deliver again'],
    run: ({ id }) => act(() => api.post(`${deliveryPath(id)}/retry`), 'Delivery repeated.'),
  },
];

const columns = (urls: ReadonlyMap<string, string>): Column<WebhookDelivery>[] => [
  column('event', 'Event', ({ id, event_type }) => <a href={aside({ delivery: id })}>{event_type}</a>),
  column('status', 'Status', ({ status }) => <DeliveryStatus status={status} />),
  column('answer', 'Last answer', ({ attempts }) => {
    const last = attempts.at(-1);
    return last ? (last.status_code ?? <Foreign>{last.error ?? 'none'}</Foreign>) : <None />;
  }),
  column('to', 'Sent to', { wide: true }, ({ subscription_id: id }) => <Foreign>{urls.get(id) ?? id}</Foreign>),
  column('job', 'Job', { wide: true }, ({ job_id: id }) => (id ? <JobLink id={id} /> : <None />)),
  countColumn('attempt', 'Attempts', { sort: false }),
  timeColumn('next_attempt_at', 'Next try'),
  timeColumn('created_at', 'When'),
];

function DeliveryDrawer(props: { id: string; urls: ReadonlyMap<string, string>; onReplay: () => void }) {
  const { id, urls, onReplay } = props;
  const one = useResource(
    (signal) =>
      api.get<{ delivery: WebhookDelivery }>(deliveryPath(id), undefined, signal).then(({ delivery }) => delivery),
    [id],
  );
  useAfterTry(one.reload, one.data?.next_attempt_at);
  const replayed = () => {
    onReplay();
    one.reload();
  };
  return (
    <Drawer title="Delivery" name="delivery">
      <Loaded of={one}>
        {(delivery) => (
          <>
            <Actions scope="admin:write" of={delivery} actions={ACTIONS} onDone={replayed} />
            <Facts
              of={[
                ['Status', <DeliveryStatus status={delivery.status} />],
                ['Event', delivery.event_type],
                ['Sent to', <Foreign>{urls.get(delivery.subscription_id) ?? delivery.subscription_id}</Foreign>],
                ['Job', delivery.job_id && <JobLink id={delivery.job_id} />],
                ['When', <Time at={delivery.created_at} />],
                ['Next try', delivery.next_attempt_at && <Time at={delivery.next_attempt_at} />],
                ['Id', <Id text={delivery.id} label="delivery id" />],
              ]}
            />
            <Section title="Attempts">
              <Attempts of={delivery} />
            </Section>
            {delivery.response_body !== undefined && (
              <Section title="Last answer">
                <Code text={delivery.response_body || '(empty)'} label="answer" />
              </Section>
            )}
          </>
        )}
      </Loaded>
    </Drawer>
  );
}

function Attempts({ of: { attempts, attempt } }: { of: WebhookDelivery }) {
  if (attempts.length === 0) return <p class="faint">None yet.</p>;
  const rows = [...attempts].reverse().map(({ at, status_code: status, error, duration_ms: ms }) => [
    <Time at={at} />,
    <>
      {status !== undefined && <Badge look={status < 300 ? GOOD : BAD} text={status} />}{' '}
      {error && <Foreign>{error}</Foreign>}
    </>,
    <Duration ms={ms} />,
  ]);
  return (
    <>
      <PlainTable label="Attempts" head={['When', 'Answer', 'After']} rows={rows} end={2} />
      {attempt > attempts.length && <p class="faint">The newest of {number(attempt)}.</p>}
    </>
  );
}
