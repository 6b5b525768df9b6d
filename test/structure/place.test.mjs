/** All objects lie in the deployment's place: one function of `src` makes objects of names. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const SRC = fileURLToPath(new URL('../../src/', import.meta.url));
const MAKES = /\.(?:getByName|idFromName|idFromString|newUniqueId|jurisdiction)\(/g;

test('only rpc/stubs.ts makes objects of names, at one place each, and the testing kit', () => {
  const found = globSync('**/*.{ts,tsx}', { cwd: SRC }).flatMap((path) => {
    const calls = readFileSync(`${SRC}${path}`, 'utf8').match(MAKES) ?? [];
    return calls.map((call) => `${path} ${call}`);
  });
  assert.deepEqual(found.filter((call) => !call.startsWith('testing/')).sort(), [
    'rpc/stubs.ts .getByName(',
    'rpc/stubs.ts .jurisdiction(',
  ]);
});
