import type { LogEntry } from '../handler/journal';
import type { Progress } from '../handler/protocol';
import type { StepRecord } from '../handler/step-rules';
import type { ChildJob, SignalUrlAsked, StreamMessage, Voice } from '../handler/voice';
import type { JobEnvelope } from '../producer/envelope';
import type { Held, Puller } from './puller';
import type { ReportGatherer } from './report-gatherer';

/** How long log lines are gathered, in ms: longer than for a pushed job, because a request costs more than a line. */
export const LOG_AFTER_MS = 5_000;

export class PullVoice implements Voice {
  readonly durable = 'now';
  readonly logAfterMs = LOG_AFTER_MS;

  /** @param cancelled called when the job was cancelled @param complain receives errors that no one awaits */
  constructor(
    private readonly puller: Puller,
    private readonly reports: Pick<ReportGatherer, 'progress' | 'checkpoint' | 'step' | 'stream' | 'keepsOrder'>,
    private readonly job: Held,
    private readonly cancelled: () => void,
    private readonly complain: (error: unknown) => void,
  ) {}

  log(lines: LogEntry[]): void {
    this.puller.log(this.job, lines).catch(this.complain);
  }

  async progress(report: Progress): Promise<void> {
    const answer = await this.reports.progress(this.job, report);
    if (answer.cancelled) this.cancelled();
  }

  async checkpoint(state: unknown): Promise<void> {
    await this.reports.checkpoint(this.job, state);
  }

  async record(name: string, record: StepRecord): Promise<StepRecord | undefined> {
    return await this.reports.step(this.job, name, record);
  }

  recall(name: string): Promise<unknown> {
    return this.puller.recall(this.job, name);
  }

  async signalUrl(asked: SignalUrlAsked): Promise<string> {
    return await this.puller.signalUrl(this.job, asked);
  }

  keepsOrder(): boolean {
    return this.reports.keepsOrder(this.job);
  }

  async stream(message: StreamMessage): Promise<void> {
    await this.reports.stream(this.job, message);
  }

  async enqueue(jobs: readonly ChildJob[]): Promise<JobEnvelope[]> {
    const [job] = jobs;
    return jobs.length === 1 && job ? [await this.puller.enqueue(job)] : await this.puller.enqueueMany(jobs);
  }
}
