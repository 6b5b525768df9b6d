/**
 * Looks at everything the server will show: all jobs of every queue, its counts, its dead letters, single jobs, and the
 * workflows, cron entries and operations that the ledger knows of.
 */
import { briefly, lifeOf, tokenOf } from './identity.mjs';
import { ALL } from './queues.mjs';

/** Jobs that are also read one by one, per queue. */
const SINGLE_READS = 100;
const AT_ONCE = 20;

/** @returns `{ takenAt, queues: { name: { jobs, total, stats, dead, deadTotal } }, reads, workflows, crons, operations }` */
export async function audit(client, random, ledger) {
  const queues = {};
  const reads = [];
  for (const queue of ALL) {
    const { items: jobs, total } = await pages(client, `/jobs?queue=${queue}`);
    const { items: dead, total: deadTotal } = await pages(client, `/dead-letter?queue=${queue}`);
    const { stats } = await get(client, `/queues/${queue}/stats`);
    queues[queue] = { jobs: jobs.map(essence), total, stats, dead: dead.map(({ id }) => id), deadTotal };
    const singles = random.shuffled(jobs).slice(0, SINGLE_READS);
    reads.push(...(await each(singles, async ({ id }) => essence((await get(client, `/jobs/${id}`)).job))));
  }
  const workflows = await each(ledger.workflows, async ({ id }) => {
    const answer = await client.send('GET', `/workflows/${id}`);
    if (answer.status === 404) return { id, missing: true };
    return workflowEssence(mustBeGood(answer, id).workflow);
  });
  const crons = await each(ledger.crons, ({ name }) => cronEssence(client, name));
  const known = ledger.bulks.filter(({ operation }) => operation !== undefined);
  const operations = await each(known, async ({ operation }) => {
    const { completed, matched, succeeded, failed } = await get(client, `/jobs/bulk/${operation}`);
    return { operation, completed, matched, succeeded, failed };
  });
  return { takenAt: Date.now(), queues, reads, workflows, crons, operations };
}

/** Sends of a GET: a server may close a connection that rested at the moment in which it is used again. */
const SENDS = 3;

/** A GET that must succeed. */
export async function get(client, path) {
  let answer = await client.send('GET', path);
  for (let sends = 1; sends < SENDS && answer.kind === 'cut' && !answer.late; sends++) {
    answer = await client.send('GET', path);
  }
  return mustBeGood(answer, path);
}

function mustBeGood(answer, what) {
  if (answer.kind === 'answer' && answer.status === 200) return answer.body;
  throw new Error(`GET ${what}: ${answer.kind} ${answer.status ?? ''} ${JSON.stringify(answer.body)}`);
}

/** Some at a time, answers in order. */
async function each(list, ask) {
  const answers = [];
  for (let at = 0; at < list.length; at += AT_ONCE) {
    answers.push(...(await Promise.all(list.slice(at, at + AT_ONCE).map(ask))));
  }
  return answers;
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

const instant = (text) => (typeof text === 'string' ? Date.parse(text) : undefined);

/** What the checker judges of an envelope. */
function essence(job) {
  const { padding, ...result } = job.result ?? {};
  return {
    ...{ id: job.id, token: tokenOf(job), queue: job.queue, state: job.state, attempt: job.attempt },
    errors: (job.errors ?? []).map(({ attempt, code, message, reason }) => ({ attempt, code, message, reason })),
    ...(job.result !== undefined && { result: { ...result, ...(padding && { padding: padding.length }) } }),
    ...{
      createdAt: instant(job.created_at),
      scheduledAt: instant(job.scheduled_at),
      startedAt: instant(job.started_at),
    },
    endedAt: instant(job.completed_at ?? job.discarded_at ?? job.cancelled_at),
    ...{ priority: job.priority, tags: job.tags, life: lifeOf(job) },
    ...(job.meta?.parent_id && { parent: job.meta.parent_id }),
    ...(job.meta?.undo_of && { undoes: job.meta.undo_of }),
    ...(job.parent_results && { workflow: job.workflow_id, parents: briefly(job.parent_results) }),
    ...(job.meta?.cron_name && { cron: job.meta.cron_name, tick: instant(job.meta.cron_scheduled_at) }),
  };
}

function workflowEssence({ id, state, metadata, ...root }) {
  const { job_count, completed_count, failed_count } = metadata;
  return { id, state, ...{ job_count, completed_count, failed_count }, ...stepsOf(root) };
}

const stepsOf = ({ steps, callbacks }) => ({
  ...(steps && { steps: steps.map(stepEssence) }),
  ...(callbacks && {
    callbacks: Object.fromEntries(Object.entries(callbacks).map(([name, step]) => [name, stepEssence(step)])),
  }),
});

const stepEssence = ({ state, job_id, ...inner }) => ({ state, jobId: job_id, ...stepsOf(inner) });

async function cronEssence(client, name) {
  const { cron } = await get(client, `/cron/${name}`);
  const { executions, skipped } = await get(client, `/cron/${name}/history?limit=50`);
  return {
    ...{ name, runs: cron.run_count, fires: cron.fire_count, waiting: cron.waiting, enabled: cron.enabled },
    history: executions.map(({ job_id, trigger, scheduled_at, triggered_at }) => ({
      ...{ jobId: job_id, triggeredAt: instant(triggered_at) },
      ...(trigger === 'schedule' && { tick: instant(scheduled_at) }),
    })),
    // So many fires wait for the end of a job, and no more.
    full: skipped
      .filter(({ reason }) => reason === 'waiting_full')
      .map(({ scheduled_at, scheduled_until = scheduled_at }) => [instant(scheduled_at), instant(scheduled_until)]),
  };
}
