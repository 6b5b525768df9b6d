/** Reports that a worker gathers. */
import { expect, it } from 'vitest';
import type { Puller } from '../../src/client/pull';
import { ReportGatherer } from '../../src/client/report-gatherer';

it('a step for whose record the answer had no room is asked for by itself', async () => {
  const asked: unknown[] = [];
  const worker = {
    writeNote: (job: { id: string }) => ({ jobId: job.id, queue: 'q', isEnd: false, text: '{}' }),
    recordStep: async (...said: unknown[]) => {
      asked.push(said);
      return { result: 'on record' };
    },
  } as unknown as Puller;
  const done = { jobId: 'a', status: 'done' as const, state: 'active' as const, attempt: 1 };
  const outcomes = [
    { ...done, stepOmitted: true as const },
    { ...done, step: { result: 1 } },
  ];
  const send = async () => [outcomes.shift() ?? done];
  const reports = new ReportGatherer(
    worker,
    send,
    () => false,
    () => true,
    () => undefined,
  );
  const job = { id: 'a', attempt: 1, deliveryId: 'd', queue: 'q' };
  expect(await reports.step(job, 'large', { result: 2 })).toEqual({ result: 'on record' });
  expect(asked).toEqual([[job, 'large', { result: 2 }]]);
  expect(await reports.step(job, 'small', { result: 2 })).toEqual({ result: 1 });
  expect(await reports.step(job, 'new', { result: 2 })).toBeUndefined();
  expect(asked).toHaveLength(1);
});
