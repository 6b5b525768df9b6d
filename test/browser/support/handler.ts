/** Runs the jobs `work.do`: each does what its argument says. */
import { defineHandlers, UnrecoverableError } from '../../../src/handler';

interface Wanted {
  /** Fails with this message. */
  fail?: string;
  /** Without another try. */
  final?: boolean;
  /** Takes this long. */
  ms?: number;
}

export default defineHandlers({
  'work.confirm': async (_, ctx) => {
    const paid = await ctx.waitFor('confirmed', { timeout: '48h' });
    return { paid };
  },
  'work.durable': async (_, ctx) => {
    await ctx.step('charge', () => ({ charged: 12 }));
    const by = await ctx.waitFor('approved', { timeout: '48h' });
    await ctx.step('ship', () => 'shipped');
    await ctx.sleep('cooling', '36h');
    return { by };
  },
  'work.nested': async (job, ctx) => {
    const [depth = 0] = job.args as [number?];
    if (depth === 0) return await ctx.waitFor('approved', { timeout: '30m' });
    return await ctx.run(`level ${depth}`, 'work.nested', [depth - 1], { timeout: '1h' });
  },
  'work.do': async (job) => {
    const [{ fail, final, ms = 0 } = {}] = job.args as [Wanted?];
    if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms));
    if (fail && final) throw new UnrecoverableError(fail);
    if (fail) throw new Error(fail);
    return { done: true };
  },
});
