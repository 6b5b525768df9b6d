// What a release publishes, packed from a clean copy of the checkout as the workflow does it, and judged by the tools of its field.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { root } from '../docs/dev.mjs';
import { installTools, ok, run, tool } from './tools.mjs';

const { version, exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const folder = mkdtempSync(join(tmpdir(), 'tocsin-release-'));
const checkout = join(folder, 'checkout');
const released = join(folder, 'released');
const tarball = (name) => join(released, `${name}-${version}.tgz`);

/** The files in a tarball, and one of them. */
const filesIn = (name) =>
  execFileSync('tar', ['-tzf', tarball(name)], { encoding: 'utf8' })
    .trim()
    .split('\n');
const manifestIn = (name) =>
  JSON.parse(execFileSync('tar', ['-xzOf', tarball(name), 'package/package.json'], { encoding: 'utf8' }));

/** What belongs into the packages. */
const BELONGS = {
  tocsin: /^package\/(LICENSE|README\.md|package\.json|docs\/skill\/SKILL\.md|dist\/.+(\.js|\.d\.ts|\/LICENSES\.txt))$/,
  'create-tocsin': /^package\/(LICENSE|LICENSES\.txt|README\.md|package\.json|index\.js)$/,
};

const release = (tag) =>
  run('npm', ['run', 'release', '--', released, tag], {
    cwd: checkout,
    env: { GITHUB_SERVER_URL: 'https://github.com', GITHUB_REPOSITORY: 'acme/tocsin' },
  });

describe('a release', { timeout: 900_000 }, () => {
  before(() => {
    const files = ok('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '--deduplicate'], {
      cwd: root,
    });
    for (const file of files.split('\0').filter((name) => name && existsSync(join(root, name)))) {
      mkdirSync(dirname(join(checkout, file)), { recursive: true });
      cpSync(join(root, file), join(checkout, file));
    }
    symlinkSync(join(root, 'node_modules'), join(checkout, 'node_modules'), 'dir');
    installTools();
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  it('is not packed under a tag of another version', () => {
    const { status, output } = release('v9.9.9');
    assert.equal(status, 2);
    assert.match(output, new RegExp(`The tag is v9\\.9\\.9, but package\\.json has the version ${version}`));
  });

  it('is not packed before the changelog dates it', () => {
    date('unreleased');
    const { status, output } = release(`v${version}`);
    assert.equal(status, 2);
    assert.match(output, /CHANGELOG\.md has no date/);
  });

  it('is packed with its notes from a clean checkout', () => {
    date('2026-12-01');
    const { status, output } = release(`v${version}`);
    assert.equal(status, 0, output);
    const notes = readFileSync(join(released, 'notes.md'), 'utf8');
    assert.match(notes, /^### \w+\n/);
    assert.doesNotMatch(notes, /^## /m);
  });

  for (const [name, belongs] of Object.entries(BELONGS)) {
    it(`has nothing in ${name} that does not belong there, and says where it comes from`, () => {
      assert.deepEqual(
        filesIn(name).filter((file) => !belongs.test(file)),
        [],
      );
      const manifest = manifestIn(name);
      assert.deepEqual([manifest.name, manifest.version, manifest.license], [name, version, 'MIT']);
      assert.deepEqual(
        [manifest.scripts, manifest.devDependencies?.vitest !== undefined],
        [undefined, name === 'tocsin'],
      );
      assert.deepEqual(manifest.repository, { type: 'git', url: 'git+https://github.com/acme/tocsin.git' });
    });

    it(`publishes ${name}, were it not a dry run`, () => {
      const { status, output } = run('npm', ['publish', '--dry-run', tarball(name)]);
      assert.equal(status, 0, output);
      assert.match(output, new RegExp(`total files: ${filesIn(name).length}\\n`));
    });

    it(`gives publint nothing to say about ${name}`, () => {
      assert.match(ok(tool('publint'), ['run', tarball(name), '--strict']), /All good!/);
    });
  }

  it('publishes from the checkout itself, were it not a dry run', () => {
    const { output } = run('npm', ['publish', '--dry-run'], { cwd: checkout });
    assert.match(output, new RegExp(`\\+ tocsin@${version}`));
    const listed = Array.from(output.matchAll(/npm notice [\d.]+k?M?B (\S+)/g), ([, file]) => `package/${file}`);
    assert.ok(listed.length > 100, output);
    assert.deepEqual(
      listed.filter((file) => !BELONGS.tocsin.test(file)),
      [],
    );
  });

  it('has types that every resolution of modules finds, as far as it finds the modules', () => {
    // The packages are ECMAScript modules with export maps: the resolution of Node 10 knows neither.
    const args = [tarball('tocsin'), '--profile', 'esm-only', '--format', 'ascii', '--no-emoji'];
    assert.match(ok(tool('attw'), args), /No problems found|bundler/);
  });

  it('shows no slow type to JSR where it needs no Workers runtime', () => {
    const unpacked = join(folder, 'jsr');
    mkdirSync(unpacked);
    execFileSync('tar', ['-xzf', tarball('tocsin'), '--strip-components=1', '-C', unpacked]);
    // JSR takes declarations by their own names, and each module names its declarations itself.
    const portable = ['./handler', './client', './testing'].map((name) => [name, exports[name]]);
    for (const file of filesIn('tocsin').filter((name) => name.endsWith('.d.ts'))) {
      rewrite(join(folder, file.replace('package/', 'jsr/')), (text) =>
        text.replace(/(\bfrom '|^import '|\bimport\(['"])(\.{1,2}\/[^'"]+)\.js(?=['"])/gm, '$1$2.d.ts'),
      );
    }
    for (const [, { default: module, types }] of portable) {
      const declared = `./${types.split('/').at(-1)}`;
      rewrite(join(unpacked, module), (text) => `/* @ts-self-types="${declared}" */\n${text}`);
    }
    rmSync(join(unpacked, 'package.json'));
    const named = Object.fromEntries(portable.map(([name, entry]) => [name, entry.default]));
    const manifest = { name: '@tocsin/tocsin', version, license: 'MIT', exports: named };
    writeFileSync(join(unpacked, 'jsr.json'), JSON.stringify(manifest));
    const { status, output } = run(tool('deno'), ['publish', '--dry-run', '--allow-dirty'], {
      cwd: unpacked,
      env: { DENO_DIR: join(folder, 'deno'), DENO_NO_UPDATE_CHECK: '1' },
    });
    assert.equal(status, 0, output);
    assert.match(output, /Checking for slow types/);
    assert.doesNotMatch(output, /error\[/);
  });
});

/** Dates this version in the changelog of the copy. */
function date(when) {
  rewrite(join(checkout, 'CHANGELOG.md'), (text) =>
    text.replace(new RegExp(`^(## \\[${version}\\]).*`, 'm'), `$1 - ${when}`),
  );
}

function rewrite(file, change) {
  writeFileSync(file, change(readFileSync(file, 'utf8')));
}
