/** `npm run test:fuzz -- --runs N --seed S`: sends more requests than the test suite does. */
import { spawnSync } from 'node:child_process';
import { parseArgs } from 'node:util';

const { values } = parseArgs({ options: { runs: { type: 'string' }, seed: { type: 'string' } } });
const env = { ...process.env, FUZZ_RUNS: '20000', FUZZ_SEED: String(Math.floor(Math.random() * 2 ** 31)) };
for (const [option, variable] of [
  ['runs', 'FUZZ_RUNS'],
  ['seed', 'FUZZ_SEED'],
]) {
  const value = values[option];
  if (value === undefined) continue;
  if (!/^\d+$/.test(value)) {
    console.error(`--${option} must be a whole number, not ${value}`);
    process.exit(2);
  }
  env[variable] = value;
}
const { status } = spawnSync('vitest', ['run', 'test/fuzz'], { stdio: 'inherit', env });
process.exit(status ?? 1);
