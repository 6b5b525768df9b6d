/**
 * A stream read to its end is exactly what the last execution of its writer wrote: random writes, lost confirmations,
 * deaths of the object, attempts that fail, and a reader that comes back from anywhere.
 */
import { expect, it } from 'vitest';
import { placeText } from '../../../../src/job/streams';
import { histories } from '../../../support/long';
import { freshName, steady, TestQueue } from '../../../support/queue';

/** Numbers in [0, 1) that follow from a seed. */
function chance(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Reads page by page, as a client that keeps what it has. */
class Reader {
  run: number | undefined;
  texts: string[] = [];

  constructor(
    private readonly queue: TestQueue,
    private readonly id: string,
  ) {}

  /** @returns whether the stream has ended, and this was the rest */
  async read(maxChars: number): Promise<boolean> {
    const { run, texts } = this;
    const after = run === undefined || texts.length === 0 ? undefined : { run, n: texts.length - 1 };
    const answer = await this.queue.api.streamPage(this.id, 'tokens', after, maxChars);
    if (!answer.ok) throw new Error(answer.error.message);
    const { value: page } = answer;
    if (page.run !== run) this.texts = [];
    // After its reset, what was there before never comes back.
    if (run !== undefined && page.run !== undefined) expect(page.run).toBeGreaterThanOrEqual(run);
    this.run = page.run;
    expect(page.first, `after ${after && placeText(after)}`).toBe(this.texts.length);
    this.texts.push(...page.chunks);
    return page.isWhole && page.state !== 'open';
  }

  /** Comes back from an earlier place. */
  forget(random: () => number): void {
    this.texts.length = Math.floor(random() * (this.texts.length + 1));
  }
}

async function play(seed: number): Promise<void> {
  const random = chance(seed);
  const queue = new TestQueue(freshName(`stream-${seed}`));
  const job_id = await queue.add({ body: { retry: steady(50, 0) } });
  const reader = new Reader(queue, job_id);
  /** What each execution has written. */
  const written = new Map<number, string[]>();
  const look = async (): Promise<void> => {
    if (random() < 0.3) reader.forget(random);
    await reader.read(random() < 0.5 ? 60 : 100_000).catch((error: Error) => {
      // The object has died: the client comes back.
      if (!/killed|reset/.test(error.message)) throw error;
    });
    // A chunk that is lost with its object may be shown, and is never contradicted.
    if (reader.run !== undefined) {
      const all = written.get(reader.run) as string[];
      expect(all.slice(0, reader.texts.length)).toEqual(reader.texts);
    }
  };

  const underWay: Promise<void>[] = [];
  const attempts = 1 + Math.floor(random() * 3);
  for (let attempt = 1; attempt <= attempts; attempt++) {
    const [job] = await queue.claim();
    expect(job?.attempt).toBe(attempt);
    const executions = 1 + Math.floor(random() * 3);
    for (let execution = 0; execution < executions; execution++) {
      const isLast = attempt === attempts && execution === executions - 1;
      const chunks: string[] = [];
      written.set(attempt * 1024 + execution, chunks);
      let confirmed = 0;
      let sent = 0;
      const send = async (flush: boolean): Promise<void> => {
        // Messages may be under way together, or be repeated.
        const first = Math.min(chunks.length, random() < 0.5 ? sent : confirmed);
        sent = chunks.length;
        const said = { job_id, attempt, name: 'tokens', execution, first, chunks: chunks.slice(first), flush };
        const answer = await queue.api.writeStream(said).catch(() => undefined);
        if (answer?.ok && random() < 0.8) confirmed = Math.max(confirmed, answer.value.next);
        if (answer && !answer.ok) {
          const next = answer.error.details?.next as number;
          expect(answer.error).toMatchObject({ status: 409, details: { next: expect.any(Number) } });
          // What is confirmed is never lost.
          expect(next).toBeGreaterThanOrEqual(confirmed);
          sent = next;
        }
      };
      for (let left = 1 + Math.floor(random() * 6); left > 0; left--) {
        for (let n = Math.floor(random() * 4) + 1; n > 0; n--)
          chunks.push(`"${attempt}.${execution}.${chunks.length}"`);
        if (random() < 0.5) await send(true);
        else underWay.push(send(false));
        if (random() < 0.5) await look();
        if (random() < 0.2) {
          await queue.die();
          await look();
        }
      }
      // A writer that was cut off confirms nothing more.
      while (confirmed < chunks.length && (isLast || random() < 0.9)) await send(true);
    }
    if (attempt < attempts) await queue.nack(job_id, undefined, { attempt });
  }
  if (random() < 0.5) await queue.evict();
  await queue.ack(job_id);
  while (!(await reader.read(100))) void 0;
  const last = [...written.values()].at(-1);
  expect(reader.texts).toEqual(last);
  reader.forget(random);
  while (!(await reader.read(100_000))) void 0;
  expect(reader.texts).toEqual(last);
  await Promise.all(underWay);
}

it('a stream read to its end is exactly what the last execution of its writer wrote', async () => {
  for (let first = 1; first <= histories(300); first += 10) {
    await Promise.all(Array.from({ length: 10 }, (_, n) => play(first + n)));
  }
});
