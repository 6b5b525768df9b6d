/** `tocsin job`, `why`, `log` and `signal`: one job, what it has said and what it waits for */
import type { Command } from 'commander';
import type { JobLogLine, JobStep } from '../../client/results';
import { NotFoundError } from '../../producer/errors';
import { json, remote, session } from '../command';
import type { ConnectionOptions } from '../connection';
import { facts, printable, type Terminal } from '../output';
import { explain, jobFacts, logText, stepText } from '../why';

/** Lines of the log that are shown beside a job. */
const LAST_LINES = 5;

/** The commands about one job. `job` and `why` differ in what comes first. */
export function jobCommands(terminal: Terminal): Command[] {
  return [
    remote('job', 'show a job')
      .argument('<id>', 'id of the job')
      .action((id: string, options: ConnectionOptions) => show(terminal, id, options, true)),
    remote('why', 'explain why a job does not run, or how it ended')
      .argument('<id>', 'id of the job')
      .action((id: string, options: ConnectionOptions) => show(terminal, id, options, false)),
    remote('log', 'show what the handler of a job has logged, in all its attempts')
      .argument('<id>', 'id of the job')
      .action(async (id: string, options: ConnectionOptions) => {
        const { tocsin, answer } = session(terminal, options);
        const lines = await tocsin.jobs.log(id);
        answer({ jobId: id, lines }, () => logOf(lines) || 'It has logged nothing.');
      }),
    remote('signal', 'send a signal to a job that waits for it, or will')
      .argument('<id>', 'id of the job')
      .argument('<name>', 'name of the signal')
      .argument('[payload]', 'what the handler is given: JSON', json)
      .action(async (id: string, name: string, payload: unknown, options: ConnectionOptions) => {
        const { tocsin, answer } = session(terminal, options);
        const job = await tocsin.signal(id, name, payload);
        answer({ job }, () => `${job.id}  ${job.type}  ${job.queue}  ${job.state}`);
      }),
  ];
}

async function show(terminal: Terminal, id: string, options: ConnectionOptions, factsFirst: boolean): Promise<void> {
  const { tocsin, answer } = session(terminal, options);
  const job = await tocsin.get(id);
  const [progress, steps, log] = await Promise.all([
    job.progress === undefined ? undefined : orNothing(tocsin.jobs.progress(id), undefined),
    orNothing(tocsin.jobs.steps(id), {}),
    orNothing(tocsin.jobs.log(id), []),
  ]);
  const now = terminal.now();
  const why = explain(job, steps);
  answer({ job, why, ...(progress && { progress }), steps: wireSteps(steps), log }, () => {
    const said = [why.text, ...(why.hint ? [`→ ${why.hint}`] : [])].join('\n');
    const known = facts(jobFacts(job, progress, now));
    const shown = factsFirst ? [known, said] : [said, known];
    return printable([...shown, stepsOf(steps, now), logOf(log.slice(-LAST_LINES))].filter(Boolean).join('\n\n'));
  });
}

/** Where the job has gone meanwhile, or the server does not keep this. */
async function orNothing<T, N>(reading: Promise<T>, nothing: N): Promise<T | N> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof NotFoundError) return nothing;
    throw error;
  }
}

/** The records as the server writes them: under a name stands what is the handler's own, which printing leaves alone. */
function wireSteps(steps: Record<string, JobStep>): Record<string, unknown> {
  const records = Object.entries(steps).map(([name, { timedOut, ...rest }]) => [
    name,
    timedOut ? { timed_out: true } : rest,
  ]);
  return Object.fromEntries(records);
}

function stepsOf(steps: Record<string, JobStep>, now: number): string {
  return facts(Object.entries(steps).map(([name, step]) => [name, stepText(step, now)]));
}

function logOf(lines: readonly JobLogLine[]): string {
  return printable(lines.map(logText).join('\n'));
}
