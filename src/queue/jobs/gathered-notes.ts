/** Checkpoints and steps in one message's reports: a row may have 1.7 MB, so it is read and written once. */
import { StepBook, type StepRecord } from '../../job/steps';
import type { JobRow } from '../store/job-row';
import type { Named, Observed, Stored } from '../store/parts';
import { emitStep, saveBook, whole } from './steps';

interface JobNotes {
  steps?: StepBook;
  checkpoint?: { content: string; saves: number };
}

export class GatheredNotes {
  private readonly said = new Map<number, JobNotes>();

  /** @param now epoch ms */
  constructor(
    private readonly q: Named & Stored & Observed,
    private readonly now: number,
  ) {}

  private of(key: number): JobNotes {
    const said = this.said.get(key) ?? {};
    this.said.set(key, said);
    return said;
  }

  saveCheckpoint(key: number, content: string): void {
    const said = this.of(key);
    said.checkpoint = { content, saves: (said.checkpoint?.saves ?? 0) + 1 };
    this.q.store.written.spend(content.length);
  }

  /** The job records a step. @returns the earlier record, which wins. @throws {ApiError} as `StepBook.add` */
  recordStep(row: JobRow, name: string, record: StepRecord): StepRecord | undefined {
    const { key } = row;
    const said = this.of(key);
    said.steps ??= new StepBook(this.q.store.checkpoints.steps(key), this.now);
    const earlier = said.steps.add(name, record);
    if (!earlier) emitStep(this.q, row, name, record, this.now);
    // The result may be of this very message.
    if (earlier?.result_bytes !== undefined) this.write(key);
    return whole(this.q, key, name, earlier);
  }

  write(key: number): void {
    const { q, now } = this;
    const { steps, checkpoint } = this.said.get(key) ?? {};
    this.said.delete(key);
    if (checkpoint) q.store.checkpoints.save(key, checkpoint.content, now, checkpoint.saves);
    if (steps) saveBook(q, key, steps, now);
  }

  end(): void {
    for (const key of [...this.said.keys()]) this.write(key);
  }
}
