/** Who changed what, with which filter, and how many jobs it was. */

import type { AuditEntry, AuditList } from '../../../contract/audit';
import { JsonSection } from '../../components/json';
import { type Filter, FilterBar } from '../../components/list';
import { Drawer } from '../../components/overlays';
import { Empty, Facts, PageHead } from '../../components/page';
import { Collection, type Column, column, countColumn, timeColumn } from '../../components/table';
import { Badge, Button, Count, Foreign, Id, Link, None } from '../../components/text';
import { useGet } from '../../core/api';
import { stringifyExact } from '../../core/exact';
import { absolute, brief } from '../../core/format';
import { aside, href, pageNumber, query, segment } from '../../core/router';
import { KINDS } from './kinds';
import './page.css';

const PER_PAGE = 50;

const SINCE = { '1h': 'Last hour', '24h': 'Last day', '7d': 'Last week', '30d': 'Last 30 days' };

const FILTERS: readonly Filter[] = [
  { name: 'actor', label: 'Name of a key', chip: 'Who' },
  { name: 'action', label: 'What', choice: ['Any action', Object.fromEntries(KINDS)] },
  { name: 'queue', label: 'Queue', placeholder: 'Queue (exact name)' },
  { name: 'job', label: 'Job', field: null },
  { name: 'since', label: 'Since', choice: ['Any time', SINCE] },
];

export default function AuditPage() {
  const page = pageNumber();
  const asked = FILTERS.map(({ name }) => [name, query(name)] as const);
  const entries = useGet<AuditList>('admin/audit', { ...Object.fromEntries(asked), page, per_page: PER_PAGE });
  const isFiltered = asked.some(([, value]) => value !== '');
  return (
    <div class="audit-page">
      <PageHead title="Audit" sub="Changes made by operators, kept for 90 days (at most 20,000 entries).">
        <Button label="Refresh" onClick={entries.reload} />
      </PageHead>
      <FilterBar of={FILTERS} />
      <Collection
        of={entries}
        label="Audit log"
        columns={COLUMNS}
        rowKey={({ id }) => id}
        rowHref={({ id }) => aside({ open: id })}
        perPage={PER_PAGE}
        drawer={(entry) => <EntryDrawer of={entry} />}
        unmatched={isFiltered && 'No matches'}
        empty={
          <Empty icon="audit" title="No changes yet">
            Changes made in the dashboard, on the command line or over HTTP appear here.
          </Empty>
        }
      />
    </div>
  );
}

function Actor({ of: { name, role, key_hint: hint } }: { of: AuditEntry['actor'] }) {
  const called = name ?? hint;
  return (
    <>
      {called === null ? (
        <span class="faint num">no key</span>
      ) : (
        <Link to={aside({ actor: called, page: null })} text={called} class="quiet" />
      )}
      {role && <small class="under">{role}</small>}
    </>
  );
}

/** What was acted on, as a link where it has a page. */
function Target({ action, target }: { action: string; target: string }) {
  const [kind] = action.split('.');
  const page = { queue: 'queues', job: 'jobs', workflow: 'workflows' }[kind ?? ''];
  const to = page
    ? href(`${page}/${segment(target)}`)
    : kind === 'cron'
      ? href('schedules', { open: target })
      : undefined;
  return to ? <Link to={to} text={target} /> : <Foreign>{target}</Foreign>;
}

function summary(value: unknown): string {
  if (value === null || value === undefined) return '';
  const members = typeof value === 'object' && value !== null ? Object.entries(value) : [['', value]];
  const texts = members.map(([name, one]) => `${name}: ${typeof one === 'string' ? one : stringifyExact(one, 0)}`);
  return brief(texts.join(', '), 90);
}

const reasonOf = ({ reason }: AuditEntry) => reason && <Foreign>{`“${reason}”`}</Foreign>;

const COLUMNS: readonly Column<AuditEntry>[] = [
  column('action', 'What', ({ id, action }) => (
    <a href={aside({ open: id })}>
      <code>{action}</code>
    </a>
  )),
  column('actor', 'Who', ({ actor }) => <Actor of={actor} />),
  column('target', 'Target', ({ action, target }) =>
    target === null ? (
      <None />
    ) : (
      <span class="target">
        <Target {...{ action, target }} />
      </span>
    ),
  ),
  column('detail', 'Filter or change', { wide: true, under: reasonOf }, ({ filter, change }) => (
    <span class="mono brief">
      <Foreign>{summary(filter) || summary(change)}</Foreign>
    </span>
  )),
  countColumn('count', 'Count', { sort: false }),
  timeColumn('at', 'When'),
];

function EntryDrawer({ of: entry }: { of: AuditEntry }) {
  const { at, actor, action, target, filter, change, count, operation_id, status, request_id, reason } = entry;
  return (
    <Drawer title={action}>
      <Facts
        of={[
          ['When', <span class="mono lines">{absolute(Date.parse(at))}</span>],
          ['Who', <Actor of={actor} />],
          ['Key', actor.key_hint && <span class="mono">{actor.key_hint}…</span>],
          ['Login', actor.subject && <span class="mono">{actor.subject}</span>],
          ['Target', target !== null && <Target {...{ action, target }} />],
          ['Count', count !== null && <Count value={count} exact />],
          ['Answer', <Badge look={[status < 300 ? 'green' : 'red']} text={status} />],
          ['Reason', reason && <Foreign>{reason}</Foreign>],
          ['Operation', operation_id && <span class="mono">{operation_id}</span>],
          ['Request', request_id && <Id text={request_id} label="request id" />],
        ]}
      />
      <JsonSection title="Filter" value={filter} />
      <JsonSection title="Change" value={change} />
    </Drawer>
  );
}
