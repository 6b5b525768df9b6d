/** What was delivered, what is tried again, and what was given up. */
import type { Webhook, WebhookDelivery } from '../../../contract/webhooks';
import { Badge } from '../../components/badge';
import { Code } from '../../components/json';
import { FilterChips, Filters, Pager, SelectFilter } from '../../components/list';
import { Drawer } from '../../components/overlays';
import { Facts, Section } from '../../components/page';
import { Empty, Loaded } from '../../components/state';
import { actionsColumn, type Column, DataTable } from '../../components/table';
import { Copy, Duration, Foreign, JobLink, Time } from '../../components/text';
import { api } from '../../core/api';
import { aside } from '../../core/aside';
import { act } from '../../core/dialogs';
import { number } from '../../core/format';
import { useResource } from '../../core/resource';
import { pageNumber, query } from '../../core/router';
import { can } from '../../core/session';
import { DELIVERIES, DELIVERY_STATES, deliveryPath, type List } from './types';
import { isTold, useAfterEvents, useAfterTry } from './updates';

const PER_PAGE = 50;

export function Deliveries({ subscriptions }: { subscriptions: readonly Webhook[] }) {
  const page = pageNumber();
  const [subscription, status] = [query('subscription'), query('status')];
  const deliveries = useResource(
    (signal) => api.get<List<WebhookDelivery>>(DELIVERIES, { subscription, status, page, per_page: PER_PAGE }, signal),
    [subscription, status, page],
  );
  const shown = subscriptions.filter(({ id }) => subscription === '' || id === subscription);
  useAfterEvents(deliveries.reload, (event) => isTold(shown, event));
  useAfterTry(deliveries.reload, earliest(deliveries.data?.items));
  const urls = new Map(subscriptions.map(({ id, url }) => [id, url]));
  const replay = async ({ id }: WebhookDelivery) => {
    if (await act(() => api.post(`${deliveryPath(id)}/retry`), 'Delivery repeated.')) deliveries.reload();
  };
  return (
    <>
      <Filters>
        <SelectFilter
          name="status"
          label="Status"
          all="Any status"
          options={Object.keys(DELIVERY_STATES).map((one) => [one, one] as const)}
        />
        <SelectFilter
          name="subscription"
          label="Webhook"
          all="Any webhook"
          options={subscriptions.map(({ id, url }) => [id, url] as const)}
        />
        <button type="button" onClick={deliveries.reload}>
          Refresh
        </button>
      </Filters>
      <FilterChips names={{ status: 'Status', subscription: 'Webhook' }} />
      <Loaded of={deliveries}>
        {({ items, total }) => (
          <>
            <DataTable
              label="Deliveries"
              rows={items}
              columns={columns(urls, replay)}
              rowKey={({ id }) => id}
              rowHref={({ id }) => aside({ delivery: id })}
              keys={can('admin:write') ? { r: { label: 'Deliver again', run: replay } } : {}}
              empty={
                <Empty icon="webhooks" title="No deliveries">
                  The last thousand deliveries of each webhook are kept for a week.
                </Empty>
              }
            />
            <Pager total={total} perPage={PER_PAGE} />
          </>
        )}
      </Loaded>
      {query('delivery') && <DeliveryDrawer id={query('delivery')} urls={urls} onReplay={replay} />}
    </>
  );
}

/** When the next of them is tried. */
function earliest(items: readonly WebhookDelivery[] = []): string | undefined {
  return items.flatMap(({ next_attempt_at: at }) => at ?? []).sort()[0];
}

export function DeliveryStatus({ status }: { status: WebhookDelivery['status'] }) {
  const [tone, icon] = DELIVERY_STATES[status];
  return (
    <Badge tone={tone} icon={icon}>
      {status}
    </Badge>
  );
}

function columns(urls: ReadonlyMap<string, string>, replay: (row: WebhookDelivery) => void): Column<WebhookDelivery>[] {
  return [
    {
      id: 'event',
      label: 'Event',
      render: ({ id, event_type }) => <a href={aside({ delivery: id })}>{event_type}</a>,
    },
    { id: 'status', label: 'Status', render: ({ status }) => <DeliveryStatus status={status} /> },
    {
      id: 'answer',
      label: 'Last answer',
      render: ({ attempts }) => {
        const last = attempts.at(-1);
        return last ? (last.status_code ?? <Foreign>{last.error ?? 'none'}</Foreign>) : <span class="faint">–</span>;
      },
    },
    {
      id: 'to',
      label: 'Sent to',
      wide: true,
      render: ({ subscription_id: id }) => <Foreign>{urls.get(id) ?? id}</Foreign>,
    },
    {
      id: 'job',
      label: 'Job',
      wide: true,
      render: ({ job_id: id }) => (id ? <JobLink id={id} /> : <span class="faint">–</span>),
    },
    { id: 'attempts', label: 'Attempts', end: true, render: ({ attempt }) => number(attempt) },
    { id: 'next', label: 'Next try', end: true, render: ({ next_attempt_at }) => <Time at={next_attempt_at} /> },
    { id: 'created', label: 'When', end: true, render: ({ created_at }) => <Time at={created_at} /> },
    ...actionsColumn(can('admin:write'), (row: WebhookDelivery) => (
      <button type="button" class="small" onClick={() => replay(row)}>
        Replay
      </button>
    )),
  ];
}

function DeliveryDrawer(props: {
  id: string;
  urls: ReadonlyMap<string, string>;
  onReplay: (delivery: WebhookDelivery) => Promise<void>;
}) {
  const { id, urls, onReplay } = props;
  const one = useResource(
    (signal) =>
      api.get<{ delivery: WebhookDelivery }>(deliveryPath(id), undefined, signal).then(({ delivery }) => delivery),
    [id],
  );
  useAfterTry(one.reload, one.data?.next_attempt_at);
  return (
    <Drawer title="Delivery" name="delivery">
      <Loaded of={one}>
        {(delivery) => (
          <>
            {can('admin:write') && (
              <div class="actions">
                <button type="button" onClick={() => onReplay(delivery).then(one.reload)}>
                  Replay
                </button>
              </div>
            )}
            <Facts
              of={[
                ['Status', <DeliveryStatus status={delivery.status} />],
                ['Event', delivery.event_type],
                ['Sent to', <Foreign>{urls.get(delivery.subscription_id) ?? delivery.subscription_id}</Foreign>],
                ['Job', delivery.job_id && <JobLink id={delivery.job_id} />],
                ['When', <Time at={delivery.created_at} />],
                ['Next try', delivery.next_attempt_at && <Time at={delivery.next_attempt_at} />],
                [
                  'Id',
                  <span class="mono">
                    {delivery.id} <Copy text={delivery.id} label="delivery id" />
                  </span>,
                ],
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
  return (
    <div class="table-frame">
      <table class="table plain" aria-label="Attempts">
        <thead>
          <tr>
            <th scope="col">When</th>
            <th scope="col">Answer</th>
            <th scope="col" class="end">
              After
            </th>
          </tr>
        </thead>
        <tbody>
          {[...attempts].reverse().map(({ at, status_code: status, error, duration_ms: ms }) => (
            <tr key={at}>
              <td>
                <Time at={at} />
              </td>
              <td>
                {status !== undefined && (
                  <Badge tone={status < 300 ? 'green' : 'red'} icon={status < 300 ? 'completed' : 'discarded'}>
                    {status}
                  </Badge>
                )}{' '}
                {error && <Foreign>{error}</Foreign>}
              </td>
              <td class="end">
                <Duration ms={ms} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {attempt > attempts.length && <p class="faint">The newest of {number(attempt)}.</p>}
    </div>
  );
}
