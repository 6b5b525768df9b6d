import { describe, expect, it } from 'vitest';
import { readStoredJob } from '../../src/export/stored-job';
import { readAnswered } from '../../src/job/attempt/read-outcome';
import { readNack } from '../../src/job/attempt/read-report';
import { utf8Bytes } from '../../src/job/bytes';
import { outcomeOf } from '../../src/job/errors';
import { own } from '../../src/job/own';
import { endRun, type PlacedEnd } from '../../src/job/runs';
import { MAX_STEPS_BYTES, StepBook } from '../../src/job/steps';
import type { RunEnd } from '../../src/job/wire';

const NOW = 1_700_000_000_000;
const NAME = { job_id: '019a0000-0000-7000-8000-000000000000' };

const job = { type: 'image.resize', args: [1], options: { queue: 'images' } };

const nack = (runs: unknown) =>
  outcomeOf(() => {
    const { job_id: _, ...outcome } = readNack(
      { ...NAME, requeue: true, attempt_used: false, snooze: { runs } },
      {},
      NOW,
    );
    return outcome;
  });

describe('the runs of a snooze', () => {
  it('are read alike from a pushed handler and from a worker that pulls', () => {
    const runs = [
      { name: 'cover', jobs: [job], timeout_ms: 60_000, detached: true },
      { name: 'thumbs', jobs: [job, job], all: true, stop: true },
      { name: 'before' },
    ];
    const outcome = { kind: 'snoozed', snooze: {}, runs: JSON.stringify(runs) };
    // A queue object that does not know of runs wakes the handler at the first of their moments.
    expect(nack(runs)).toEqual({ ok: true, value: { ...outcome, snooze: { in: 60_000 } } });
    expect(readAnswered({ status: 'snoozed', runs }, NOW)).toEqual(outcome);
  });

  it.each([
    ['no list', {}, 400, 'snooze.runs'],
    ['a run without a name', [{ jobs: [job] }], 400, 'snooze.runs[0].name'],
    ['a name twice', [{ name: 'a' }, { name: 'a' }], 400, 'snooze.runs[1].name'],
    ['two jobs without all', [{ name: 'a', jobs: [job, job] }], 400, 'snooze.runs[0].jobs'],
    ['none of all', [{ name: 'a', jobs: [], all: true }], 400, 'snooze.runs[0].jobs'],
    ['a job that is none', [{ name: 'a', jobs: [1] }], 400, 'snooze.runs[0].jobs[0]'],
    ['a timeout that is none', [{ name: 'a', jobs: [job], timeout_ms: '1h' }], 400, 'snooze.runs[0].timeout_ms'],
    ['an unknown member', [{ name: 'a', job }], 400, 'job'],
    ['too many jobs', [{ name: 'a', jobs: Array(1001).fill(job), all: true }], 413, 'snooze.runs'],
  ])('refuses %s', (_, runs, status, field) => {
    expect(nack(runs)).toMatchObject({ ok: false, error: { status, details: { field } } });
    expect(readAnswered({ status: 'snoozed', runs }, NOW)).toMatchObject({ kind: 'failed' });
  });

  it('need a moment, a signal or a run', () => {
    expect(nack([])).toMatchObject({ ok: false, error: { details: { field: 'snooze' } } });
    expect(readAnswered({ status: 'snoozed', runs: [] }, NOW)).toMatchObject({ kind: 'failed' });
  });
});

describe('the ends of runs', () => {
  const id = '019a0000-0000-7000-8000-000000000000';
  const error = {
    ...{ code: '€'.repeat(255), type: '€'.repeat(255), message: '€'.repeat(1024), state: 'discarded' as const },
    details: { rest: 'x'.repeat(16_000) },
  };
  const pending = (run: object) => ({ until: NOW, run: { queue: 'q', type: 't', claim: 1, ...run } });
  const several = (jobs: number, rest: object = {}) =>
    pending({ ids: Array(jobs).fill(null), jobs, ended: 0, failed: 0, ...rest });
  const end = (book: StepBook, name: string, ends: PlacedEnd[]) => endRun(book, name, own(book.steps, name), ends);

  it.each([1, 250, 1000])('of 1,000 jobs fit into a row when all fail at length, %i at a time', (size) => {
    let book = new StepBook(undefined, NOW);
    book.put('all', several(1000));
    book.put('rest', { result: 'r'.repeat(60_000) });
    for (let at = 0; book.room > 65_000; at++) book.put(`step${at}`, { result: 's'.repeat(60_000) });
    for (let at = 0; at < 1000; at += size) {
      const ends = Array.from({ length: size }, (_, n) => ({ place: at + n, id, error }));
      // A list with each end that is written again takes its time: some suffice.
      if (size === 1 && at % 20 !== 0) continue;
      book = new StepBook(book.text, NOW);
      end(book, 'all', ends);
      expect(utf8Bytes(book.text)).toBeLessThanOrEqual(MAX_STEPS_BYTES);
    }
    if (size === 1) return;
    expect(book.parts).toHaveLength(1);
    const list = JSON.parse(book.parts[0]?.data ?? '')[0] as RunEnd[];
    expect(list).toHaveLength(1000);
    for (const one of list) expect(one).toMatchObject({ id, error: { state: 'discarded' } });
    expect(list.at(-1)?.error).toMatchObject({ code: 'too_long', message: 'There is no room for its error.' });
  });

  it('of 1,000 single jobs fit into a row, too', () => {
    const book = new StepBook(undefined, NOW);
    for (let at = 0; at < 1000; at++) book.put(`r${at}`, pending({ id }));
    for (let at = 0; at < 1000; at++) end(book, `r${at}`, [{ id, error }]);
    expect(utf8Bytes(book.text)).toBeLessThanOrEqual(MAX_STEPS_BYTES);
    expect(book.steps.r0).toMatchObject({ error });
    expect(book.steps.r999).toMatchObject({ error: { state: 'discarded' } });
  });

  it('of jobs that another one stops count as failures, also when one completes after all', () => {
    const book = new StepBook(undefined, NOW);
    book.put('all', several(3, { ids: [id, id, id], stop: true }));
    const failure = { code: 'bad', message: 'no' };
    expect(end(book, 'all', [{ place: 1, error: failure }])).toHaveLength(2);
    end(book, 'all', [{ place: 0, id, result: 7 }]);
    expect(book.steps.all).toMatchObject({
      result: [{ result: 7 }, { error: failure }, { error: { code: 'cancelled' } }],
      run: { ended: 1, failed: 2 },
    });
  });
});

describe('a job of an exported file that a handler waits for', () => {
  const id = '019a0000-0000-7000-8000-000000000000';
  const awaited = { by: id, queue: 'q', name: 'r', claim: 1, depth: 1, holds: [['q', 'g']] };
  const stored = (body: object) => ({
    ...{ id, type: 'a.b', state: 'waiting', priority: 0, attempt: 0, claims: 0, created_at: NOW, enqueued_at: NOW },
    body: { type: 'a.b', args: [], meta: {}, ...body },
  });
  const read = (body: object) => readStoredJob(stored(body), { now: NOW, path: 'job', queue: 'q', from: 'q' });

  it('is awaited after its import, too', async () => {
    const { body } = await read({ awaited });
    expect(JSON.parse(body)).toMatchObject({ awaited });
  });

  it('is refused without the id of who waits', async () => {
    const { by: _, ...rest } = awaited;
    await expect(read({ awaited: rest })).rejects.toMatchObject({
      data: { details: { field: 'job.body.awaited.by' } },
    });
  });
});
