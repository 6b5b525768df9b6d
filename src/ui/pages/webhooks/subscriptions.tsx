/** The subscriptions, with how each gets on. */
import type { Webhook } from '../../../contract/webhooks';
import { Badge } from '../../components/badge';
import { Empty, Loaded } from '../../components/state';
import { type Column, DataTable } from '../../components/table';
import { Count, Foreign, Time, Words } from '../../components/text';
import { aside } from '../../core/aside';
import type { Resource } from '../../core/resource';
import { healthOf, type List } from './types';
import { isTold, useAfterEvents } from './updates';

export function Subscriptions({ of: subscriptions }: { of: Resource<List<Webhook>> }) {
  useAfterEvents(subscriptions.reload, (event) => isTold(subscriptions.data?.items ?? [], event));
  return (
    <Loaded of={subscriptions}>
      {({ items }) => (
        <DataTable
          label="Subscriptions"
          rows={items}
          columns={COLUMNS}
          rowKey={({ id }) => id}
          rowHref={({ id }) => aside({ open: id })}
          empty={
            <Empty icon="webhooks" title="No webhooks yet">
              A webhook sends events to your server. Create one here, or with{' '}
              <code>POST /ojs/v1/webhooks/subscriptions</code>.
            </Empty>
          }
        />
      )}
    </Loaded>
  );
}

export function Health({ of: subscription }: { of: Webhook }) {
  const [tone, icon, text] = healthOf(subscription);
  return (
    <Badge tone={tone} icon={icon}>
      {text}
    </Badge>
  );
}

const COLUMNS: readonly Column<Webhook>[] = [
  {
    id: 'url',
    label: 'Sent to',
    sort: ({ url }) => url,
    render: ({ id, url }) => (
      <a href={aside({ open: id })}>
        <Foreign>{url}</Foreign>
      </a>
    ),
  },
  { id: 'health', label: 'Health', sort: (row) => healthOf(row)[2], render: (row) => <Health of={row} /> },
  { id: 'events', label: 'Events', render: ({ events, filter }) => <Wanted events={events} filter={filter} /> },
  {
    id: 'last',
    label: 'Last delivery',
    end: true,
    sort: ({ last_delivery_at: at }) => -Date.parse(at ?? '1970-01-01'),
    render: ({ last_delivery_at: at }) => <Time at={at} />,
  },
  {
    id: 'success',
    label: 'Delivered',
    end: true,
    wide: true,
    sort: ({ success_count }) => success_count,
    render: ({ success_count }) => <Count value={success_count} />,
  },
  {
    id: 'failed',
    label: 'Abandoned',
    end: true,
    sort: ({ failure_count }) => failure_count,
    render: ({ failure_count }) => (
      <span class={failure_count > 0 ? 'red' : ''}>
        <Count value={failure_count} />
      </span>
    ),
  },
  {
    id: 'pending',
    label: 'Waiting',
    end: true,
    wide: true,
    sort: ({ pending_count }) => pending_count,
    render: ({ pending_count }) => <Count value={pending_count} />,
  },
];

/** What it subscribed to: a few of them, and how many more. */
export function Wanted({ events, filter }: Pick<Webhook, 'events'> & { filter: Webhook['filter'] | undefined }) {
  const { queues = [], types = [] } = filter ?? {};
  const some = events.slice(0, 3);
  return (
    <>
      <Words of={some}>
        {events.length > some.length && <span class="faint">and {events.length - some.length} more</span>}
      </Words>
      {(queues.length > 0 || types.length > 0) && (
        <small class="under">
          {queues.length > 0 && <>in {queues.join(', ')} </>}
          {types.length > 0 && <>of {types.join(', ')}</>}
        </small>
      )}
    </>
  );
}
