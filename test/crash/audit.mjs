/** Looks at everything the server will show: all jobs of every queue, its counts, its dead letters, single jobs. */
import { ALL } from './queues.mjs';

/** Jobs that are also read one by one, per queue. */
const SINGLE_READS = 100;

/** @returns `{ takenAt, queues: { name: { jobs, total, stats, dead, deadTotal } }, reads }` */
export async function audit(client, random) {
  const queues = {};
  const reads = [];
  for (const queue of ALL) {
    const { items: jobs, total } = await pages(client, `/jobs?queue=${queue}`);
    const { items: dead, total: deadTotal } = await pages(client, `/dead-letter?queue=${queue}`);
    const { stats } = await get(client, `/queues/${queue}/stats`);
    queues[queue] = { jobs: jobs.map(essence), total, stats, dead: dead.map(({ id }) => id), deadTotal };
    for (const { id } of random.shuffled(jobs).slice(0, SINGLE_READS)) {
      reads.push(essence((await get(client, `/jobs/${id}`)).job));
    }
  }
  return { takenAt: Date.now(), queues, reads };
}

/** A GET that must succeed. */
export async function get(client, path) {
  const answer = await client.send('GET', path);
  if (answer.kind !== 'answer' || answer.status !== 200) {
    throw new Error(`GET ${path}: ${answer.kind} ${answer.status ?? ''} ${JSON.stringify(answer.body)}`);
  }
  return answer.body;
}

async function pages(client, path) {
  const items = [];
  let total;
  for (let cursor; ; ) {
    const body = await get(
      client,
      `${path}&limit=200${cursor === undefined ? '' : `&cursor=${encodeURIComponent(cursor)}`}`,
    );
    total ??= body.pagination.total;
    items.push(...body.jobs);
    if (!body.pagination.has_more) return { items, total };
    cursor = body.pagination.next_cursor;
  }
}

const instant = (text) => (text === undefined ? undefined : Date.parse(text));

/** What the checker judges of an envelope. */
function essence(job) {
  const { padding, ...result } = job.result ?? {};
  return {
    ...{ id: job.id, token: job.args?.[0]?.token, queue: job.queue, state: job.state, attempt: job.attempt },
    errors: (job.errors ?? []).map(({ attempt, code, message, reason }) => ({ attempt, code, message, reason })),
    ...(job.result !== undefined && { result: { ...result, ...(padding && { padding: padding.length }) } }),
    ...{
      createdAt: instant(job.created_at),
      scheduledAt: instant(job.scheduled_at),
      startedAt: instant(job.started_at),
    },
    endedAt: instant(job.completed_at ?? job.discarded_at ?? job.cancelled_at),
  };
}
