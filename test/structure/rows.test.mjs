/** Rows that hold many things: each table has one writer, which parts them by one function, by their size. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const SRC = fileURLToPath(new URL('../../src/', import.meta.url));

/** Who writes these tables, and where the things of a row are parted: a row holds 2 MB. */
const COLLECTED = {
  blocks: { writers: ['queue/store/block-table.ts'], parted: 'queue/store/block.ts' },
  due_blocks: { writers: ['queue/store/blocks.ts'], parted: 'queue/store/block.ts' },
  retry_blocks: { writers: ['queue/store/retry-blocks.ts'], parted: 'queue/store/retry-text.ts' },
  // The others take jobs out of a row, or void the text of one that is over.
  archive: {
    writers: ['queue/store/archive-buffer.ts', 'queue/store/archive.ts'],
    parted: 'queue/store/archive-buffer.ts',
  },
  leases: { writers: ['queue/store/leases.ts', 'queue/store/singles.ts'], parted: 'queue/store/leases.ts' },
  group_starts: { writers: ['queue/store/groups/starts.ts'], parted: 'queue/store/groups/starts.ts' },
  // A row holds one result, of at most 1 MiB.
  step_values: { writers: ['queue/store/checkpoints.ts'] },
  parts: { writers: ['workflow/store.ts'], parted: 'workflow/store.ts' },
};

/** Files that add to a stored list where it lies. Both ask first how long it is. */
const JOINING = ['queue/store/archive-buffer.ts', 'queue/store/block-table.ts'];

const texts = readdirSync(SRC, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
  .map((entry) => join(entry.parentPath, entry.name))
  .map((path) => [relative(SRC, path), readFileSync(path, 'utf8')])
  .sort(([a], [b]) => (a < b ? -1 : 1));

const filesWith = (pattern) => texts.filter(([, text]) => pattern.test(text)).map(([file]) => file);

for (const [table, { writers, parted }] of Object.entries(COLLECTED)) {
  test(`rows of ${table} are written in one place, and their things are parted by their size`, () => {
    // The class of blocks names its table in a variable.
    const name = table === 'blocks' ? '(blocks|\\$\\{this\\.table\\})' : table;
    const writes = new RegExp(`\\b(INTO|UPDATE)\\s+${name}\\s|\\bput\\([^,]*,\\s*'${table}'`);
    assert.deepEqual(filesWith(writes), writers);
    if (!parted) return;
    const [, text] = texts.find(([file]) => file === parted) ?? [];
    assert.match(text ?? '', /\bgrouped\(/, `${parted} parts what a row holds with \`grouped\` of job/size.ts`);
  });
}

test('only two files add to a list where it is stored', () => {
  assert.deepEqual(filesWith(/substr\(\w+, 1, length\(\w+\) - 1\)/), JOINING);
});

test('shares of batches, and decisions about them, are written in one place, which measures them', () => {
  const writer = 'queue/store/batches.ts';
  assert.deepEqual(filesWith(/\bpost\(\s*(?:\w+, )?(SHARE|DECISION)\b/), [writer]);
  assert.deepEqual(filesWith(/\bpost\(\s*(SHARE|DECISION)\b/), []);
  const [, text] = texts.find(([file]) => file === writer) ?? [];
  assert.match(text ?? '', /bytesOf\(text\)/);
});
