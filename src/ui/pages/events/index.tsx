/** Everything that happens, as it happens. */
import { useState } from 'preact/hooks';
import type { FeedEvent } from '../../../contract/event-messages';
import type { EventList } from '../../../contract/events';
import { STATE_CHANGED } from '../../../job/event-types';
import { Button } from '../../components/button';
import { Json } from '../../components/json';
import { type Filter, FilterBar } from '../../components/list';
import { Drawer } from '../../components/overlays';
import { Empty, Facts, LiveRefused, PageHead } from '../../components/page';
import { Collection, type Column, column, textColumn, timeColumn } from '../../components/table';
import { Badge, Foreign, Id, JobLink, None, QueueLink, Time, type Tone, writeClipboard } from '../../components/text';
import { api, useResource } from '../../core/api';
import { act } from '../../core/dialogs';
import { EVENT_KINDS, isEvent } from '../../core/event-names';
import { stringifyExact } from '../../core/exact';
import { brief, number } from '../../core/format';
import { held, type LiveEvent, paused, setPaused, useLive } from '../../core/live';
import { href, query, withQuery } from '../../core/router';

type Shown = ReturnType<typeof asShown>;

function fromList({ id, type: event, subject, timestamp, data }: FeedEvent): Shown {
  const { job_id: job, queue, job_type: type } = data as Record<string, string | undefined>;
  return { id, event, timestamp, data, job, queue, type, subject };
}

const KEPT = 300;
const BEFORE = 100;

export default function EventsPage() {
  const [queue, type] = [query('queue'), query('event')];
  // What happened before; from then on the live feed adds to it.
  const before = useResource(
    async (signal) => {
      const asked = { queue, types: type, page: 1, per_page: BEFORE };
      return { items: (await api.get<EventList>('events', asked, signal)).events.map(fromList) };
    },
    [queue, type],
  );
  const [fresh, setFresh] = useState<ReadonlySet<string>>(new Set());
  useLive(queue ? `queue:${queue}` : 'all', {
    onEvents: (events) => {
      const shown = events.filter(({ event }) => event !== STATE_CHANGED && isEvent(event, type)).map(asShown);
      if (shown.length === 0) return;
      setFresh(new Set(shown.map(({ id }) => id)));
      before.update(({ items }) => ({ items: merge(shown, items) }));
    },
    onGap: before.reload,
  });
  return (
    <>
      <PageHead title="Events" sub={`As they happen; the newest ${KEPT} are shown here.`}>
        <CopyAll of={before.data?.items ?? []} />
        <Button
          icon={paused.value ? 'play' : 'pause'}
          aria-pressed={paused.value}
          onClick={() => setPaused(!paused.value)}
        >
          {paused.value ? `Resume, ${number(held.value)} held` : 'Pause'} <kbd>.</kbd>
        </Button>
      </PageHead>
      <FilterBar of={FILTERS} />
      <LiveRefused />
      <Collection
        of={before}
        isWanted={isWanted}
        label="Events"
        columns={COLUMNS}
        rowKey={({ id }) => id}
        rowHref={({ id }) => withQuery({ open: id })}
        changed={fresh}
        drawer={(open) => <EventDrawer of={open} />}
        unmatched={before.data?.items.length !== 0 && 'No matching events'}
        empty={
          <Empty icon="events" title="Nothing since the queues woke">
            Events appear here as they happen. Older ones are in the timeline of their <a href={href('jobs')}>job</a>,
            in the <a href={href('audit')}>audit log</a>, and with your <a href={href('webhooks')}>webhooks</a>.
          </Empty>
        }
      />
    </>
  );
}

const TYPES = Object.fromEntries(
  [...EVENT_KINDS].flatMap(([kind, names]) => [
    [`${kind}.*`, `${kind}.*`],
    ...names.map((name) => [name, `\u2003${name}`]),
  ]),
) as Readonly<Record<string, string>>;

