// What a reader copies must run with the wrangler that npm installs for them: on Node 20 that is 4.86.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';
import { root } from './dev.mjs';
import { documents } from './snippets.mjs';

/** The newest compatibility date that wrangler 4.86 knows. A newer one does not start there. */
const NEWEST = '2026-05-03';

it('no configuration and no document names a compatibility date that wrangler 4.86 does not know', () => {
  const examples = readdirSync(join(root, 'examples'), { recursive: true })
    .filter((path) => /\.(toml|jsonc?)$/.test(path))
    .map((path) => join('examples', path));
  const found = ['wrangler.toml', ...examples, ...documents()].flatMap((path) =>
    [...readFileSync(join(root, path), 'utf8').matchAll(/compatibility_date"?\s*[=:]\s*"([^"]+)"/g)].map(
      ([, date]) => ({ path, date }),
    ),
  );
  assert.ok(found.length > 5, 'the dates must be found');
  assert.deepEqual(
    found.filter(({ date }) => date > NEWEST),
    [],
  );
});
