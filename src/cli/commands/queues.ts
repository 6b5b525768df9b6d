/** `tocsin queues`, with `pause` and `resume` */
import type { Command } from 'commander';
import type { QueueOverview } from '../../client/queue-config';
import { remote, session } from '../command';
import type { ConnectionOptions } from '../connection';
import { type Terminal, table } from '../output';

/** Lists the queues, and stops or starts one. */
export function queuesCommand(terminal: Terminal): Command {
  const queues = remote('queues', 'list queues and how many jobs they have').action(
    async (options: ConnectionOptions) => {
      const { tocsin, answer } = session(terminal, options);
      const found: QueueOverview[] = [];
      for await (const queue of tocsin.queues.overview()) found.push(queue);
      answer({ queues: found }, () => queueTable(found));
    },
  );
  for (const [name, description] of [
    ['pause', 'pause a queue: it accepts jobs but hands none out'],
    ['resume', 'resume a queue'],
  ] as const) {
    queues.addCommand(
      remote(name, description)
        .argument('<queue>', 'name of the queue')
        .action(async (queue: string, _: ConnectionOptions, command: Command) => {
          const { tocsin, answer } = session(terminal, command.optsWithGlobals<ConnectionOptions>());
          const state = await tocsin.queues[name](queue);
          answer({ queue: state }, () => `${state.name}  ${state.status}`);
        }),
    );
  }
  return queues;
}

const COUNTS = ['available', 'active', 'scheduled', 'retryable', 'pending', 'completed', 'discarded'] as const;

function queueTable(queues: readonly QueueOverview[]): string {
  if (queues.length === 0) return 'No queues yet. A queue is created by its first job.';
  const head = ['QUEUE', 'STATUS', ...COUNTS.map((state) => state.toUpperCase())];
  return table(
    head,
    queues.map(({ name, status, counts }) => [name, status, ...COUNTS.map((state) => counts[state])]),
  );
}
