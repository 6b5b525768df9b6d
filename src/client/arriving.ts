/** Jobs on their way to a worker: those of a chunk run together, and may come in several messages. */
import type { JobEnvelope } from '../producer/envelope';

/** How long the rest of a chunk is waited for, ms: its messages follow each other at once. */
const REST_MS = 1_000;

/** The jobs by the calls of handlers that they are for, in order. */
export function byCall(jobs: readonly JobEnvelope[]): JobEnvelope[][] {
  const calls: JobEnvelope[][] = [];
  const chunks = new Map<string, JobEnvelope[]>();
  for (const job of jobs) {
    const id = job.chunk?.id;
    const open = id === undefined ? undefined : chunks.get(id);
    if (open) {
      open.push(job);
      continue;
    }
    const call = [job];
    calls.push(call);
    if (id !== undefined) chunks.set(id, call);
  }
  return calls;
}

export class Arriving {
  readonly #open = new Map<string, JobEnvelope[]>();
  #timer: ReturnType<typeof setTimeout> | null = null;

  /** @param give gets jobs whose chunks are whole; or as far as they came, if the rest does not come */
  constructor(private readonly give: (jobs: JobEnvelope[]) => void) {}

  take(jobs: readonly JobEnvelope[]): void {
    const whole: JobEnvelope[] = [];
    for (const job of jobs) {
      const { chunk } = job;
      if (chunk === undefined) {
        whole.push(job);
        continue;
      }
      const members = [...(this.#open.get(chunk.id) ?? []), job];
      if (members.length < chunk.jobs) this.#open.set(chunk.id, members);
      else {
        this.#open.delete(chunk.id);
        whole.push(...members);
      }
    }
    if (whole.length > 0) this.give(whole);
    if (this.#open.size > 0) this.#timer ??= setTimeout(() => this.flush(), REST_MS);
    else if (this.#timer !== null) this.#stop();
  }

  /** Gives incomplete chunks as they are. */
  flush(): void {
    this.#stop();
    const rest = [...this.#open.values()].flat();
    this.#open.clear();
    if (rest.length > 0) this.give(rest);
  }

  #stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }
}
