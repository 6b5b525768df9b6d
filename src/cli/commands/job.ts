/** `tocsin job`, `why`, `log` and `signal`: one job, what it has said and what it waits for */
import type { Command } from 'commander';
import type { JobLogLine, JobStep } from '../../client/results';
import { NotFoundError } from '../../producer/errors';
import { json, remote, session } from '../command';
import type { ConnectionOptions } from '../connection';
import { brief, type Fact, type Terminal } from '../output';
import { explain, jobFacts, logText, stepText } from '../why';

/** Lines of the log that are shown beside a job. */
const LAST_LINES = 5;
/** Steps that are shown, the last ones, unless all are asked for. */
const LAST_STEPS = 20;

type ShowOptions = ConnectionOptions & { full?: boolean };

/** The commands about one job. `job` and `why` differ in what comes first. */
export function jobCommands(terminal: Terminal): Command[] {
  return [
    shown('job', 'show a job').action((id: string, options: ShowOptions) => show(terminal, id, options, true)),
    shown('why', 'explain why a job does not run, or how it ended').action((id: string, options: ShowOptions) =>
      show(terminal, id, options, false),
    ),
    remote('log', "show the log lines that the job's handler wrote, of all attempts")
      .argument('<id>', 'id of the job')
      .action(async (id: string, options: ConnectionOptions) => {
        const { tocsin, answer } = session(terminal, options);
        const lines = await tocsin.jobs.log(id);
        answer({ jobId: id, lines }, () => logOf(lines) || 'No log lines.');
      }),
    remote('signal', 'send a signal that a job waits for, or will wait for')
      .argument('<id>', 'id of the job')
      .argument('<name>', 'name of the signal')
      .argument('[payload]', 'data for the handler: JSON', json)
      .action(async (id: string, name: string, payload: unknown, options: ConnectionOptions) => {
        const { tocsin, answer } = session(terminal, options);
        const job = await tocsin.signal(id, name, payload);
        answer({ job }, () => `${job.id}  ${job.type}  ${job.queue}  ${job.state}`);
      }),
  ];
}

const shown = (name: string, summary: string) =>
  remote(name, summary).argument('<id>', 'id of the job').option('--full', 'show all steps, and every value in full');

async function show(terminal: Terminal, id: string, options: ShowOptions, factsFirst: boolean): Promise<void> {
  const { tocsin, answer } = session(terminal, options);
  const job = await tocsin.get(id);
  const [progress, steps, log] = await Promise.all([
    job.progress === undefined ? undefined : orNothing(tocsin.jobs.progress(id), undefined),
    orNothing(tocsin.jobs.steps(id), {}),
    orNothing(tocsin.jobs.log(id), []),
  ]);
  const now = terminal.now();
  const why = explain(job, steps, now);
  answer({ job, why, ...(progress && { progress }), steps: wireSteps(steps), log }, () => {
    const said = [why.text, ...(why.hint ? [`→ ${why.hint}`] : [])].join('\n');
    const { full = false } = options;
    const [known, isCut] = brief(jobFacts(job, progress, now, log), full);
    const [done, areCut] = stepsOf(steps, now, full);
    const rest = isCut || areCut ? `Values end in "…" where they are cut. Show all: tocsin job ${id} --full` : '';
    const last = logOf(log.slice(-LAST_LINES));
    return [...(factsFirst ? [known, said] : [said, known]), done, last, rest].filter(Boolean).join('\n\n');
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

/**
 * The records as the server writes them: under a name stands what is the handler's own, which printing leaves alone.
 */
function wireSteps(steps: Record<string, JobStep>): Record<string, unknown> {
  const records = Object.entries(steps).map(([name, { timedOut, ...rest }]) => [
    name,
    timedOut ? { timed_out: true } : rest,
  ]);
  return Object.fromEntries(records);
}

/** What is on record, the newest last, and whether anything of it was left out. */
function stepsOf(steps: Record<string, JobStep>, now: number, full: boolean): [text: string, isCut: boolean] {
  const all = Object.entries(steps).map(([name, step]): Fact => [name, stepText(step, now)]);
  const left = full ? 0 : Math.max(0, all.length - LAST_STEPS);
  const [text, isCut] = brief(all.slice(left), full);
  return [left > 0 ? `… and ${left} earlier steps\n${text}` : text, isCut || left > 0];
}

function logOf(lines: readonly JobLogLine[]): string {
  return lines.map(logText).join('\n');
}
