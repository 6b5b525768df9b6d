/** `tocsin queues`, with `create`, `pause` and `resume` */
import type { Command } from 'commander';
import type { TocsinClient } from '../../client/client';
import type { QueueOverview } from '../../client/queue-config';
import { didYouMean } from '../../job/near-miss';
import { NotFoundError } from '../../producer/errors';
import { remote, session } from '../command';
import type { ConnectionOptions } from '../connection';
import { CliError } from '../failure';
import { shellWord, type Terminal, table } from '../output';

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
          const state = await tocsin.queues[name](queue).catch(async (error: unknown) => {
            throw error instanceof NotFoundError ? await unknownQueue(tocsin, queue) : error;
          });
          answer({ queue: state }, () => `${state.name}  ${state.status}`);
        }),
    );
  }
  queues.addCommand(
    remote('create', 'create a queue before its first job, for example to pause it')
      .argument('<queue>', 'name of the queue')
      .action(async (queue: string, _: ConnectionOptions, command: Command) => {
        const { tocsin, answer } = session(terminal, command.optsWithGlobals<ConnectionOptions>());
        const config = await tocsin.queues.create(queue);
        answer({ queue: { name: queue, config } }, () => `${queue}  created`);
      }),
  );
  return queues;
}

/** The failure for a queue that does not exist, with the name that was probably meant. */
async function unknownQueue(tocsin: TocsinClient, queue: string): Promise<CliError> {
  const names: string[] = [];
  try {
    for await (const { name } of tocsin.queues.list()) names.push(name);
  } catch {
    // A key need not be able to list them.
  }
  const hint = didYouMean(queue, names).trim() || `Create it with: tocsin queues create ${shellWord(queue)}`;
  return new CliError(`There is no queue ${queue}.`, hint, 'not_found');
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
