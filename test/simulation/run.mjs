/**
 * Plays more histories than the test suite does:
 *
 *     npm run test:simulation -- --runs N --seed S --steps L
 *     npm run test:simulation -- --runs N --seed S --seeds K     K seeds, from S on (absent: from a random one), a process for each core
 *     npm run test:simulation -- --history file.json             one history: { "start": ms, "steps": [...] }
 */
import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';

const NUMBERS = { runs: 'SIMULATION_RUNS', seed: 'SIMULATION_SEED', steps: 'SIMULATION_STEPS', seeds: '' };

const options = Object.fromEntries([...Object.keys(NUMBERS), 'history'].map((name) => [name, { type: 'string' }]));
const { values } = parseArgs({ options });
const env = { ...process.env };
for (const [option, variable] of Object.entries(NUMBERS)) {
  const value = values[option];
  if (value === undefined) continue;
  if (!/^-?\d+$/.test(value)) {
    console.error(`--${option} must be a whole number, not ${value}`);
    process.exit(2);
  }
  if (variable) env[variable] = value;
}
if (values.history) env.SIMULATION_HISTORY = values.history;

/** Plays in a process of its own. @returns whether all agreed, and what it said unless it said so itself */
function play(extra, stdio) {
  return new Promise((resolve) => {
    const vitest = spawn('vitest', ['run', 'test/simulation', '--maxWorkers=1'], { stdio, env: { ...env, ...extra } });
    let said = '';
    for (const stream of [vitest.stdout, vitest.stderr]) stream?.on('data', (data) => (said += data));
    vitest.on('error', (error) => resolve({ agreed: false, said: String(error) }));
    vitest.on('close', (status) => resolve({ agreed: status === 0, said }));
  });
}

async function playSeeds(seeds) {
  const left = [...seeds];
  const failed = [];
  const worker = async () => {
    for (let seed = left.shift(); seed !== undefined; seed = left.shift()) {
      const began = performance.now();
      const { agreed, said } = await play({ SIMULATION_SEED: String(seed) }, 'pipe');
      const seconds = Math.round((performance.now() - began) / 1000);
      console.log(`seed ${seed}: ${agreed ? 'agrees' : 'FAILED'} after ${seconds} s`);
      if (agreed) continue;
      failed.push(seed);
      console.log(said);
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, worker));
  console.log(
    failed.length === 0 ? `${seeds.length} seeds agree` : `${failed.length} seeds failed: ${failed.join(', ')}`,
  );
  return failed.length === 0;
}

if (values.seeds === undefined) {
  process.exit((await play({}, 'inherit')).agreed ? 0 : 1);
} else {
  const first = Number(values.seed ?? Math.floor(Math.random() * 2 ** 30));
  const seeds = Array.from({ length: Number(values.seeds) }, (_, index) => first + index);
  process.exit((await playSeeds(seeds)) ? 0 : 1);
}
