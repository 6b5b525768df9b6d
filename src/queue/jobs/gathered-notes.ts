/**
 * Checkpoints and steps in the reports of one message. A job's row may have 1.7 MB: it is read once and written once,
 * however many reports name it.
 */
import { StepBook, type StepRecord } from '../../job/steps';
import type { Stored } from '../store/parts';

/** What is noted about one job. */
interface JobNotes {
  steps?: StepBook;
  checkpoint?: { content: string; saves: number };
}

export class GatheredNotes {
  private readonly said = new Map<number, JobNotes>();

  /** @param now epoch ms */
  constructor(
    private readonly q: Stored,
    private readonly now: number,
  ) {}

  private of(key: number): JobNotes {
    const said = this.said.get(key) ?? {};
    this.said.set(key, said);
    return said;
  }

  /** The job saves a checkpoint: the last one counts. */
  saveCheckpoint(key: number, content: string): void {
    const said = this.of(key);
    said.checkpoint = { content, saves: (said.checkpoint?.saves ?? 0) + 1 };
    this.q.store.written.spend(content.length);
  }

  /** The job records a step. @returns the earlier record, which wins. @throws {ApiError} as `StepBook.add` */
  recordStep(key: number, name: string, record: StepRecord): StepRecord | undefined {
    const said = this.of(key);
    said.steps ??= new StepBook(this.q.store.checkpoints.steps(key));
    return said.steps.add(name, record);
  }

  /** Writes what was noted about a job: the caller is about to read it. */
  write(key: number): void {
    const { q, now } = this;
    const { steps, checkpoint } = this.said.get(key) ?? {};
    this.said.delete(key);
    if (checkpoint) q.store.checkpoints.save(key, checkpoint.content, now, checkpoint.saves);
    if (steps?.isChanged) q.store.checkpoints.saveSteps(key, steps.text, now);
  }

  /** Writes everything that was noted. */
  end(): void {
    for (const key of [...this.said.keys()]) this.write(key);
  }
}
