import { setImmediate as turn } from 'node:timers/promises';
import type { TocsinClient } from '../../client/client';
import type { QueueEvent } from '../../client/follow';
import type { JobResult } from '../../client/jobs';
import { own } from '../../job/own';
import { action, integer, list } from '../command';
import { failureOf } from '../failure';
import { lineOf, notice, printable, textOf } from '../output';

const FLAGS = {
  queue: ['--queue <name>', 'only this queue; a list, or several times', list],
  type: ['--type <type>', 'only this event type (job.failed, queue.*) or job type (email.*)', list],
  limit: ['--limit <n>', 'exit after this many events; default: at Ctrl-C', integer(1, 1_000_000_000)],
} as const;

export const tail = action(
  'tail',
  'show events as they happen, until Ctrl-C',
  { flags: FLAGS },
  async ({ tocsin, endpoint, answer, terminal, members: { type, limit, ...query } }) => {
    const interrupted = terminal.interrupted();
    const stop = new AbortController();
    const signal = AbortSignal.any([interrupted, stop.signal]);
    const onConnection = (error?: unknown) =>
      notice(terminal, error ? `${failureOf(error, endpoint).message} Reconnecting.` : 'Connected again.');
    const wanted = typeFilter(type);
    const client = tocsin.with({ signal });
    let left = limit ?? Number.POSITIVE_INFINITY;
    try {
      for await (const events of atOnce(client.events.follow(query, { onConnection }))) {
        const shown = events.filter((event) => isAboutStream(event) || wanted(event));
        for (const event of await withResults(client, shown)) {
          if (left <= 0) break;
          answer(event, () => eventLine(event));
          if (!isAboutStream(event)) left--;
        }
        if (left <= 0) break;
      }
    } catch (error) {
      if (!interrupted.aborted) throw error;
    } finally {
      stop.abort();
    }
    return undefined;
  },
);

/** Events about the stream itself are shown whatever the filters are. */
const isAboutStream = ({ type }: QueueEvent) => type.startsWith('system.');

/** Events that are asked about together, at most. */
const MOST_AT_ONCE = 500;

async function* atOnce(events: AsyncGenerator<QueueEvent>): AsyncGenerator<QueueEvent[]> {
  let next = events.next();
  for (let first = await next; !first.done; first = await next) {
    const group = [first.value];
    next = events.next();
    while (group.length < MOST_AT_ONCE) {
      const ready = await Promise.race([next, turn()]);
      if (!ready || ready.done) break;
      group.push(ready.value);
      next = events.next();
    }
    yield group;
  }
}

/** Events carry no results: they are read of the jobs that have completed, as far as this key may and they are kept. */
async function withResults(tocsin: TocsinClient, events: readonly QueueEvent[]): Promise<readonly QueueEvent[]> {
  const completed = events.filter(({ type }) => type === 'job.completed').map(({ subject }) => subject);
  if (completed.length === 0) return events;
  const none = { results: {} as Record<string, JobResult> };
  const { results } = await tocsin.jobs.results(completed).catch(() => none);
  return events.map((event) => {
    const { result } = (event.type === 'job.completed' && own(results, event.subject)) || {};
    return result === undefined ? event : { ...event, data: { ...event.data, result } };
  });
}

/** Does an event have one of these event types or job types? `*` stands for anything. */
export function typeFilter(patterns: readonly string[] | undefined): (event: QueueEvent) => boolean {
  if (patterns === undefined) return () => true;
  const tests = patterns.map((pattern) => {
    const parts = pattern.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'));
    return new RegExp(`^${parts.join('.*')}$`);
  });
  return ({ type, data }) => {
    const jobType = data.job_type;
    return tests.some((test) => test.test(type) || (typeof jobType === 'string' && test.test(jobType)));
  };
}

/** Longest value on the line, in characters. */
const MAX_VALUE = 400;

const shortened = (text: string) => (text.length > MAX_VALUE ? `${text.slice(0, MAX_VALUE)}…` : text);

/** Members that the line shows already, or that help no one. */
const SHOWN = new Set(['job_id', 'queue', 'worker_id', 'job_type']);

/** `10:14:59.289  job.started  mail  email.send  0190…  attempt=1` */
export function eventLine({ time, type, subject, data }: QueueEvent): string {
  const clock = time.slice(11, 23);
  const rest = Object.entries(data).filter(
    ([name, value]) => !SHOWN.has(name) && !(name === 'result' && value === null),
  );
  const members = rest.map(([name, value]) => `${name}=${shortened(textOf(value))}`);
  const parts = [clock, type.padEnd(14), data.queue, data.job_type, subject, ...members];
  return printable(lineOf(parts.filter((part) => part !== undefined)));
}
