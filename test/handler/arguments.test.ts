/** Arguments checked by schemas, and the types that follow from them. */
import * as v from 'valibot';
import { describe, expect, expectTypeOf, it } from 'vitest';
import * as z from 'zod';
import { TocsinClient } from '../../src/client';
import { defineHandlers, type HandlerContext, type Job, type JobsOf, type ResultsOf } from '../../src/handler';
import { deliverOne, quiet } from './deliver';

const handlers = defineHandlers(
  {
    'email.send': {
      args: z.tuple([z.object({ to: z.email(), urgent: z.boolean().default(false) })]),
      handler: async (job, ctx) => {
        expectTypeOf(job.args[0]).toEqualTypeOf<{ to: string; urgent: boolean }>();
        expect(ctx.job).toBe(job);
        return { accepted: job.args[0].to, urgent: job.args[0].urgent };
      },
      timeoutMs: 5000,
    },
    'sum.add': {
      args: v.tuple([v.pipe(v.string(), v.transform(Number)), v.number()]),
      handler: (job) => job.args[0] + job.args[1],
    },
    'image.resize': (job: Job<[key: string, width: number]>, ctx: HandlerContext<{ IMAGES: string }>) =>
      `${ctx.env.IMAGES}/${job.args[0]}`,
    'list.any': (job) => job.args.length,
    '*': (job) => job.type,
  },
  quiet(),
);

describe('a schema', () => {
  it('gives the handler what it makes of the arguments', async () => {
    const sent = await deliverOne(handlers, {}, { type: 'email.send', args: [{ to: 'a@example.com', more: 1 }] });
    expect(sent.result).toEqual({ accepted: 'a@example.com', urgent: false });
    expect((await deliverOne(handlers, {}, { type: 'sum.add', args: ['40', 2] })).result).toBe(42);
  });

  it.each<[string, string, unknown[], (string | number)[]]>([
    ['zod', 'email.send', [{ to: 'nobody' }], [0, 'to']],
    ['valibot', 'sum.add', ['1', 'two'], [1]],
  ])('of %s refuses what it does not take, once', async (_, type, args, path) => {
    const { status, error } = await deliverOne(handlers, {}, { type, args });
    expect([status, error]).toMatchObject([
      'failed',
      { code: 'invalid_args', type: 'invalid_args', retryable: false, details: { issues: [{ path }] } },
    ]);
    expect(error?.message).toContain(` at args.${path.join('.')}`);
    expect(error).not.toHaveProperty('stack');
  });

  it('that throws fails the attempt like its handler would', async () => {
    const validate = () => Promise.reject(new Error('no database'));
    const args = { '~standard': { version: 1 as const, vendor: 'own', validate } };
    const worker = defineHandlers({ 'a.b': { args, handler: () => expect.unreachable() } }, quiet());
    expect((await deliverOne(worker, {}, { type: 'a.b' })).error).toMatchObject({ message: 'no database' });
  });

  it.each([[{}], [1], [{ '~standard': {} }]])('that is none (%j) is refused when the module loads', (args) => {
    const definition = { args, handler: () => 1 } as never;
    expect(() => defineHandlers({ 'a.b': definition })).toThrow(/"a.b" needs a schema as args/);
  });
});

describe('the types of jobs', () => {
  type Jobs = JobsOf<typeof handlers>;
  type Results = ResultsOf<typeof handlers>;

  it('are those of the schemas and of what handlers declare', () => {
    expectTypeOf<keyof Jobs>().toEqualTypeOf<'email.send' | 'sum.add' | 'image.resize' | 'list.any'>();
    expectTypeOf<Jobs['email.send']>().toEqualTypeOf<[{ to: string; urgent?: boolean | undefined }]>();
    expectTypeOf<Jobs['sum.add']>().toEqualTypeOf<[string, number]>();
    expectTypeOf<Jobs['image.resize']>().toEqualTypeOf<[key: string, width: number]>();
    expectTypeOf<Results['email.send']>().toEqualTypeOf<{ accepted: string; urgent: boolean }>();
    expectTypeOf<Results['sum.add']>().toEqualTypeOf<number>();
    expectTypeOf<Results['image.resize']>().toEqualTypeOf<string>();
  });

  it('are those of enqueue', () => {
    const client = new TocsinClient<Jobs>({ url: 'http://localhost' });
    const compiles = async () => {
      await client.enqueue('email.send', [{ to: 'a@example.com' }]);
      await client.enqueue('sum.add', ['1', 2]);
      // @ts-expect-error the schema reads a text, although the handler gets a number
      await client.enqueue('sum.add', [1, 2]);
      // @ts-expect-error the width is missing
      await client.enqueue('image.resize', ['a.png']);
      // @ts-expect-error nobody handles this type
      await client.enqueue('email.sent', []);
    };
    expect(compiles).toBeTypeOf('function');
  });

  it('may be written first; then every type needs a handler of it', () => {
    interface Written {
      'mail.send': [{ to: string }];
      'mail.report': [];
    }
    const compiles = () => {
      const worker = defineHandlers<Written, { SENDER: string }>({
        'mail.send': (job, ctx) => [job.args[0].to, ctx.env.SENDER],
        'mail.report': { args: z.tuple([]), handler: () => 'done' },
      });
      expectTypeOf<JobsOf<typeof worker>>().toEqualTypeOf<Written>();
      // @ts-expect-error 'mail.report' is missing
      defineHandlers<Written>({ 'mail.send': (job) => job.args[0].to });
      // @ts-expect-error the handler takes other arguments
      defineHandlers<Written>({ 'mail.send': (job: Job<[number]>) => job.args[0], 'mail.report': () => 1 });
      defineHandlers<Written>({
        // @ts-expect-error the schema gives other arguments
        'mail.send': { args: z.tuple([z.number()]), handler: () => 1 },
        'mail.report': () => 1,
      });
    };
    expect(compiles).toBeTypeOf('function');
  });

  it('are refused where a handler or a setting is wrong', () => {
    const compiles = () => {
      // @ts-expect-error there is no such option
      defineHandlers({ 'a.b': { handler: () => 1, timeout: 5 } });
      // @ts-expect-error there is no handler
      defineHandlers({ 'a.b': { timeoutMs: 5 } });
      defineHandlers({
        'a.b': {
          args: z.tuple([z.string()]),
          // @ts-expect-error the argument is a text
          handler: (job) => job.args[0].toFixed(),
        },
      });
    };
    expect(compiles).toBeTypeOf('function');
  });
});
