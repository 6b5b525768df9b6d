/** The groups of a queue: what waits and runs of each, and what can be done to its jobs. */
import { useState } from 'preact/hooks';
import type { QueueGroup, QueueGroupDetail, QueueGroupList } from '../../../contract/queues';
import type { Action } from '../../components/actions';
import { FormDialog, TextField, textIn } from '../../components/form';
import { useOperation } from '../../components/operation';
import { Empty } from '../../components/page';
import { Collection, type Column, column, countColumn, textColumn, timeColumn } from '../../components/table';
import { Badge, JobLink, Link, None, Time } from '../../components/text';
import { api, can, isHidden, useGet } from '../../core/api';
import { now, useSlowly } from '../../core/clock';
import { act } from '../../core/dialogs';
import { readable } from '../../core/format';
import { href, pageNumber, segment } from '../../core/router';
import { type Action as JobAction, onFilter } from '../jobs/operations';
import { PURGED, purgeOf } from './danger';
import type { QueueTab } from './tab';

const PER_PAGE = 100;

/** Counting groups reads a part of the backlog, so it is not done for each event. */
const EVERY_MS = 2_000;

export function GroupsTab({ queue: { name }, round }: QueueTab) {
  const page = pageNumber();
  const slowly = useSlowly(round, EVERY_MS);
  const groups = useGet<QueueGroupList>(`queues/${segment(name)}/groups`, { page, per_page: PER_PAGE }, slowly);
  const [start, dialog] = useOperation(groups.reload);
  const [limited, setLimited] = useState<QueueGroup>();
  const begin = (action: JobAction, { group }: QueueGroup) => start(onFilter(action, { queue: name, group }));
  const pause = ({ group, paused }: QueueGroup) => {
    const path = `${pathOf(name, group)}/${paused ? 'resume' : 'pause'}`;
    return act(() => api.post(path), `${group} is ${paused ? 'resumed' : 'paused'}.`);
  };
  const isFor = (scope: string) => (row: QueueGroup) => isNamed(row) && can(scope);
  const actions: readonly Action<QueueGroup>[] = [
    {
      label: ({ paused }) => (paused ? 'Resume' : 'Pause'),
      ...{ key: ['p', 'Pause or resume it'], run: pause, isFor: isFor('data:write') },
    },
    { label: 'Limit', key: ['l', 'Limit it'], run: setLimited, isFor: isFor('data:write') },
    { label: 'Retry', key: ['r', 'Retry its jobs'], run: (row) => begin('retry', row), isFor: isNamed },
    { label: 'Cancel', key: ['c', 'Cancel its jobs'], run: (row) => begin('cancel', row), isFor: isNamed },
    {
      label: 'Purge',
      run: ({ group }) => start(purgeOf(name, { states: PURGED, group })),
      isFor: isFor('admin:purge'),
    },
  ];
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
      columns={columns(name)}
      actions={can('admin:write') && actions}
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
          {dialog}
        </>
      )}
    </Collection>
  );
}

/** Filters take the group itself, which this key may not see. */
const isNamed = ({ group }: QueueGroup) => !isHidden(group);

const columns = (queue: string): Column<QueueGroup>[] => [
  textColumn('group', 'Group', (row) => (
    <>
      <Link to={isNamed(row) ? href('jobs', { queue, group: row.group }) : undefined} text={row.group} />{' '}
      {row.noisy && <Badge look={['amber']} text="noisy" />}
    </>
  )),
  countColumn('waiting', 'Waiting'),
  countColumn('limited', 'Limited', { wide: true }),
  countColumn('running', 'Running'),
  countColumn('weight', 'Weight', { wide: true }),
  timeColumn('oldest_waiting_at', 'Oldest', { end: false, sort: (row) => row.oldest_waiting_at ?? '' }),
  column('why', 'Why it waits', (row) => <Reason of={row} />),
];

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

const pathOf = (queue: string, group: string) => `queues/${segment(queue)}/groups/${segment(group)}`;

function GroupDialog(props: { queue: string; of: QueueGroup; onClose: () => void; onDone: () => void }) {
  const { queue, of, onClose, onDone } = props;
  const path = pathOf(queue, of.group);
  const detail = useGet<QueueGroupDetail>(path);
  const save = async (form: FormData) => {
    const text = (name: string) => textIn(form, name);
    const number = (name: string) =>
      text(name) === '' ? null : /^\d+$/.test(text(name)) ? Number(text(name)) : text(name);
    const isRated = text('limit') !== '' || text('period') !== '';
    await api.put(path, {
      concurrency: number('concurrency'),
      rate: isRated ? { limit: number('limit'), period: text('period') } : null,
      max_waiting: number('max_waiting'),
      weight: number('weight'),
    });
    return `${of.group} has new limits.`;
  };
  const { override } = detail.data ?? {};
  return (
    <FormDialog
      {...{ title: `Limit ${of.group}`, action: 'Save', of: detail, values: { ...override, ...override?.rate } }}
      {...{ onSubmit: save, onDone, onClose }}
    >
      <p class="note">An empty field uses the limit that the queue sets for its groups.</p>
      <TextField name="concurrency" label="Running at once" inputMode="numeric" />
      <TextField name="limit" label="Starts" at={['rate', 'rate.limit']} inputMode="numeric" />
      <TextField
        name="period"
        label="Per"
        hint="second, minute, hour, day, or a duration such as 10s"
        at={['rate.period']}
      />
      <TextField name="max_waiting" label="Jobs that may wait" inputMode="numeric" />
      <TextField name="weight" label="Weight" hint="Its share in the turns, 1 to 100" inputMode="numeric" />
    </FormDialog>
  );
}
