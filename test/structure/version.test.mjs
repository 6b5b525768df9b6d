/** The version is written where it is needed: in the package, in what the queue answers, in the changelog. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';

const read = (path) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const { version } = JSON.parse(read('package.json'));

test('all places name the version of package.json', () => {
  assert.match(version, /^\d+\.\d+\.\d+$/);
  assert.equal(JSON.parse(read('package-lock.json')).version, version);
  assert.equal(/VERSION = '([^']+)'/.exec(read('src/config.ts'))?.[1], version);
  assert.equal(/^## \[([^\]]+)\]/m.exec(read('CHANGELOG.md'))?.[1], version);
});

test('the answers that the documents show come from this version', () => {
  const pages = globSync('docs/**/*.md', { cwd: new URL('../../', import.meta.url) });
  const shown = ['README.md', ...pages].flatMap((path) =>
    [...read(path).matchAll(/"status":"ok","version":"([^"]+)"/g)].map(([, found]) => ({ path, found })),
  );
  assert.ok(shown.length > 0);
  assert.deepEqual(
    shown.filter(({ found }) => found !== version),
    [],
  );
});

test('the page about upgrading names the versions of the schemas', () => {
  const schemas = read('src/durable/schema.ts').matchAll(
    /: SchemaVersion = \{\s*object: '(\w+)[^']*',\s*version: (\d+)/g,
  );
  const page = read('docs/operate/upgrading.md');
  const objects = Array.from(schemas, ([, object, stored]) => {
    assert.ok(page.includes(`| ${object} | ${stored} |`), `${object}: ${stored}`);
    return object;
  });
  assert.deepEqual(objects, ['queue', 'directory', 'workflow', 'lock', 'allowance']);
});
