/**
 * `npm test` runs what a change must pass within five minutes on two cores, `npm run test:all` what takes longer. First the parts
 * that nothing may slow down, or that others wait for, then the rest, two at a time, the longest first: most of them wait for a
 * process, a timer or a single core now and then, and another one uses what they leave. The part that began first prints as it
 * goes, and what the others print follows when it has ended. Every part runs whatever becomes of the others; what those that failed
 * printed last is shown again at the end.
 */
import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';

/** Parts are scripts of package.json, with what follows their names. None changes a file that another reads. */
const SUITES = {
  test: { alone: ['structure', 'text'], beside: ['unit'] },
  // Always the same histories and requests: who wants others names a seed, or none.
  all: {
    // What must see things happen within a second.
    alone: ['browser'],
    beside: [
      'long',
      'cli',
      'isolated',
      'testing',
      'simulation -- --runs 1000 --seed 20261124',
      'fuzz -- --runs 10000 --seed 2',
      'docs',
      'package',
      'crash -- --rounds 3 --seed 20261120',
      'crash -- --rounds 2 --seed 20261126 --server serve',
      'examples',
      'migrate',
      'bench',
      'cluster -- --events kill,cut,roll',
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

/** What the parts that run, and those that ended meanwhile, have still to print; the first is the one that prints as it goes. */
const printing = [];

function print(output, text) {
  if (output === printing[0]) process.stdout.write(text);
  else output.held.push(text);
}

/** The next part prints once the first has ended. */
function end(output) {
  output.hasEnded = true;
  while (printing[0]?.hasEnded) {
    printing.shift();
    for (const text of printing[0]?.held.splice(0) ?? []) process.stdout.write(text);
  }
}

/** What npm itself runs on, which may be older than the project's own Node: tests run the command line with it. */
const NODE = process.env.npm_node_execpath;

/** Runs one part. */
function run(part) {
  const began = performance.now();
  const output = { held: [], hasEnded: false };
  printing.push(output);
  return new Promise((resolve) => {
    // npm as a script, because Windows has it as a batch file, which only a shell runs.
    const child = spawn(process.execPath, [npm, 'run', '--silent', ...`test:${part}`.split(' ')], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        ...process.env,
        TEST_NODE: NODE,
        ...(process.stdout.isTTY && !process.env.NO_COLOR && { FORCE_COLOR: '1' }),
      },
    });
    const printed = [];
    const take = (chunk) => {
      printed.push(chunk);
      print(output, chunk);
    };
    child.stdout.on('data', take);
    child.stderr.on('data', take);
    child.on('error', (error) => take(Buffer.from(`${error}\n`)));
    child.on('close', (code) => {
      const seconds = ((performance.now() - began) / 1000).toFixed(0);
      if (code !== 0) failed.push({ part, lastWords: Buffer.concat(printed).subarray(-LAST_WORDS) });
      times.push(`${part} ${seconds} s`);
      print(output, `\ntest:${part} ${code === 0 ? 'passed' : 'FAILED'} in ${seconds} s\n\n`);
      end(output);
      resolve();
    });
  });
}

const beganAll = performance.now();
for (const part of suite.alone) await run(part);

const left = [...suite.beside];
const lane = async () => {
  for (let part = left.shift(); part !== undefined; part = left.shift()) await run(part);
};
await Promise.all(Array.from({ length: LANES }, lane));

for (const { part, lastWords } of failed) console.log(`\ntest:${part} ended with\n\n${lastWords}`);
console.log(`${times.join(', ')}; ${((performance.now() - beganAll) / 1000).toFixed(0)} s in all`);
if (failed.length > 0) {
  console.error(`Failed: ${failed.map(({ part }) => `test:${part}`).join(', ')}`);
  process.exitCode = 1;
}
