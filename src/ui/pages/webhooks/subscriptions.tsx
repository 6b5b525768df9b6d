import type { Webhook } from '../../../contract/webhooks';
import { Badge } from '../../components/badge';
import { Collection } from '../../components/collection';
import { Empty } from '../../components/state';
import { type Column, countColumn, textColumn, timeColumn } from '../../components/table';
import { Link, Under, Words } from '../../components/text';
import type { Resource } from '../../core/resource';
import { aside } from '../../core/router';
import { healthOf, type List } from './types';
import { isTold, useAfterEvents } from './updates';

export function Subscriptions({ of: subscriptions }: { of: Resource<List<Webhook>> }) {
  useAfterEvents(subscriptions.reload, (event) => isTold(subscriptions.data?.items ?? [], event));
  return (
    <Collection
      of={subscriptions}
      label="Subscriptions"
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
  );
}

export function Health({ of: subscription }: { of: Webhook }) {
  const [tone, icon, text] = healthOf(subscription);
  return <Badge look={[tone, icon]} text={text} />;
}

const COLUMNS: readonly Column<Webhook>[] = [
  textColumn('url', 'Sent to', {
    render: ({ id, url, declared }) => (
      <>
        <Link to={aside({ open: id })} text={declared ?? url} />
        {declared !== undefined && <Under text={url} />}
      </>
    ),
  }),
  { id: 'health', label: 'Health', sort: (row) => healthOf(row)[2], render: (row) => <Health of={row} /> },
  { id: 'events', label: 'Events', render: ({ events, filter }) => <Wanted events={events} filter={filter} /> },
  timeColumn('last_delivery_at', 'Last delivery', {
    sort: ({ last_delivery_at: at }) => -Date.parse(at ?? '1970-01-01'),
  }),
  countColumn('success_count', 'Delivered', { wide: true }),
  countColumn('failure_count', 'Abandoned', { tone: 'red' }),
  countColumn('pending_count', 'Waiting', { wide: true }),
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
