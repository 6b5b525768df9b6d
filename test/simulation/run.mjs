/**
 * Plays more histories than the test suite does. From `npm run test:simulation --`, or with `node` on this file:
 *
 *     --runs N --seed S --steps L         absent: a random seed
 *     --runs 1 --seed S --skip N          those that follow the first N histories of a seed
 *     --runs N --seed S --seeds K         K seeds, from S on (absent: from a random one), a process for each core
 *     --history file.json                 one history: { "start": ms, "steps": [...] }
 *     --mutations --runs N [name…]        puts known defects back, one at a time, and says after how many histories of at
 *                                         most N each is found; those of mutations/list.json, or of files that are named
 *     --processes P                       so many at once; absent: one for each core
 */
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { playMutations } from './mutations/play.mjs';
import { playSimulation, whyNot } from './vitest.mjs';

const NUMBERS = {
  runs: 'SIMULATION_RUNS',
  seed: 'SIMULATION_SEED',
  steps: 'SIMULATION_STEPS',
  skip: 'SIMULATION_SKIP',
  seeds: '',
  processes: '',
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    ...Object.fromEntries([...Object.keys(NUMBERS), 'history'].map((name) => [name, { type: 'string' }])),
    mutations: { type: 'boolean', default: false },
  },
});
const env = {};
for (const [option, variable] of Object.entries(NUMBERS)) {
  const value = values[option];
  if (value === undefined) continue;
  if (!/^-?\d+$/.test(value)) fail(`--${option} must be a whole number, not ${value}`);
  if (variable) env[variable] = value;
}
const processes = Number(values.processes ?? availableParallelism());
const anySeed = () => Math.floor(Math.random() * 2 ** 30);
env.SIMULATION_SEED ??= String(anySeed());
if (positionals.length > 0 && !values.mutations) fail(`${positionals[0]}: only --mutations takes names`);
if (values.history) env.SIMULATION_HISTORY = values.history;
const reason = whyNot();
if (reason) fail(reason);

function fail(message) {
  console.error(message);
  process.exit(2);
}

async function playSeeds(seeds) {
  const left = [...seeds];
  const failed = [];
  const worker = async () => {
    for (let seed = left.shift(); seed !== undefined; seed = left.shift()) {
      const began = performance.now();
      const { agreed, said } = await playSimulation({ ...env, SIMULATION_SEED: String(seed) }, { stdio: 'pipe' });
      const seconds = Math.round((performance.now() - began) / 1000);
      console.log(`seed ${seed}: ${agreed ? 'agrees' : 'FAILED'} after ${seconds} s`);
      if (agreed) continue;
      failed.push(seed);
      console.log(said);
    }
  };
  await Promise.all(Array.from({ length: processes }, worker));
  console.log(
    failed.length === 0 ? `${seeds.length} seeds agree` : `${failed.length} seeds failed: ${failed.join(', ')}`,
  );
  return failed.length === 0;
}

async function run() {
  if (values.mutations) return playMutations(positionals, env, processes);
  if (values.seeds === undefined) return (await playSimulation(env, { stdio: 'inherit' })).agreed;
  const first = Number(values.seed ?? anySeed());
  return playSeeds(Array.from({ length: Number(values.seeds) }, (_, index) => first + index));
}

process.exit((await run()) ? 0 : 1);
