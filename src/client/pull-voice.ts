import type { Voice } from '../handler/voice';
import type { Held, Puller } from './puller';
import type { ReportGatherer } from './report-gatherer';

/** How long log lines are gathered, in ms: longer than for a pushed job, because a request costs more than a line. */
export const LOG_AFTER_MS = 5_000;

/** @param cancelled called when the job was cancelled @param complain receives errors that no one awaits */
export function pullVoice(
  puller: Puller,
  reports: Pick<ReportGatherer, 'progress' | 'checkpoint' | 'step' | 'stream' | 'keepsOrder'>,
  job: Held,
  cancelled: () => void,
  complain: (error: unknown) => void,
): Voice {
  return {
    ...{ durable: 'now', logAfterMs: LOG_AFTER_MS },
    log: (lines) => void puller.log(job, lines).catch(complain),
    progress: async (report) => {
      const answer = await reports.progress(job, report);
      if (answer.cancelled) cancelled();
    },
    checkpoint: (state) => reports.checkpoint(job, state),
    record: (name, record) => reports.step(job, name, record),
    recall: (name) => puller.recall(job, name),
    signalUrl: (asked) => puller.signalUrl(job, asked),
    keepsOrder: () => reports.keepsOrder(job),
    stream: (message) => reports.stream(job, message),
    enqueue: async (jobs) => {
      const [job] = jobs;
      return jobs.length === 1 && job ? [await puller.enqueue(job)] : await puller.enqueueMany(jobs);
    },
  };
}
