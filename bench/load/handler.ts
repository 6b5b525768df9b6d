/** Handler Worker of the load scenarios: each type answers what its scenario checks. */
import { defineHandlers } from '../../src/handler/index';
import { fails } from './coin.mjs';

type Jobs = {
  'load.due': unknown[];
  'load.half': [{ n: number }];
  'load.size': [string];
};

export default defineHandlers<Jobs>(
  {
    /** When it started, epoch ms. */
    'load.due': () => Date.now(),
    'load.half': (job, ctx) => {
      if (fails(job.args[0].n, ctx.attempt)) throw new Error('heads');
    },
    /** How much of the payload arrived. */
    'load.size': (job) => job.args[0].length,
  },
  { log: () => undefined },
);
