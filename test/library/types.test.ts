/** The types of jobs that a deployment's own handlers give to whoever enqueues. Nothing here runs but the last line. */
import { expect, expectTypeOf, it } from 'vitest';
import * as z from 'zod';
import { type createTocsin, defineHandlers, type Job, type TocsinDeployment } from '../../src/library';

const handlers = defineHandlers({
  'email.send': { args: z.tuple([z.object({ to: z.string() })]), handler: (job) => job.args[0].to.length },
  'sum.add': (job: Job<[a: number, b: number]>) => job.args[0] + job.args[1],
});

async function produce(make: typeof createTocsin) {
  const tocsin = make({ handlers });
  await tocsin.enqueue('email.send', [{ to: 'ada@example.com' }], { delay: '10s' });
  await tocsin.client.enqueueMany([{ type: 'sum.add', args: [1, 2] }]);
  const job = await tocsin.enqueue('sum.add', [1, 2]);
  expectTypeOf(job.args).toEqualTypeOf<[a: number, b: number]>();
  // @ts-expect-error no handler takes it
  await tocsin.enqueue('email.sent', []);
  // @ts-expect-error the schema asks for an address
  await tocsin.enqueue('email.send', [{ from: 'ada@example.com' }]);
  // @ts-expect-error a number is missing
  await tocsin.enqueue('sum.add', [1]);
  // @ts-expect-error a letter is missing
  await tocsin.enqueue('sum.add', [1, 2], { maxAttemps: 1 });
  // @ts-expect-error schedules are exact
  make({ handlers, crons: { a: { expression: '@daily', job: { type: 'sum.add', args: [1, 2] }, jitter: '5m' } } });

  interface Jobs {
    'report.build': [month: string];
  }
  const explicit: TocsinDeployment<Jobs> = make<Jobs>({ queues: { reports: { concurrency: 1 } } });
  await explicit.enqueue('report.build', ['2026-11']);
  await make().enqueue('anything', [1, 'two']);
}

it('compiles', () => {
  expect(produce).toBeTypeOf('function');
});
