/** Handler Worker of the benchmark: does nothing, fails once, or reports the moment at which a job started. */
import { defineHandlers } from '../../src/handler/index';

type Jobs = {
  'bench.noop': unknown[];
  'bench.fail-once': unknown[];
  'bench.start': [{ n: number; port: number }];
};

export default defineHandlers<Jobs>(
  {
    'bench.noop': () => undefined,
    'bench.fail-once': (_job, ctx) => {
      if (ctx.attempt === 1) throw new Error('fails once');
    },
    // The Worker's clock has a resolution of 1 ms, so the start is also seen from outside, by whoever listens on `port`.
    'bench.start': async (job) => {
      const startedAt = Date.now();
      const [{ n, port }] = job.args;
      const response = await fetch(`http://127.0.0.1:${port}/${n}/${startedAt}`);
      await response.text();
    },
  },
  { log: () => undefined },
);
