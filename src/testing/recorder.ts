/** Replaces the queue while a handler runs: records what the run reports. */
import { type Progress, stepsOf } from '../handler/protocol';
import { newId } from '../handler/run';
import type { RunRecord, StepRecord } from '../handler/step-rules';
import type { Job } from '../handler/types';
import { AnswerVoice, type ChildJob, type Notes, type SignalUrlAsked, type Voice } from '../handler/voice';
import { own } from '../job/own';
import type { RunRequest } from '../job/wire';
import type { JobEnvelope } from '../producer/envelope';
import { type PlayedRuns, playedRun } from './runs';

export class Recorder implements Voice {
  readonly durable = 'now';
  readonly reports: Progress[] = [];
  readonly steps: Record<string, StepRecord>;
  state: unknown;
  readonly #answer: AnswerVoice;

  /** @param now the queue's time, epoch ms */
  constructor(
    job: Job,
    notes: Notes,
    private readonly runs: PlayedRuns,
    private readonly now: number,
  ) {
    // Names are the handler's choice, such as `constructor`.
    this.steps = Object.assign(Object.create(null), stepsOf(job));
    this.state = job.checkpoint?.state;
    this.#answer = new AnswerVoice('with the answer', notes, newId);
  }

  async progress(report: Progress): Promise<void> {
    this.reports.push(report);
  }

  async checkpoint(state: unknown): Promise<void> {
    this.state = state;
  }

  async record(name: string, record: StepRecord): Promise<StepRecord | undefined> {
    const before = own(this.steps, name);
    // As at the queue: a sleep or a wait gives way, anything else has won.
    if (before !== undefined && !('until' in before) && !('begun' in before)) return before;
    this.steps[name] = { ...record, ...(before?.run && { run: before.run }) };
    return undefined;
  }

  /** Nothing is behind it. */
  async signalUrl({ signal }: SignalUrlAsked): Promise<string> {
    return `https://tocsin.test/ojs/v1/signal/${encodeURIComponent(signal)}`;
  }

  async enqueue(jobs: readonly ChildJob[]): Promise<JobEnvelope[]> {
    return await this.#answer.enqueue(jobs);
  }

  play(asked: RunRequest): Promise<RunRecord> | undefined {
    const ended = playedRun(asked, this.runs, this.now);
    return ended?.then((record) => {
      this.steps[asked.name] = record;
      return record;
    });
  }
}
