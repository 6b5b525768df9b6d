// Backups of a state folder that no one serves: all of it, for its user alone, and nothing outside of the new folder.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { load } from './cli.mjs';

const { backUp, restore, openFolder } = await load('serve/backup.ts', 'serve/folder.ts');

const folder = mkdtempSync(join(tmpdir(), 'tocsin-backup-'));
after(() => rmSync(folder, { recursive: true, force: true }));

let made = 0;
const fresh = () => join(folder, String(made++));

/** A state folder with two databases, one of them in a folder below. */
function state() {
  const { path, objects } = openFolder(fresh());
  mkdirSync(join(objects, 'QueueObject'));
  for (const name of ['a.sqlite', 'QueueObject/b.sqlite']) {
    writeFileSync(join(objects, name), name);
    chmodSync(join(objects, name), 0o644);
  }
  return { path, objects };
}

const back = (path, target = fresh()) => backUp(path, target, Date.now);
const modeOf = (path) => statSync(path).mode & 0o777;

/** A backup with one file, described as its list says. */
function hostile(files) {
  const backup = fresh();
  mkdirSync(join(backup, 'objects'), { recursive: true });
  writeFileSync(join(backup, 'objects', 'a'), 'x');
  writeFileSync(
    join(backup, 'backup.json'),
    typeof files === 'string' ? files : JSON.stringify({ format: 1, tocsin: '0.2.0', files }),
  );
  return backup;
}

describe('a backup', () => {
  it('has what links lead to, and so has the folder that is restored from it', async () => {
    const { path, objects } = state();
    const disk = fresh();
    mkdirSync(disk);
    writeFileSync(join(disk, 'c.sqlite'), 'c');
    symlinkSync(disk, join(objects, 'Other'));
    symlinkSync(join(disk, 'c.sqlite'), join(objects, 'd.sqlite'));
    const { folder: backup, files } = await back(path);
    assert.equal(files, 4);
    const restored = fresh();
    await restore(backup, restored);
    const read = (name) => readFileSync(join(restored, 'objects', name), 'utf8');
    assert.deepEqual(['a.sqlite', 'QueueObject/b.sqlite', 'Other/c.sqlite', 'd.sqlite'].map(read), [
      'a.sqlite',
      'QueueObject/b.sqlite',
      'c',
      'c',
    ]);
  });

  it('can be read by its user alone, also when it was restored', async () => {
    const { folder: backup } = await back(state().path);
    const restored = fresh();
    await restore(backup, restored);
    for (const at of [backup, restored]) {
      assert.deepEqual([at, join(at, 'objects'), join(at, 'objects/QueueObject')].map(modeOf), [0o700, 0o700, 0o700]);
      assert.deepEqual(
        [modeOf(join(at, 'objects/a.sqlite')), modeOf(join(at, 'objects/QueueObject/b.sqlite'))],
        [0o600, 0o600],
      );
    }
    assert.equal(modeOf(join(backup, 'backup.json')), 0o600);
  });

  it('is not made among what it copies', async () => {
    const { path, objects } = state();
    for (const target of [objects, join(objects, 'below'), join(path, 'run', 'below')]) {
      await assert.rejects(back(path, target), /is not empty|is in the state folder itself/);
      assert.ok(target === objects || !existsSync(target));
    }
  });

  it('is refused where it would not be whole', async () => {
    const lost = state();
    symlinkSync('/nowhere/at/all', join(lost.objects, 'Gone'));
    const circle = state();
    symlinkSync(circle.objects, join(circle.objects, 'Circle'));
    for (const [{ path }, message] of [
      [lost, /Gone cannot be read \(ENOENT\): the backup would not be whole/],
      [circle, /Circle is a link to a folder that it is in/],
    ]) {
      const target = fresh();
      await assert.rejects(back(path, target), message);
      assert.ok(!existsSync(target));
    }
  });
});

describe('a state folder', () => {
  it('is refused where its tocsin.json is not what serve writes', () => {
    for (const text of ['', 'null', '[]', '{"format":1,"schemas":{"QueueObject":"9"}}']) {
      const path = fresh();
      mkdirSync(path);
      writeFileSync(join(path, 'tocsin.json'), text);
      assert.throws(() => openFolder(path), /tocsin\.json cannot be read\./);
    }
  });

  it('is refused where none can be made', async () => {
    const { path } = state();
    const file = join(path, 'tocsin.json');
    symlinkSync(join(path, 'nowhere'), join(path, 'link'));
    for (const no of [join(file, 'below'), join(path, 'link')]) {
      assert.throws(() => openFolder(no), /^Error: The folder .* cannot be created: /);
    }
  });
});

describe('what is restored', () => {
  const described = (path) => ({ [path]: [1, createHash('sha256').update('x').digest('hex')] });

  for (const path of ['../../a', '/etc/a', 'a/../../a', './a', 'a//b', '', '..', 'C:\\a', '..\\a', 'a\0']) {
    it(`stays in its folder: ${JSON.stringify(path)} is refused`, async () => {
      const target = fresh();
      await assert.rejects(
        restore(hostile(described(path)), target),
        /backup\.json lists .* not a path inside of a backup/,
      );
      assert.ok(!existsSync(target));
    });
  }

  it('is described by a list', async () => {
    for (const files of [
      'garbage',
      '[]',
      'null',
      '{"format":1}',
      '{"format":1,"files":[]}',
      '{"format":1,"files":{"a":7}}',
      '{"format":9,"files":{}}',
      '{"format":1,"files":{},"schemas":null}',
      '{"format":1,"files":{},"schemas":[1]}',
      '{"format":1,"files":{},"schemas":{"QueueObject":"9"}}',
    ]) {
      const target = fresh();
      await assert.rejects(restore(hostile(files), target), /backup\.json .*/);
      assert.ok(!existsSync(target));
    }
    assert.equal((await restore(hostile(described('a')), fresh())).files, 1);
  });
});
