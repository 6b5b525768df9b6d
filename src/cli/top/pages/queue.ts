import { pathTo } from '../../../client/requests';
import { wired } from '../../../producer/names';
import { readable } from '../../output';
import { JOB_STATES } from '../../views';
import { countsText, definePage, type Fact, lastsText, msText, numberText, stateCell } from '../page';
import { foreign, valueText } from '../text';
import { askJobs, type JobAnswer, loadJobs, receiveJobs, showJobs } from './job-list';
import { paceText, percent, type QueueItem } from './overview';

interface QueueAnswer extends JobAnswer {
  queue: QueueItem & { configuration?: { backpressure?: { enabled: boolean } } };
}

const find = (name: string) => pathTo`/admin/queues/${name}`;

export const queue = definePage<QueueAnswer>({
  ...{ id: 'queue', title: 'Queue', scope: 'admin:read' },
  states: JOB_STATES,
  searches: true,
  load: async (api, place) => {
    const name = place.name ?? '';
    const [found, jobs] = await Promise.all([api.get<QueueAnswer['queue']>(find(name)), loadJobs(api, place, name)]);
    return { ...jobs, queue: found };
  },
  show: (answer, _, now) => ({
    facts: factsOf(answer.queue, now),
    ...showJobs(answer, now),
    subject: { kind: 'queue', id: answer.queue.name, state: answer.queue.status },
  }),
  receive: (answer, events, { name }) => {
    const change = receiveJobs(answer, events, name);
    const isHere = events.some(({ data }) => data.queue === name);
    if (!isHere || change.reload) return change;
    return { ...change, ask: [...(change.ask ?? []), QUEUE_ITSELF + answer.queue.name] };
  },
  ask: async (api, names) => {
    const itself = names.find((name) => name.startsWith(QUEUE_ITSELF))?.slice(QUEUE_ITSELF.length);
    const ids = names.filter((name) => !name.startsWith(QUEUE_ITSELF));
    const [found, change] = await Promise.all([
      itself === undefined ? undefined : api.get<QueueAnswer['queue']>(find(itself)),
      askJobs(api, ids),
    ]);
    return (answer) => ({ ...answer, ...change(answer), queue: found ?? answer.queue });
  },
});

/** Before the name of the queue among the ids of jobs that are asked about. */
const QUEUE_ITSELF = 'queue:';

function factsOf(
  { name, status, counts, throughput, errorRate, latencyMs, queueTimeMs, ...rest }: QueueAnswer['queue'],
  now: number,
): Fact[] {
  const { processedPerMinute: done, failedPerMinute: failed, enqueuedPerMinute: enqueued } = throughput;
  const { limit, active } = rest.concurrency;
  const { backpressure, ...configuration } = rest.configuration ?? {};
  if (backpressure?.enabled) Object.assign(configuration, { backpressure });
  const times = (['p50', 'p95', 'p99'] as const).map((part) => `${part} ${msText(latencyMs[part])}`);
  return [
    ['queue', foreign(name)],
    ['status', stateCell(status)],
    ['why', rest.waitingFor ? foreign(readable(rest.waitingFor.detail, now)) : undefined],
    ['jobs', countsText(counts)],
    ['per minute', paceText(enqueued, done, failed)],
    ['errors', percent(errorRate)],
    ['takes', `${times.join(' · ')} · waits p95 ${msText(queueTimeMs.p95)}`],
    ['oldest waits', lastsText(rest.oldestAvailableAt, now)],
    ['running', `${numberText(active)}${limit === null ? '' : ` of at most ${numberText(limit)}`}`],
    ['settings', Object.keys(configuration).length > 0 ? foreign(valueText(wired(configuration))) : undefined],
  ];
}
