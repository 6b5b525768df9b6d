/** Output streams of runs: what is sent and when, whose a stream is, and what happens when the queue refuses. */
import { describe, expect, it } from 'vitest';
import { defineHandlers, type HandlerContext, StreamFullError } from '../../src/handler';
import { quiet } from './deliver';
import { accept, openCall, type Reply, type Said } from './live-call';

type Run = (ctx: HandlerContext) => unknown;

const live = (run: Run, reply: (said: Said) => Reply | Promise<Reply> = accept, job: object = {}) =>
  openCall(
    defineHandlers((_, ctx) => run(ctx), quiet()),
    [{ type: 'test.write', ...job }],
    reply,
  );
const streamed = (said: Said[]) => said.flatMap(({ stream }) => stream ?? []);
const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

describe('a stream', () => {
  it('is gathered, numbered, and confirmed before the run ends', async () => {
    const call = live(async (ctx) => {
      const out = ctx.stream('tokens');
      for (const text of ['a', 'b']) await out.write(text);
      await wait(80);
      await out.write({ userName: 'Ada' });
      return 'done';
    });
    expect((await call.results).del_0).toMatchObject({ status: 'completed', result: 'done' });
    const tokens = { name: 'tokens', execution: 0 };
    expect(streamed(call.said)).toEqual([
      { ...tokens, first: 0, chunks: ['a', 'b'] },
      { ...tokens, first: 2, chunks: [{ userName: 'Ada' }], flush: true },
    ]);
  });

  it('belongs to the step that writes it, and is there before the record of the step', async () => {
    const call = live(async (ctx) => {
      await ctx.step('answer', async () => {
        const out = ctx.stream('tokens');
        for (const text of ['a', 'b']) await out.write(text);
      });
      await ctx.pipe('log', new Blob(['é', 'x']).stream());
    });
    await call.results;
    expect(streamed(call.said)).toEqual([
      { name: 'tokens', step: 'answer', execution: 0, first: 0, chunks: ['a', 'b'], flush: true },
      { name: 'log', execution: 0, first: 0, chunks: ['éx'] },
    ]);
    expect(call.said.map(({ stream, step, status }) => stream?.name ?? step?.name ?? status)).toEqual([
      ...['tokens', 'answer', 'log', 'completed'],
    ]);
  });

  it('starts over with each try of its step, and an earlier try writes no more', async () => {
    let earlier: Promise<unknown> | undefined;
    let tries = 0;
    const call = live((ctx) =>
      ctx.step(
        'answer',
        async () => {
          const out = ctx.stream('tokens');
          await out.write(`try ${++tries}`);
          await out.flush();
          if (tries === 1) {
            earlier = wait(100).then(() => out.write('late'));
            earlier.catch(() => undefined);
            throw new Error('again');
          }
          await wait(150);
        },
        { retry: { maxAttempts: 2, initialInterval: 1 } },
      ),
    );
    expect((await call.results).del_0?.status).toBe('completed');
    await expect(earlier).rejects.toThrow('another execution writes "tokens" now');
    expect(streamed(call.said).map(({ execution, first, chunks }) => [execution, first, chunks])).toEqual([
      [0, 0, ['try 1']],
      [1, 0, ['try 2']],
    ]);
  });

  it('goes with the answer where the call carries nothing before', async () => {
    const worker = (run: Run) => defineHandlers((_, ctx) => run(ctx), quiet());
    const job = { id: 'job-0', type: 'test.write', args: [], attempt: 1 };
    const send = async (run: Run) => {
      const body = JSON.stringify({ job, worker_id: 'w', delivery_id: 'd' });
      const answer = await worker(run).fetch(new Request('http://handler/', { method: 'POST', body }), {});
      return (await answer.json()) as Record<string, unknown>;
    };
    expect(
      await send(async (ctx) => {
        const out = ctx.stream('tokens');
        for (const text of ['a', 'b']) await out.write(text);
      }),
    ).toMatchObject({
      status: 'completed',
      streams: [{ name: 'tokens', execution: 0, first: 0, chunks: ['a', 'b'] }],
    });
    expect(
      await send(async (ctx) => {
        for (let n = 0; n < 6; n++) await ctx.stream('tokens').write('x'.repeat(200 * 1024));
      }),
    ).toMatchObject({ status: 'failed', error: { type: 'StreamFullError' } });
  });

  it('has one writer', async () => {
    const call = live(async (ctx) => {
      const out = ctx.stream('own');
      await out.write(1);
      const errors: string[] = [];
      const note = (error: Error) => errors.push(`${error.name}: ${error.message}`);
      await ctx.step('a', async () => {
        await out.write(2).catch(note);
        try {
          ctx.stream('own');
        } catch (error) {
          note(error as Error);
        }
        await ctx.stream('of a').write(1);
      });
      await ctx.step('b', async () => {
        try {
          ctx.stream('of a');
        } catch (error) {
          note(error as Error);
        }
      });
      return errors;
    });
    const hint = 'call ctx.stream where you write, and give each writer a name of its own';
    const own = `TypeError: ctx.stream: "own" belongs to the handler, outside of steps; ${hint}`;
    expect((await call.results).del_0?.result).toEqual([
      ...[own, own],
      `TypeError: ctx.stream: "of a" belongs to the step "a"; ${hint}`,
    ]);
  });

  it('makes its writer wait while 1 MiB is not confirmed', async () => {
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    let written = 0;
    const call = live(
      async (ctx) => {
        const out = ctx.stream('large');
        for (; written < 12; written++) await out.write('x'.repeat(200 * 1024));
      },
      async () => {
        await held;
        return {};
      },
    );
    await wait(200);
    expect(written).toBe(5);
    release();
    expect((await call.results).del_0?.status).toBe('completed');
    expect(streamed(call.said).flatMap(({ chunks }) => chunks)).toHaveLength(12);
  });

  it('sends again what the queue has lost', async () => {
    let refusals = 0;
    const call = live(
      async (ctx) => {
        const out = ctx.stream('tokens');
        await out.write('a');
        await out.flush();
        await out.write('b');
        await out.flush();
      },
      ({ stream }) => {
        if (stream?.first !== 1 || refusals++ > 0) return {};
        // It knows the first chunk, but a message was lost.
        return { error: { code: 'conflict', message: 'missing', details: { next: 1 } } } as Reply;
      },
    );
    expect((await call.results).del_0?.status).toBe('completed');
    expect(streamed(call.said).map(({ first, chunks }) => [first, chunks])).toEqual([
      [0, ['a']],
      [1, ['b']],
      [1, ['b']],
    ]);
  });

  it.each([
    [{ code: 'payload_too_large', message: 'full', details: { limit: 'bytes', max: 1 } }, 'StreamFullError'],
    [{ code: 'conflict', message: 'other', details: { writer: null } }, 'TypeError'],
    [{ code: 'conflict', message: 'over' }, 'ConflictError'],
  ])('that is refused with %j fails the run with %s, even if no call waits for it', async (error, type) => {
    const call = live(
      (ctx) => {
        void ctx.stream('tokens').write('a');
      },
      () => ({ error }),
    );
    expect((await call.results).del_0).toMatchObject({ status: 'failed', error: { type } });
    expect(new StreamFullError('full', { status: 413, code: 'x', retryable: false }).name).toBe('StreamFullError');
  });

  it('takes no chunk that is too large, or not JSON, and none after the end', async () => {
    let out: ReturnType<HandlerContext['stream']> | undefined;
    const call = live(async (ctx) => {
      out = ctx.stream('tokens');
      const refused = [undefined, 1n, new Map([[1, 2]]), 'x'.repeat(256 * 1024)].map((chunk) =>
        out?.write(chunk).then(
          () => 'written',
          (error) => (error as Error).name,
        ),
      );
      return await Promise.all(refused);
    });
    expect((await call.results).del_0?.result).toEqual(['TypeError', 'TypeError', 'TypeError', 'TypeError']);
    await expect(out?.write('late')).rejects.toThrow('the run has ended');
  });
});
