/** A cursor that is left before its end holds the write-ahead log, until it is collected: `rowsUntil` reads in parts instead. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const SRC = fileURLToPath(new URL('../../src/', import.meta.url));

const CURSOR = String.raw`(?:readRows\(|\bsql\b[\w.]*\s*\.exec\b)`;
const LOOP = new RegExp(String.raw`^(\s*)(?:for \(.* of .*${CURSOR}|.*yield\* .*${CURSOR})`);
const HANDED = new RegExp(String.raw`(?:const \[.*\] =|return) [\w.]*${CURSOR}(?!.*(?:toArray|one)\()`);
const LEAVES = /\b(?:break|return|yield)\b/;

/** Who leaves a cursor, or hands it on, in how many places. */
const MAY = {
  // Read to its end.
  'queue/store/job-store.ts': 1,
  // Its readers are looked at here.
  'queue/store/own-rows.ts': 1,
  // After 4 MiB of bodies, in one claim and read ahead: others may be as large.
  'queue/store/ranks.ts': 1,
  'queue/store/row-lookup.ts': 1,
};

/** Lines that leave a cursor. */
function left(text) {
  const lines = text.split('\n');
  return lines.flatMap((line, at) => {
    if (HANDED.test(line)) return [line.trim()];
    const [, indent] = LOOP.exec(line) ?? [];
    if (indent === undefined) return [];
    // The head of a loop may have several lines; one without a block ends with a semicolon.
    const body = lines.findIndex((one, below) => below >= at && /[{;]$/.test(one));
    const end = lines.findIndex((one, below) => below > body && one.startsWith(`${indent}}`));
    const whole = lines[body].endsWith('{') ? lines.slice(at, end) : lines.slice(at, body + 1);
    return whole.some((one) => LEAVES.test(one)) ? [line.trim()] : [];
  });
}

test('no cursor of the storage is left before its end', () => {
  const files = readdirSync(SRC, { recursive: true }).filter((name) => name.endsWith('.ts'));
  const counts = files.map((file) => [file, left(readFileSync(join(SRC, file), 'utf8')).length]);
  assert.deepEqual(Object.fromEntries(counts.filter(([, count]) => count > 0)), MAY);
});

test('one that is left would be found', () => {
  const loop = 'for (const { a } of q.store.sql.exec<A>(text)) {\n  if (a) break;\n}';
  const long = 'for (const a of sql.exec<A>(\n  text,\n)) {\n  if (a) return a;\n}';
  const handed = 'return this.sql.exec<A>(query, kind);';
  for (const text of [loop, long, handed, 'const [row] = readRows(sql, text, key);', 'yield* sql.exec(text);']) {
    assert.equal(left(text).length, 1, text);
  }
  for (const text of [loop.replace('break', 'found.push(a)'), 'const [row] = [...readRows(sql, text)];']) {
    assert.deepEqual(left(text), [], text);
  }
});
