/** `tocsin tail` */
import type { Command } from 'commander';
import type { QueueEvent } from '../../client/event';
import { integer, list, remote, session } from '../command';
import type { ConnectionOptions } from '../connection';
import { failureOf } from '../failure';
import { printable, type Terminal, textOf } from '../output';

interface Options extends ConnectionOptions {
  queue?: string[];
  type?: string[];
  limit: number;
}

/** Shows events as they happen. */
export function tailCommand(terminal: Terminal): Command {
  return remote('tail', 'show events as they happen, until Ctrl-C')
    .option('--queue <name>', 'of this queue; a list, or several times', list)
    .option('--type <type>', 'of this event type (job.failed, queue.*) or job type (email.*)', list)
    .option('--limit <n>', 'end after so many', integer(1, 1_000_000_000), Number.POSITIVE_INFINITY)
    .action(async (options: Options) => {
      const { tocsin, url, answer } = session(terminal, options);
      const interrupted = terminal.interrupted();
      const stop = new AbortController();
      const signal = AbortSignal.any([interrupted, stop.signal]);
      const onConnection = (error?: unknown) =>
        terminal.err(error ? `${failureOf(error, url).message} Trying again.\n` : 'It answers again.\n');
      const query = options.queue ? { queue: options.queue } : {};
      const wanted = typeFilter(options.type);
      let left = options.limit;
      try {
        for await (const event of tocsin.with({ signal }).events.follow(query, { onConnection })) {
          // What the server says of the stream concerns whatever is shown of it.
          const isAboutStream = event.type.startsWith('system.');
          if (!isAboutStream && !wanted(event)) continue;
          answer(event, () => eventLine(event));
          if (!isAboutStream && --left <= 0) break;
        }
      } catch (error) {
        if (!interrupted.aborted) throw error;
      } finally {
        stop.abort();
      }
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

/** Members that the line shows already, or that help nobody. */
const SHOWN = new Set(['job_id', 'queue', 'worker_id', 'job_type']);

/** `10:14:59.289  job.started  mail  email.send  0190…  attempt=1` */
export function eventLine({ time, type, subject, data }: QueueEvent): string {
  const clock = time.slice(11, 23);
  const rest = Object.entries(data).filter(([name]) => !SHOWN.has(name));
  const members = rest.map(([name, value]) => `${name}=${textOf(value)}`);
  const parts = [clock, type.padEnd(14), data.queue, data.job_type, subject, ...members];
  return printable(
    parts
      .filter((part) => part !== undefined)
      .join('  ')
      .replace(/\s*\n\s*/g, ' '),
  );
}
