/**
 * Plays more histories than the test suite does. From `npm run test:simulation --`, or with `node` on this file:
 *
 *     --runs N --seed S --steps L         absent: 50 histories of a random seed, of 100 steps
 *     --runs 1 --seed S --skip N          those that follow the first N histories of a seed
 *     --runs N --seed S --seeds K         K seeds, from S on (absent: from a random one), a process for each core
 *     --trees                             histories of trees of jobs that wait for jobs, instead of the other areas
 *     --history file.json                 one history: { "start": ms, "steps": [...] }
 *     --mutations --runs N [name…]        puts known defects back, one at a time, and says after how many histories of at
 *                                         most N each is found; those of mutations/list.json, or of files that are named
 *     --processes P                       so many at once; absent: one for each core
 */
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { whyNot } from './vitest.mjs';

const NUMBERS = ['runs', 'seed', 'steps', 'skip', 'seeds', 'processes'];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    ...Object.fromEntries([...NUMBERS, 'history'].map((name) => [name, { type: 'string' }])),
    mutations: { type: 'boolean', default: false },
    trees: { type: 'boolean', default: false },
  },
});
for (const option of NUMBERS) {
  const value = values[option];
  if (value !== undefined && !/^-?\d+$/.test(value)) fail(`--${option} must be a whole number, not ${value}`);
}
const number = (option, absent) => Number(values[option] ?? absent);
const processes = number('processes', availableParallelism());
const order = {
  runs: number('runs', 50),
  seed: number('seed', Math.floor(Math.random() * 2 ** 30)),
  length: number('steps', 100),
  skip: number('skip', 0),
  shrinks: true,
  trees: values.trees,
  history: values.history ? JSON.parse(readFileSync(values.history, 'utf8')) : null,
};
if (positionals.length > 0 && !values.mutations) fail(`${positionals[0]}: only --mutations takes names`);
const reason = whyNot();
if (reason) fail(reason);

function fail(message) {
  console.error(message);
  process.exit(2);
}

async function playSeeds(seeds) {
  const { playHistories } = await import('./workerd.mjs');
  const left = [...seeds];
  const failed = [];
  const worker = async () => {
    for (let seed = left.shift(); seed !== undefined; seed = left.shift()) {
      const began = performance.now();
      const { agreed, said } = await playHistories({ ...order, seed });
      const seconds = Math.round((performance.now() - began) / 1000);
      const what = order.history ? 'the history' : `${order.runs} histories of seed ${seed}`;
      console.log(`${what}: ${agreed ? 'agree' : 'FAILED'} after ${seconds} s`);
      if (agreed) continue;
      failed.push(seed);
      console.log(said);
    }
  };
  await Promise.all(Array.from({ length: processes }, worker));
  if (seeds.length > 1) {
    console.log(
      failed.length === 0 ? `${seeds.length} seeds agree` : `${failed.length} seeds failed: ${failed.join(', ')}`,
    );
  }
  return failed.length === 0;
}

async function run() {
  if (!values.mutations) return playSeeds(Array.from({ length: number('seeds', 1) }, (_, index) => order.seed + index));
  const { playMutations } = await import('./mutations/play.mjs');
  return playMutations(positionals, order, processes);
}

process.exit((await run()) ? 0 : 1);
