import type { TocsinClient } from '../../client/client';
import type { JobLogLine, JobStep } from '../../client/jobs';
import { stepsInOrder } from '../../job/step-order';
import type { JobEnvelope } from '../../producer/envelope';
import { type Action, action, json } from '../command';
import { orNone } from '../failure';
import { brief, type Fact, notice, printable, textOf } from '../output';
import { jobLine } from '../resource';
import { type Explanation, explain, jobFacts, logText, stepText } from '../why';

/** Lines of the log that are shown beside a job. */
const LAST_LINES = 5;
/** Steps that are shown, the last ones, unless all are asked for. */
const LAST_STEPS = 20;

const ID = ['<id>', 'id of the job'] as const;

/** The commands about one job. `job` and `why` differ in what comes first. */
export const job: readonly Action[] = [
  about('job', 'show a job', true),
  about('why', 'explain why a job does not run, or how it ended', false),
  action(
    'log',
    "show the log lines that the job's handler wrote, of all attempts",
    { takes: [ID] },
    async ({ tocsin }, id) => {
      const lines = await tocsin.jobs.log(id);
      return { value: { jobId: id, lines }, text: logOf(lines) || 'No log lines.' };
    },
  ),
  action(
    'stream',
    'show what a job writes to an output stream, until the job ends',
    { takes: [ID, ['<name>', 'name of the stream']] },
    async ({ tocsin, answer, terminal }, id, name) => {
      const interrupted = terminal.interrupted();
      let isMidLine = false;
      try {
        for await (const chunk of tocsin.with({ signal: interrupted }).stream(id, name)) {
          if (chunk.isReset) notice(terminal, `${isMidLine ? '\n' : ''}The writer starts over.`);
          answer(chunk, () => {
            const text = typeof chunk.data === 'string' ? printable(chunk.data) : `${printable(textOf(chunk.data))}\n`;
            terminal.out(text);
            isMidLine = !text.endsWith('\n');
            // The line is printed already.
            return '';
          });
        }
      } catch (error) {
        if (!interrupted.aborted) throw error;
      }
      if (isMidLine) terminal.out('\n');
      return undefined;
    },
  ),
  action(
    'signal',
    'send a signal that a job waits for, or will wait for',
    { takes: [ID, ['<name>', 'name of the signal'], ['[payload]', 'data for the handler: JSON', json]] },
    async ({ tocsin }, id, name, payload) => {
      const job = await tocsin.signal(id, name, payload);
      return { value: { job }, text: jobLine(job) };
    },
  ),
];

function about(name: string, summary: string, factsFirst: boolean): Action {
  const full = ['--full', 'show all steps, and every value in full'] as const;
  return action(name, summary, { takes: [ID], flags: { full } }, async ({ tocsin, members, terminal }, id) => {
    const job = await tocsin.get(id);
    const [progress, steps, log] = await Promise.all([
      job.progress === undefined ? undefined : orNone(tocsin.jobs.progress(id), undefined),
      orNone(tocsin.jobs.steps(id), {}),
      orNone(tocsin.jobs.log(id), []),
    ]);
    const now = terminal.now();
    const why = explain(job, steps, now);
    const { lines, hint = why.hint } = await waitsOf(tocsin, job, now);
    const reason = [why.text, ...lines, ...(hint ? [`→ ${hint}`] : [])].join('\n');
    const [known, isCut] = brief(jobFacts(job, progress, now, log), members.full === true);
    const [done, areCut] = stepsOf(steps, now, members.full === true);
    const rest = isCut || areCut ? `Values end in "…" where they are cut. Show all: tocsin job ${id} --full` : '';
    const last = logOf(log.slice(-LAST_LINES));
    return {
      value: { job, why, ...(progress && { progress }), steps: wireSteps(steps), log },
      text: [...(factsFirst ? [known, reason] : [reason, known]), done, last, rest].filter(Boolean).join('\n\n'),
    };
  });
}

/** How many jobs deep a wait for jobs is explained. */
const DEEPEST = 3;

/** Why the jobs that this one waits for do not run, and the command that ends the wait of the deepest. */
async function waitsOf(
  tocsin: TocsinClient,
  job: JobEnvelope,
  now: number,
): Promise<{ lines: string[]; hint?: string }> {
  const lines: string[] = [];
  let above: JobEnvelope | undefined = job;
  let why: Explanation | undefined;
  while (above?.waitingFor?.reason === 'run' && above.waitingFor.jobId !== undefined && lines.length < DEEPEST) {
    const below: Promise<JobEnvelope> = tocsin.get(above.waitingFor.jobId);
    above = await orNone(below, undefined);
    why = above && explain(above, {}, now);
    if (above && why) lines.push(`${'  '.repeat(lines.length + 1)}${above.id} (${above.type}): ${why.text}`);
  }
  // Without its steps it is unknown whether a sleep could be cut short.
  return { lines, ...(why?.hint && why.reason !== 'snoozed' && { hint: why.hint }) };
}

/** The records as the server writes them: their names are the handler's, so printing must not rename them. */
function wireSteps(steps: Record<string, JobStep>): Record<string, unknown> {
  const records = Object.entries(steps).map(([name, { timedOut, resultBytes, ...rest }]) => [
    name,
    { ...rest, ...(timedOut && { timed_out: true }), ...(resultBytes !== undefined && { result_bytes: resultBytes }) },
  ]);
  return Object.fromEntries(records);
}

/** What is on record, the newest last, and whether anything of it was left out. */
function stepsOf(steps: Record<string, JobStep>, now: number, full: boolean): [text: string, isCut: boolean] {
  const all = stepsInOrder(steps).map(([name, step]): Fact => [name, stepText(step, now)]);
  const left = full ? 0 : Math.max(0, all.length - LAST_STEPS);
  const [text, isCut] = brief(all.slice(left), full);
  return [left > 0 ? `… and ${left} earlier steps\n${text}` : text, isCut || left > 0];
}

const logOf = (lines: readonly JobLogLine[]): string => lines.map(logText).join('\n');
