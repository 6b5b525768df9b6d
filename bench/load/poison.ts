/** Handler Worker whose poison job takes its isolate down, and every other job that runs in it at that moment. */
import { abortIsolate } from 'cloudflare:workers';
import { defineHandlers } from '../../src/handler/index';

type Jobs = { 'load.good': unknown[]; 'load.poison': unknown[] };

export default defineHandlers<Jobs>(
  {
    'load.good': () => undefined,
    'load.poison': () => abortIsolate('poison'),
  },
  { log: () => undefined },
);
