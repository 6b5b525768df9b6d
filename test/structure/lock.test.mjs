// `npm ci` checks a package against the hash in the lock file. Without a hash it runs whatever the registry sends, on every system.
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';

const root = new URL('../../', import.meta.url);
const locks = globSync(
  '{package-lock.json,{bench,docs,examples,test}/**/package-lock.json,docs/.site/package-lock.json}',
  {
    cwd: root,
    exclude: (path) => path.includes('node_modules'),
  },
);

test('each package in a lock file has a hash, those of other systems too', () => {
  assert.ok(locks.includes('package-lock.json') && locks.includes('docs/.site/package-lock.json'));
  const bare = locks.flatMap((path) =>
    Object.entries(JSON.parse(readFileSync(new URL(path, root), 'utf8')).packages)
      .filter(([at, { link, integrity }]) => at !== '' && !link && !integrity)
      .map(([at]) => `${path}: ${at}`),
  );
  assert.deepEqual(bare, [], 'remove these entries from the lock file, then run: npm install --package-lock-only');
});
