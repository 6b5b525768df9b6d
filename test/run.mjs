/**
 * `npm test` runs what a change must pass within five minutes on two cores, `npm run test:all` what takes longer. First the parts
 * that use all cores by themselves, then those that mostly wait for one process or another, two at a time. What these print is
 * shown when they end. Every part runs whatever becomes of the others; what those that failed said last is said again at the end.
 */
import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';

/** Parts are scripts of package.json, with what follows their names. None changes a file that another reads. */
const SUITES = {
  test: { alone: ['structure', 'text', 'unit'], beside: ['cli', 'testing'] },
  // Always the same histories and requests: who wants others names a seed, or none.
  all: {
    // What must see things happen within a second.
    alone: ['browser'],
    beside: [
      'simulation -- --runs 1500 --seed 20261124',
      'fuzz -- --runs 10000 --seed 2',
      'docs',
      'package',
      'crash -- --rounds 3 --seed 20261120',
      'examples',
    ],
  },
};

const suite = SUITES[process.argv[2] ?? 'test'];
if (!suite) {
  console.error(`There is no suite ${process.argv[2]}: ${Object.keys(SUITES).join(', ')}.`);
  process.exit(2);
}

const LANES = Math.min(2, availableParallelism());

const npm = process.env.npm_execpath;
if (!npm) {
  console.error('Run this as npm test.');
  process.exit(2);
}

const times = [];
const failed = [];

/** Bytes of the end of what a part printed: they name the tests that failed, and why. */
const LAST_WORDS = 12_000;

/** Runs one part. @param {boolean} isAlone it may print as it goes */
function run(part, isAlone) {
  const began = performance.now();
  return new Promise((resolve) => {
    // npm as a script, because Windows has it as a batch file, which only a shell runs.
    const child = spawn(process.execPath, [npm, 'run', '--silent', ...`test:${part}`.split(' ')], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...(process.stdout.isTTY && !process.env.NO_COLOR && { FORCE_COLOR: '1' }) },
    });
    const printed = [];
    const print = (chunk) => {
      printed.push(chunk);
      if (isAlone) process.stdout.write(chunk);
    };
    child.stdout.on('data', print);
    child.stderr.on('data', print);
    child.on('error', (error) => print(Buffer.from(`${error}\n`)));
    child.on('close', (code) => {
      const seconds = ((performance.now() - began) / 1000).toFixed(0);
      const said = Buffer.concat(printed);
      if (code !== 0) failed.push({ part, lastWords: said.subarray(-LAST_WORDS) });
      times.push(`${part} ${seconds} s`);
      if (!isAlone) process.stdout.write(said);
      console.log(`\ntest:${part} ${code === 0 ? 'passed' : 'FAILED'} in ${seconds} s\n`);
      resolve();
    });
  });
}

for (const part of suite.alone) await run(part, true);

const left = [...suite.beside];
const lane = async () => {
  for (let part = left.shift(); part !== undefined; part = left.shift()) await run(part, LANES === 1);
};
await Promise.all(Array.from({ length: LANES }, lane));

for (const { part, lastWords } of failed) console.log(`\ntest:${part} ended with\n\n${lastWords}`);
console.log(times.join(', '));
if (failed.length > 0) {
  console.error(`Failed: ${failed.map(({ part }) => `test:${part}`).join(', ')}`);
  process.exitCode = 1;
}
