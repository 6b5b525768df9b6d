/** `npm run test:simulation -- --runs N --seed S --steps L`: plays more histories than the test suite does. */
import { spawnSync } from 'node:child_process';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: { runs: { type: 'string' }, seed: { type: 'string' }, steps: { type: 'string' } },
});
const env = { ...process.env };
for (const [option, variable] of [
  ['runs', 'SIMULATION_RUNS'],
  ['seed', 'SIMULATION_SEED'],
  ['steps', 'SIMULATION_STEPS'],
]) {
  const value = values[option];
  if (value === undefined) continue;
  if (!/^-?\d+$/.test(value)) {
    console.error(`--${option} must be a whole number, not ${value}`);
    process.exit(2);
  }
  env[variable] = value;
}
const { status } = spawnSync('vitest', ['run', 'test/simulation'], { stdio: 'inherit', env });
process.exit(status ?? 1);
