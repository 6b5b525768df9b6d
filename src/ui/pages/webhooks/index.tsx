import type { Webhook } from '../../../contract/webhooks';
import { openTab, PageHead, Tabs } from '../../components/page';
import { Button } from '../../components/text';
import { useGet } from '../../core/resource';
import { openAside, query } from '../../core/router';
import { can } from '../../core/session';
import { Deliveries } from './deliveries';
import { SubscriptionForm } from './form';
import { SubscriptionDrawer } from './one';
import { Subscriptions } from './subscriptions';
import { type List, SUBSCRIPTIONS } from './types';
import './page.css';

const TABS = [
  { id: 'subscriptions', label: 'Subscriptions' },
  { id: 'deliveries', label: 'Deliveries' },
];

export default function WebhooksPage() {
  const subscriptions = useGet<List<Webhook>>(SUBSCRIPTIONS, { per_page: 100 });
  const tab = openTab(TABS);
  const open = subscriptions.data?.items.find(({ id }) => id === query('open'));
  return (
    <div class="webhooks-page">
      <PageHead title="Webhooks" sub="HTTPS requests that notify other servers of events.">
        {can('admin:write') && (
          <Button icon="plus" label="New webhook" class="primary" onClick={() => openAside({ edit: 'new' })} />
        )}
      </PageHead>
      <Tabs tabs={TABS} />
      {tab === 'subscriptions' && <Subscriptions of={subscriptions} />}
      {tab === 'deliveries' && <Deliveries subscriptions={subscriptions.data?.items ?? []} />}
      {tab === 'subscriptions' && open && <SubscriptionDrawer of={open} onChanged={subscriptions.reload} />}
      {can('admin:write') && query('edit') && subscriptions.data && (
        <SubscriptionForm
          of={subscriptions.data.items.find(({ id }) => id === query('edit'))}
          onSaved={subscriptions.reload}
        />
      )}
    </div>
  );
}
