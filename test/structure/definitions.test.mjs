// One name, one thing: who reads the name of a type knows which one is meant.
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';
import { root } from '../docs/dev.mjs';

/** The API has its types in each direction: on the wire, over RPC, and as the libraries for clients name them. */
const API = new Set(['client', 'contract', 'producer', 'rpc']);

/** Rooms in which different things may have one name. */
const MOST = 2;

/** The side that a file belongs to. */
function sideOf(path) {
  const [, room] = path.split('/');
  return API.has(room) ? 'the API' : room;
}

it('the name of an exported type means at most two different things', () => {
  const sides = new Map();
  const modules = globSync('src/**/*.{ts,tsx}', { cwd: root }).filter((path) => !path.endsWith('.d.ts'));
  for (const path of modules) {
    const text = readFileSync(join(root, path), 'utf8');
    for (const [, name] of text.matchAll(/^export (?:abstract )?(?:class|interface|type|enum) (\w+)/gm)) {
      if (!sides.has(name)) sides.set(name, new Set());
      sides.get(name).add(sideOf(path));
    }
  }
  const ambiguous = [...sides].filter(([, found]) => found.size > MOST);
  assert.deepEqual(
    ambiguous.map(([name, found]) => `${name}: ${[...found].sort().join(', ')}`),
    [],
  );
});
