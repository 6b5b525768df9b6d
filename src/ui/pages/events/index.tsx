/** Everything that happens, as it happens. */
import { useState } from 'preact/hooks';
import { Badge, type Tone } from '../../components/badge';
import { Json } from '../../components/json';
import { FilterChips, Filters, SelectFilter, TextFilter } from '../../components/list';
import { Drawer } from '../../components/overlays';
import { PageHead } from '../../components/page';
import { Empty, Loaded } from '../../components/state';
import { type Column, DataTable } from '../../components/table';
import { Copy, Foreign, IdLink, Time } from '../../components/text';
import { api } from '../../core/api';
import { href, segment } from '../../core/base';
import { number } from '../../core/format';
import { type LiveEvent, paused, refusal, setPaused, useLive } from '../../core/live';
import { useResource } from '../../core/resource';
import { query, withQuery } from '../../core/router';
import { fromList, type ListedEvent, type Shown } from './shown';

/** Events that are kept on the page. */
const KEPT = 200;
const KINDS = ['job', 'queue', 'worker', 'workflow', 'cron', 'alert'] as const;

export default function EventsPage() {
  const queue = query('queue');
  // What happened before; from then on the live feed adds to it.
  const before = useResource(
    (signal) =>
      api
        .get<{ events: ListedEvent[] }>('events', { queue, page: 1, per_page: 50 }, signal)
        .then(({ events }) => events.map(fromList)),
    [queue],
  );
  const [fresh, setFresh] = useState<ReadonlySet<string>>(new Set());
  useLive(queue ? `queue:${queue}` : 'all', {
    onEvents: (events) => {
      const shown = events.filter(({ event }) => event !== 'job.state_changed').map(asShown);
      setFresh(new Set(shown.map(({ id }) => id)));
      before.update((held) => merge(shown, held));
    },
    onGap: before.reload,
  });
  return (
    <>
      <PageHead title="Events" sub="As they happen; the newest thousand of each queue are kept.">
        <button type="button" aria-pressed={paused.value} onClick={() => setPaused(!paused.value)}>
          {paused.value ? 'Go on' : 'Pause'} <kbd>.</kbd>
        </button>
      </PageHead>
      <Filters>
        <TextFilter name="queue" label="Queue" placeholder="Queue (exact name)" />
        <SelectFilter
          name="kind"
          label="Kind"
          all="All kinds"
          options={KINDS.map((kind) => [kind, `${kind}.*`] as const)}
        />
        <TextFilter name="text" label="Filter by type or subject" />
      </Filters>
      <FilterChips names={{ queue: 'Queue', kind: 'Kind', text: 'Text' }} />
      {refusal.value && <p class="note amber">Live updates are off: {refusal.value}</p>}
      <Loaded of={before}>{(events) => <Feed events={events.filter(isWanted)} fresh={fresh} />}</Loaded>
    </>
  );
}

function Feed({ events, fresh }: { events: readonly Shown[]; fresh: ReadonlySet<string> }) {
  const open = events.find(({ id }) => id === query('open'));
  return (
    <>
      <DataTable
        label="Events"
        rows={events}
        columns={COLUMNS}
        rowKey={({ id }) => id}
        rowHref={({ id }) => withQuery({ open: id })}
        changed={fresh}
        empty={
          <Empty icon="events" title="Nothing yet">
            Events appear here the moment something happens.
          </Empty>
        }
      />
      {open && (
        <Drawer title={open.event}>
          <Json value={open.data} label="event" open={3} />
          <p class="faint mono">
            {open.id} <Copy text={open.id} label="event id" />
          </p>
        </Drawer>
      )}
    </>
  );
}

const TONES: readonly (readonly [RegExp, Tone])[] = [
  [/completed|resumed|resolved/, 'green'],
  [/failed|discarded|firing|suspended|evicted/, 'red'],
  [/retry|paused|expired|skipped|snoozed/, 'amber'],
  [/started|triggered|progress|log$/, 'violet'],
  [/enqueued|scheduled/, 'blue'],
];

const COLUMNS: readonly Column<Shown>[] = [
  {
    id: 'event',
    label: 'Event',
    render: ({ event }) => <Badge tone={TONES.find(([words]) => words.test(event))?.[1] ?? 'neutral'}>{event}</Badge>,
  },
  {
    id: 'type',
    label: 'Type',
    render: ({ type }) => (type ? <Foreign>{type}</Foreign> : <span class="faint">–</span>),
  },
  {
    id: 'queue',
    label: 'Queue',
    render: ({ queue }) =>
      queue ? <a href={href(`queues/${segment(queue)}`)}>{queue}</a> : <span class="faint">–</span>,
  },
  {
    id: 'subject',
    label: 'Subject',
    render: ({ job, subject }) => (job ? <IdLink id={job} to={href(`jobs/${job}`)} /> : <Foreign>{subject}</Foreign>),
  },
  { id: 'what', label: 'What', wide: true, render: ({ data }) => <What data={data} /> },
  {
    id: 'time',
    label: 'When',
    end: true,
    render: ({ id, timestamp }) => (
      <a class="quiet" href={withQuery({ open: id })}>
        <Time at={timestamp} />
      </a>
    ),
  },
];

/** The one thing of an event that tells most. */
function What({ data }: { data: Shown['data'] }) {
  const { error, duration_ms: ms, message, progress, lines } = data;
  const { message: told } = (error ?? {}) as { message?: unknown };
  const text = String(told ?? message ?? '');
  if (text !== '') return <Foreign>{text.length > 120 ? `${text.slice(0, 120)}…` : text}</Foreign>;
  if (typeof progress === 'number') return <>{progress} %</>;
  if (typeof lines === 'number') return <>{number(lines)} logged</>;
  return typeof ms === 'number' ? <>{number(ms)} ms</> : null;
}

function isWanted({ event, type, subject, job, queue }: Shown): boolean {
  const kind = query('kind');
  const text = query('text').trim();
  const isKind = kind === '' || event.startsWith(`${kind}.`);
  return isKind && (text === '' || [event, type, subject, job, queue].some((one) => one?.includes(text)));
}

function asShown({ id, event, timestamp, data }: LiveEvent): Shown {
  const { job_id: job, queue, type, subject, worker_id: worker } = data as Record<string, string | undefined>;
  return {
    id,
    event,
    timestamp,
    data,
    job,
    queue,
    type: type === event ? undefined : type,
    subject: subject ?? worker ?? '',
  };
}

/** New ones first, each once. */
function merge(fresh: readonly Shown[], held: readonly Shown[]): Shown[] {
  const known = new Set(held.map(({ id }) => id));
  return [...fresh.filter(({ id }) => !known.has(id)).reverse(), ...held].slice(0, KEPT);
}
