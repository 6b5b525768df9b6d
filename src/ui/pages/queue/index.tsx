/** One queue: how it gets on, why nothing runs, what runs in it, its settings, limits and cost. */
import type { ComponentType } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { PageActions } from '../../components/actions';
import { Loaded, openTab, PageHead, type Tab, Tabs } from '../../components/page';
import { api, type Resource, useGet } from '../../core/api';
import { useLive } from '../../core/live';
import { href, segment } from '../../core/router';
import { can } from '../../core/session';
import { LimitKeys } from '../limits/keys';
import { type History, useHistory } from '../queues/history';
import { ACTIONS, isNotable, StandingBadge } from '../queues/mode';
import type { QueueItem } from '../queues/types';
import { DangerTab } from './danger';
import { GroupsTab } from './groups';
import { CostTab, PrioritiesTab, TypesTab } from './numbers';
import { OverviewTab } from './overview';
import { SettingsTab } from './settings';
import type { QueueTab } from './tab';
import './queue.css';

interface QueueTabs extends Tab {
  scope?: string;
  /** Only for such queues; absent: for all. */
  isFor?: (queue: QueueItem) => boolean;
  of: ComponentType<QueueTab>;
}

const TABS: readonly QueueTabs[] = [
  { id: 'overview', label: 'Overview', of: OverviewTab },
  { id: 'types', label: 'Jobs by type', of: TypesTab },
  { id: 'priorities', label: 'Priorities', of: PrioritiesTab },
  {
    ...{ id: 'groups', label: 'Groups', of: GroupsTab },
    isFor: ({ configuration }) => configuration?.groups !== undefined,
  },
  { id: 'settings', label: 'Settings', of: SettingsTab },
  { id: 'limits', label: 'Limits', of: ({ queue }) => <LimitKeys queue={queue.name} /> },
  { id: 'cost', label: 'Cost', of: CostTab },
  { id: 'danger', label: 'Danger zone', of: DangerTab, scope: 'admin:purge' },
];

export default function QueuePage({ params: { name = '' } }: { params: Readonly<Record<string, string>> }) {
  const queue = useGet<QueueItem>(`admin/queues/${segment(name)}`, { include: 'recent' });
  const history = useHistory(name);
  const round = useRounds(name, queue, history);
  const tabs = TABS.filter(
    ({ scope, isFor }) =>
      (scope === undefined || can(scope)) && (isFor === undefined || (queue.data !== undefined && isFor(queue.data))),
  );
  const Open = tabs.find(({ id }) => id === openTab(tabs))?.of ?? OverviewTab;
  return (
    <div class="queue-page">
      <PageHead
        title={<bdi>{name}</bdi>}
        badge={queue.data && isNotable(queue.data) && <StandingBadge of={queue.data} />}
        name={name}
        up={{ href: href('queues'), text: 'Queues' }}
      >
        {queue.data && can('admin:write') && (
          <PageActions title="Queue" of={queue.data} actions={ACTIONS} onDone={queue.reload} />
        )}
      </PageHead>
      <Tabs tabs={tabs} />
      <Loaded of={queue}>
        {(data) => <Open queue={data} history={history} round={round} reload={queue.reload} />}
      </Loaded>
    </div>
  );
}

/** Asks the queue after one of its events: it is awake then. One question at a time. */
function useRounds(name: string, queue: Resource<QueueItem>, { add, points }: History): number {
  const [round, setRound] = useState(0);
  const state = useRef<'idle' | 'asking' | 'again'>('idle');
  const held = useRef(queue.data);
  held.current = queue.data;
  const ask = async () => {
    if (state.current !== 'idle') {
      state.current = 'again';
      return;
    }
    state.current = 'asking';
    try {
      const after = await api.get<QueueItem>(`admin/queues/${segment(name)}`, { include: 'recent' });
      add(held.current, after);
      queue.update(() => after);
      setRound((count) => count + 1);
    } catch {
      queue.reload();
    }
    const isWanted = (state.current as string) === 'again';
    state.current = 'idle';
    if (isWanted) await ask();
  };
  useLive(`queue:${name}`, {
    onEvents: ask,
    onGap: () => {
      queue.reload();
      points.reload();
      setRound((count) => count + 1);
    },
  });
  return round;
}