const FILTERS: readonly Filter[] = [
  { name: 'event', label: 'Event', choice: ['All events', TYPES] },
  { name: 'queue', label: 'Queue', placeholder: 'Queue (exact name)' },
  { name: 'type', label: 'Job type', placeholder: 'Job type, such as mail.*' },
  { name: 'text', label: 'Id, subject or message', chip: 'Text' },
];

function CopyAll({ of: events }: { of: readonly Shown[] }) {
  const copy = () => {
    const lines = events.filter(isWanted).map(({ id, event, timestamp, data }) => {
      return stringifyExact({ id, event, timestamp, data }, 0);
    });
    return act(() => writeClipboard(lines.join('\n')), `${number(lines.length)} events copied, one per line.`);
  };
  return <Button icon="copy" label="Copy" onClick={copy} />;
}

const EventDrawer = ({ of: { id, event, timestamp, data, job, queue, type } }: { of: Shown }) => (
  <Drawer title={event}>
    <Facts
      of={[
        ['When', <Time at={timestamp} />],
        ['Job', job && <JobLink id={job} />],
        ['Queue', queue && <QueueLink name={queue} />],
        ['Job type', type && <Foreign>{type}</Foreign>],
      ]}
    />
    <Json value={data} label="event" open={3} />
    <p class="faint">
      <Id text={id} label="event id" />
    </p>
  </Drawer>
);

const TONES: readonly (readonly [RegExp, Tone])[] = [
  [/completed|resumed|resolved/, 'green'],
  [/failed|discarded|firing|suspended|evicted/, 'red'],
  [/retry|paused|expired|skipped|snoozed/, 'amber'],
  [/started|triggered|progress|log$/, 'violet'],
  [/enqueued|scheduled/, 'blue'],
];

const COLUMNS: readonly Column<Shown>[] = [
  column('event', 'Event', ({ event }) => (
    <Badge look={[TONES.find(([words]) => words.test(event))?.[1] ?? 'neutral']} text={event} />
  )),
  textColumn('type', 'Type', { sort: false }),
  column('queue', 'Queue', ({ queue }) => (queue ? <QueueLink name={queue} /> : <None />)),
  column('subject', 'Subject', ({ job, subject }) => (job ? <JobLink id={job} /> : <Foreign>{subject}</Foreign>)),
  column('what', 'What', { wide: true }, ({ data }) => <What data={data} />),
  timeColumn('timestamp', 'When', ({ id, timestamp }) => (
    <a class="quiet" href={withQuery({ open: id })}>
      <Time at={timestamp} />
    </a>
  )),
];

function What({ data }: { data: Shown['data'] }) {
  const { error, duration_ms: ms, message, progress, lines } = data;
  const { message: ofError } = (error ?? {}) as { message?: unknown };
  const text = String(ofError ?? message ?? '');
  if (text !== '') return <Foreign>{brief(text)}</Foreign>;
  if (typeof progress === 'number') return <>{progress} %</>;
  if (typeof lines === 'number') return <>{number(lines)} logged</>;
  return typeof ms === 'number' ? <>{number(ms)} ms</> : null;
}

function isWanted({ event, type, subject, job, queue, data }: Shown): boolean {
  const text = query('text').trim();
  const [kind, all] = query('type').trim().split('*');
  const isType = !kind || (all === undefined ? type === kind : type?.startsWith(kind) === true);
  const { message, error } = data;
  const texts = [event, subject, job, queue, message, (error as { message?: unknown } | null)?.message];
  return isType && (text === '' || texts.some((one) => typeof one === 'string' && one.includes(text)));
}

function asShown({ id, event, timestamp, data }: LiveEvent) {
  const { job_id: job, queue, type, subject, worker_id: worker } = data as Record<string, string | undefined>;
  const about = { job, queue, type: type === event ? undefined : type, subject: subject ?? worker ?? '' };
  return { id, event, timestamp, data, ...about };
}

function merge(fresh: readonly Shown[], held: readonly Shown[]): Shown[] {
  const known = new Set(held.map(({ id }) => id));
  return [...fresh.filter(({ id }) => !known.has(id)).reverse(), ...held].slice(0, KEPT);
}
