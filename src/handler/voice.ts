/** What a run can say to its queue, by the way in which its job came. */
import { DEFAULT_QUEUE } from '../job/options';
import type { RunRequest } from '../job/wire';
import type { JobEnvelope } from '../producer/envelope';
import { errorFor } from '../producer/errors';
import { addKept } from '../producer/options';
import type { LogEntry } from './journal';
import type { Progress, Remarks } from './protocol';
import type { RunRecord, StepRecord } from './step-rules';

/** A job that a handler enqueues, as the queue reads it. */
export type ChildJob = Record<string, unknown> & { type: string; args: unknown[] };

/** The signal of a URL, as the queue reads it. */
export interface SignalUrlAsked {
  signal: string;
  choices?: readonly string[] | undefined;
  title?: string | undefined;
  /** Ms. */
  expires_in: number;
}

/** Chunks of a stream, as the queue reads them. */
export interface StreamMessage {
  name: string;
  /** Counts the executions of the writer in this run, from 0. */
  execution: number;
  /** The number of the first chunk. */
  first: number;
  chunks: unknown[];
  /** The step that writes. */
  step?: string;
  /** These are the last ones. */
  flush?: true;
}

/** Speaks for one run. All values are JSON. */
export interface Voice {
  /** When a report can be durable: now; with the answer of this call; never: another call stays open for that. */
  readonly durable: 'now' | 'with the answer' | 'never';
  /** How long log lines are gathered, in ms; absent: until the end. */
  readonly logAfterMs?: number;
  log?(lines: LogEntry[]): void;
  progress(report: Progress): Promise<unknown>;
  /** Resolves once it is durable. */
  checkpoint(state: unknown): Promise<unknown>;
  /** Records a step, or that a signal did not come. @returns what was recorded before, which has won; else undefined */
  record(name: string, record: StepRecord): Promise<StepRecord | undefined>;
  /** Gives a recorded step whose result is too large to come with the job. */
  recall?(name: string): Promise<unknown>;
  /** Writes chunks of a stream, and resolves once they are written; absent: this call carries none. */
  stream?(message: StreamMessage): Promise<unknown>;
  /** Do messages arrive in the order in which they are sent? Then several may be under way. */
  keepsOrder?(): boolean;
  /** Enqueues jobs, all or none. @returns them, in order */
  enqueue(jobs: readonly ChildJob[]): Promise<JobEnvelope[]>;
  /** In a test: how jobs have ended that the handler waits for. */
  play?(asked: RunRequest): Promise<RunRecord> | undefined;
  /** Makes a URL that sends a signal to the job; absent: this call carries no more than its answer. */
  signalUrl?(asked: SignalUrlAsked): Promise<string>;
}

/** Bytes of streams that an answer carries, approximately. */
const MAX_STREAMED = 1024 * 1024;

/** What waits for the answer of a run. */
export class Notes {
  progress: Progress | undefined;
  checkpoint: { state: unknown } | undefined;
  #steps: Map<string, StepRecord> | undefined;
  readonly children: ChildJob[] = [];
  readonly streams: StreamMessage[] = [];
  #streamed = 0;

  /** Notes chunks of a stream. @throws {TocsinError} 413 */
  stream(message: StreamMessage): void {
    this.#streamed += JSON.stringify(message.chunks).length;
    if (this.#streamed > MAX_STREAMED) {
      const details = { stream: message.name, limit: 'bytes', actual: this.#streamed, max: MAX_STREAMED };
      const text = `An answer carries at most ${MAX_STREAMED} bytes of streams.`;
      throw errorFor(text, { status: 413, code: 'payload_too_large', retryable: false, details });
    }
    this.streams.push(message);
  }

  step(name: string, record: StepRecord): void {
    this.#steps ??= new Map();
    this.#steps.set(name, record);
  }

  /** What is sent with an outcome. What only a further run would read is left out when there is none. */
  remarks(status: string, log: LogEntry[]): Remarks {
    const remarks: Remarks = {};
    if (status === 'again') return remarks;
    if (log.length > 0) remarks.log = log;
    if (this.streams.length > 0) remarks.streams = this.streams;
    if (status !== 'completed') {
      if (this.progress) remarks.progress = this.progress;
      if (this.checkpoint) remarks.checkpoint = this.checkpoint.state;
      if (this.#steps) remarks.steps = Object.fromEntries(this.#steps);
    }
    if (this.children.length > 0) remarks.enqueue = this.children;
    return remarks;
  }
}

/** Reports with the answer alone. Where an open call can be had, the run asks for one for what must be durable. */
export const answerVoice = (
  durable: 'with the answer' | 'never',
  notes: Notes,
  newId: (queue: string) => string,
): Voice => ({
  durable,
  progress: async (progress) => void Object.assign(notes, { progress }),
  checkpoint: async (state) => void Object.assign(notes, { checkpoint: { state } }),
  record: async (name, record) => void notes.step(name, record),
  stream: async (message) => notes.stream(message),
  enqueue: async (jobs) => jobs.map((job) => enqueuedLater(job, notes, newId)),
});

/** The job is made when the answer arrives; its id is chosen here. */
function enqueuedLater(job: ChildJob, notes: Notes, newId: (queue: string) => string): JobEnvelope {
  const options = (job.options ?? {}) as Record<string, unknown>;
  const queue = typeof options.queue === 'string' ? options.queue : DEFAULT_QUEUE;
  const child = { ...job, id: typeof job.id === 'string' ? job.id : newId(queue) };
  notes.children.push(child);
  const { type, args, meta } = child as Partial<JobEnvelope>;
  const { priority = 0 } = options;
  const own = { id: child.id, type, args, meta, queue, priority, state: 'available', attempt: 0 } as JobEnvelope;
  addKept(own, child);
  addKept(own, options);
  return own;
}
