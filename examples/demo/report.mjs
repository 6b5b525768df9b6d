/** The outcome of the jobs, as plain text. */
import { pathOf, reasonOf } from './plan.mjs';

const OUTCOMES = ['completed', 'discarded', 'dead letter'];

/** Writes rows in columns; columns listed in `right` are aligned to the right. */
function table(header, rows, right = []) {
  const widths = header.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column].length)));
  const write = (row) =>
    row
      .map((cell, column) => (right.includes(column) ? cell.padStart(widths[column]) : cell.padEnd(widths[column])))
      .join('  ')
      .trimEnd();
  return [write(header), widths.map((width) => '─'.repeat(width)).join('──'), ...rows.map(write)].join('\n');
}

/** How long a job took from its enqueue to its end, in ms. */
function durationOf(job) {
  const end = job.completedAt ?? job.discardedAt ?? job.cancelledAt;
  return end === undefined ? undefined : Date.parse(end) - Date.parse(job.createdAt);
}

function milliseconds(value) {
  return value === undefined || value === null ? '–' : `${value} ms`;
}

/** One row for each job. */
export function outcomeTable(jobs) {
  const rows = jobs.map((job) => [
    job.type,
    pathOf(job),
    job.outcome,
    String(job.attempt),
    milliseconds(durationOf(job)),
    reasonOf(job) ?? '',
  ]);
  return table(['type', 'file', 'outcome', 'attempts', 'time', 'reason'], rows, [3, 4]);
}

/** One row for each job type, and one for all. */
export function totalsTable(jobs) {
  const types = [...new Set(jobs.map((job) => job.type))].sort();
  const count = (list, test) => String(list.filter(test).length);
  const rows = [...types, 'all'].map((type) => {
    const own = type === 'all' ? jobs : jobs.filter((job) => job.type === type);
    return [
      type,
      String(own.length),
      ...OUTCOMES.map((outcome) => count(own, (job) => job.outcome === outcome)),
      count(own, (job) => job.attempt > 1),
      String(own.reduce((sum, job) => sum + job.attempt, 0)),
    ];
  });
  return table(['type', 'jobs', ...OUTCOMES, 'retried', 'runs'], rows, [1, 2, 3, 4, 5, 6]);
}

/** Every attempt of one job, from `GET /ojs/v1/jobs/:id`. */
export function story(job) {
  const lines = [`${job.type} of ${pathOf(job)}`, `enqueued      ${clock(job.createdAt)}  in queue ${job.queue}`];
  for (const error of job.errors ?? []) {
    lines.push(
      `attempt ${error.attempt}     ${clock(error.occurredAt)}  failed after ${milliseconds(error.durationMs)}`,
    );
    lines.push(`              ${error.type}: ${error.message}`);
    if (error.backoffMs === null || error.backoffMs === undefined) {
      lines.push(`              no further run: ${error.reason}`);
    } else {
      const next = new Date(Date.parse(error.occurredAt) + error.backoffMs).toISOString();
      lines.push(`              next run at ${clock(next)}, after ${error.backoffMs} ms`);
    }
  }
  if (job.state === 'completed') {
    lines.push(`attempt ${job.attempt}     ${clock(job.startedAt)}  started`);
    lines.push(`completed     ${clock(job.completedAt)}  ${JSON.stringify(job.result)}`);
  } else {
    lines.push(`${job.outcome.padEnd(13)} ${clock(job.discardedAt ?? job.cancelledAt ?? job.enqueuedAt)}`);
  }
  return lines.join('\n');
}

/** Time of day, in UTC. */
function clock(time) {
  return time.slice(11, 23);
}

/** Links that lead nowhere, by document; an empty string when there are none. */
export function findings(jobs) {
  return jobs
    .filter((job) => job.error?.type === 'BrokenLink')
    .flatMap((job) => job.error.details.broken.map(({ href, problem }) => `${pathOf(job)}: ${href} – ${problem}`))
    .join('\n');
}
