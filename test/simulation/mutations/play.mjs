/** Puts known defects back, one at a time, and plays histories until one meets it. */
import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative, sep } from 'node:path';
import { ROOT, runTest } from '../vitest.mjs';
import { playHistories } from '../workerd.mjs';
import { mutated, readMutations } from './list.mjs';

/** What a copy does without. The documents are there: tests read the description of the API. */
const LEFT_OUT = new Set(['node_modules', '.git', '.wrangler', 'bench', 'dist']);

/** The sources as they are: what finds a defect in them would say nothing of the others. */
const UNCHANGED = { name: 'nothing is put back', edits: [] };

/** How a test says that it has seen something wrong, or waited in vain for what is right. */
const OBSERVED = /AssertionError|Error: waited \d+ ms/;

/** Runs a file of tests in a copy of the project. @param texts of its sources, by file */
async function playTest(test, texts) {
  const root = mkdtempSync(join(tmpdir(), 'simulation-'));
  try {
    const filter = (path) => !LEFT_OUT.has(relative(ROOT, path).split(sep)[0]);
    cpSync(ROOT, root, { recursive: true, filter });
    symlinkSync(join(ROOT, 'node_modules'), join(root, 'node_modules'));
    for (const [file, text] of texts) writeFileSync(join(root, file), text);
    const { agreed, said } = await runTest(test, root);
    if (agreed) return { caught: false };
    return OBSERVED.test(said) ? { caught: true, found: `found by ${test}` } : { error: said };
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

async function playOne(mutation, order) {
  const texts = mutated(mutation, ROOT);
  if (mutation.test) return playTest(mutation.test, texts);
  const { agreed, said } = await playHistories({ ...order, shrinks: false, trees: mutation.trees === true }, texts);
  if (agreed) return { caught: false };
  // A history that is given is the only one.
  const [, after = 1, why] = /(?:after (\d+) histories|the history): (.*)/.exec(said) ?? [];
  return why === undefined ? { error: said } : { caught: true, found: `found after ${after} histories: ${why}` };
}

/**
 * @param names which: see `readMutations`
 * @param order what to play, `runs` histories at most for each, all from one seed
 * @param processes so many at once
 * @returns whether all were caught, and nothing was in the sources as they are
 */
export async function playMutations(names, order, processes) {
  const all = readMutations(names);
  // An edit that fits no longer is better known before an hour of playing than after.
  for (const mutation of all) mutated(mutation, ROOT);
  const left = [UNCHANGED, ...all];
  let missed = 0;
  console.log(`${all.length} defects, seed ${order.seed}`);
  const worker = async () => {
    for (let mutation = left.shift(); mutation; mutation = left.shift()) {
      const { caught, found, error } = await playOne(mutation, order);
      const isRight = error === undefined && caught === (mutation !== UNCHANGED);
      if (!isRight) missed++;
      console.log(`${isRight ? '✓' : '✗'} ${mutation.name}\n    ${error ?? found ?? 'not found'}`);
    }
  };
  await Promise.all(Array.from({ length: Math.min(processes, left.length) }, worker));
  console.log(missed === 0 ? 'all were found' : `${missed} of ${all.length} were not found, or failed`);
  return missed === 0;
}
