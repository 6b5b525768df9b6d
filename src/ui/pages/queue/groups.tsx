/** The groups of a queue: what waits and runs of each, and what can be done to its jobs. */
import { useState } from 'preact/hooks';
import type { QueueGroup, QueueGroupList } from '../../../contract/queues';
import { Badge } from '../../components/badge';
import { Collection } from '../../components/collection';
import { OperationDialog, type StartedOperation } from '../../components/operation';
import { Empty } from '../../components/state';
import { actionsColumn, type Column, countColumn, textColumn, timeColumn } from '../../components/table';
import { Button, JobLink, Link, None, Time } from '../../components/text';
import { api } from '../../core/api';
import { href, segment } from '../../core/base';
import { now, useSlowly } from '../../core/clock';
import { act } from '../../core/dialogs';
import { readable } from '../../core/format';
import { useGet } from '../../core/resource';
import { pageNumber } from '../../core/router';
import { can, isHidden } from '../../core/session';
import { type Action, onFilter } from '../jobs/operations';
import { GroupDialog, pathOf, purgeOf } from './group-dialog';
import type { QueueTab } from './tab';

const PER_PAGE = 100;

/** Counting groups reads a part of the backlog, so it is not done for each event. */
const EVERY_MS = 2_000;

export function GroupsTab({ queue: { name }, round }: QueueTab) {
  const page = pageNumber();
  const slowly = useSlowly(round, EVERY_MS);
  const groups = useGet<QueueGroupList>(`queues/${segment(name)}/groups`, { page, per_page: PER_PAGE }, slowly);
  const [operation, setOperation] = useState<StartedOperation>();
  const [limited, setLimited] = useState<QueueGroup>();
  const begin = (action: Action, { group }: QueueGroup) => setOperation(onFilter(action, { queue: name, group }));
  const actions: Actions = {
    retry: (row) => begin('retry', row),
    cancel: (row) => begin('cancel', row),
    purge: (row) => setOperation(purgeOf(name, row)),
    limit: setLimited,
    async pause({ group, paused }) {
      const path = `${pathOf(name, group)}/${paused ? 'resume' : 'pause'}`;
      if (await act(() => api.post(path), `${group} is ${paused ? 'resumed' : 'paused'}.`)) groups.reload();
    },
  };
  const key = (label: string, run: (row: QueueGroup) => void) => {
    return { label, run: (row: QueueGroup) => isNamed(row) && run(row) };
  };
  const keys = {
    r: key('Retry its jobs', actions.retry),
    c: key('Cancel its jobs', actions.cancel),
    p: key('Pause or resume it', actions.pause),
    l: key('Limit it', actions.limit),
  };
  return (
    <Collection
      of={groups}
      note={({ counts_are_exact }) =>
        counts_are_exact === false && (
          <p class="note faint" role="status">
            More jobs wait than were counted: the numbers are those of the first ones.
          </p>
        )
      }
      label="Groups"
      rowKey={({ group }) => group}
      columns={columns(name, actions)}
      keys={can('admin:write') && keys}
      perPage={PER_PAGE}
      empty={
        <Empty icon="jobs" title="No job with a group waits or runs">
          A job names its group: <code>{'"options": {"group": "acme"}'}</code>.
        </Empty>
      }
    >
      {() => (
        <>
          {limited && (
            <GroupDialog queue={name} of={limited} onClose={() => setLimited(undefined)} onDone={groups.reload} />
          )}
          {operation && (
            <OperationDialog of={operation} onClose={() => setOperation(undefined)} onDone={groups.reload} />
          )}
        </>
      )}
    </Collection>
  );
}

/** Filters take the group itself, which this key may not see. */
const isNamed = ({ group }: QueueGroup) => !isHidden(group);

/** What can be done to a group, and to its jobs. */
type Actions = Record<'retry' | 'cancel' | 'purge' | 'limit' | 'pause', (row: QueueGroup) => void>;

function columns(queue: string, actions: Actions): Column<QueueGroup>[] {
  return [
    textColumn('group', 'Group', {
      render: (row) => (
        <>
          <Link to={isNamed(row) ? href('jobs', { queue, group: row.group }) : undefined} text={row.group} />{' '}
          {row.noisy && <Badge look={['amber']} text="noisy" />}
        </>
      ),
    }),
    countColumn('waiting', 'Waiting'),
    countColumn('limited', 'Limited', { wide: true }),
    countColumn('running', 'Running'),
    countColumn('weight', 'Weight', { wide: true }),
    timeColumn('oldest_waiting_at', 'Oldest', { end: false, sort: (row) => row.oldest_waiting_at ?? '' }),
    { id: 'why', label: 'Why it waits', render: (row) => <Reason of={row} /> },
    ...actionsColumn(can('admin:write'), (row: QueueGroup) =>
      isNamed(row) ? (
        <span class="row-actions">
          {can('data:write') && (
            <>
              <Button label={row.paused ? 'Resume' : 'Pause'} class="small" onClick={() => actions.pause(row)} />
              <Button label="Limit" class="small" onClick={() => actions.limit(row)} />
            </>
          )}
          <Button label="Retry" class="small" onClick={() => actions.retry(row)} />
          <Button label="Cancel" class="small" onClick={() => actions.cancel(row)} />
          {can('admin:purge') && <Button label="Purge" class="small" onClick={() => actions.purge(row)} />}
        </span>
      ) : null,
    ),
  ];
}

/** What holds the group, in a word; the whole sentence when it is pointed at. */
function Reason({ of: { waiting_for: waiting, waiting: count, limited } }: { of: QueueGroup }) {
  if (!waiting) return limited > 0 && limited === count ? <>limit of their keys</> : <None />;
  const { reason, job_id: job, until, detail } = waiting;
  return (
    <span title={readable(detail, now.value)}>
      {reason === 'group_paused' && <Badge look={['red', 'pause']} text="paused" />}
      {reason === 'group' && job !== undefined && (
        <>
          held by job <JobLink id={job} />
        </>
      )}
      {reason === 'group' && job === undefined && (until ? <Time before="rate, opens " at={until} /> : 'concurrency')}
    </span>
  );
}
