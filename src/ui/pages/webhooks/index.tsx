import type { Webhook } from '../../../contract/webhooks';
import { NewButton } from '../../components/actions';
import { openTab, PageHead, Tabs } from '../../components/page';
import { can, useGet } from '../../core/api';
import { query } from '../../core/router';
import { Deliveries } from './deliveries';
import { SubscriptionForm } from './form';
import { Subscriptions } from './one';
import { type List, SUBSCRIPTIONS } from './types';
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
