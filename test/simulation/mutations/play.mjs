/** Puts known defects back into a copy of the project, one at a time, and plays histories until one meets it. */
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative, sep } from 'node:path';
import { playSimulation, ROOT } from '../vitest.mjs';
import { mutated, readMutations } from './list.mjs';

/** What a copy does without. The documents are there: tests read the description of the API. */
const LEFT_OUT = new Set(['node_modules', '.git', '.wrangler', 'bench', 'dist']);

/** The sources as they are: what finds a defect in them would say nothing of the others. */
const UNCHANGED = { name: 'nothing is put back', edits: [] };

/** How a test says that it has seen something wrong, or waited in vain for what is right. */
const OBSERVED = /AssertionError|Error: waited \d+ ms/;

const COLOURS = new RegExp(`${String.fromCharCode(27)}\\[[0-9;]*m`, 'g');

/** @returns the folder of a copy */
function copyProject() {
  const root = mkdtempSync(join(tmpdir(), 'simulation-'));
  const filter = (path) => !LEFT_OUT.has(relative(ROOT, path).split(sep)[0]);
  cpSync(ROOT, root, { recursive: true, filter });
  symlinkSync(join(ROOT, 'node_modules'), join(root, 'node_modules'));
  return root;
}

async function playOne(mutation, root, env) {
  const texts = mutated(mutation, root);
  const originals = Array.from(texts.keys(), (file) => [file, readFileSync(join(root, file), 'utf8')]);
  for (const [file, text] of texts) writeFileSync(join(root, file), text);
  try {
    const { test } = mutation;
    const { agreed, said } = await playSimulation({ ...env, SIMULATION_SHRINK: 'no' }, { stdio: 'pipe', root, test });
    if (agreed) return { caught: false };
    if (test && OBSERVED.test(said)) return { caught: true, by: test };
    // A history that is given is the only one.
    const [, after = 1, why] = /(?:after (\d+) histories|the history): (.*)/.exec(said.replaceAll(COLOURS, '')) ?? [];
    return why === undefined ? { error: said } : { caught: true, after, why };
  } finally {
    for (const [file, text] of originals) writeFileSync(join(root, file), text);
  }
}

/**
 * @param names which: see `readMutations`
 * @param env what to play: `SIMULATION_RUNS` histories at most for each, all from one seed
 * @param processes so many at once
 * @returns whether all were caught, and nothing was in the sources as they are
 */
export async function playMutations(names, env, processes) {
  const seed = env.SIMULATION_SEED ?? String(Math.floor(Math.random() * 2 ** 30));
  const all = readMutations(names);
  // An edit that fits no longer is better known before an hour of playing than after.
  for (const mutation of all) mutated(mutation, ROOT);
  const left = [UNCHANGED, ...all];
  let missed = 0;
  console.log(`${all.length} defects, seed ${seed}`);
  const worker = async () => {
    const root = copyProject();
    try {
      for (let mutation = left.shift(); mutation; mutation = left.shift()) {
        const { caught, by, after, why, error } = await playOne(mutation, root, { ...env, SIMULATION_SEED: seed });
        const isRight = error === undefined && caught === (mutation !== UNCHANGED);
        if (!isRight) missed++;
        const found = by ? `found by ${by}` : `found after ${after} histories: ${why}`;
        const outcome = error ?? (caught ? found : 'not found');
        console.log(`${isRight ? '✓' : '✗'} ${mutation.name}\n    ${outcome}`);
      }
    } finally {
      rmSync(root, { recursive: true, force: true });
    }
  };
  await Promise.all(Array.from({ length: Math.min(processes, left.length) }, worker));
  console.log(missed === 0 ? 'all were found' : `${missed} of ${all.length} were not found, or failed`);
  return missed === 0;
}
