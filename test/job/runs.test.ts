import { describe, expect, it } from 'vitest';
import { readAnswered } from '../../src/job/attempt/read-outcome';
import { readNack } from '../../src/job/attempt/read-report';
import { outcomeOf } from '../../src/job/errors';
import { readStoredJob } from '../../src/job/export/stored-job';

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
