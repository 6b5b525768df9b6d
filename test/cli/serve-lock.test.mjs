/** One process uses a state folder: whatever was killed before, removed by hand, or called otherwise. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { load } from './cli.mjs';
import { kit } from './serve/kit.mjs';

const { openDoor } = await load('serve/door.ts');
const { occupantOf } = await load('serve/local-socket.ts');

const answer = () => Promise.resolve({ answer: {} });
const inUse = { code: 'in_use' };

describe('the lock of a state folder', () => {
  let folder;
  let path;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'tocsin-lock-'));
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  let folders = 0;
  const newDoor = (...names) => {
    const run = join(folder, String(++folders), ...names);
    mkdirSync(run, { recursive: true });
    path = join(run, 'serve.sock');
  };
  const open = (pid, lost) => openDoor(path, folder, { pid, url: `http://${pid}` }, answer, lost);
  const empty = () => {
    for (const name of readdirSync(join(path, '..'))) rmSync(join(path, '..', name));
  };
  /** Leaves what a killed process leaves: sockets at which no one listens. */
  const leaveDead = () => {
    const names = ['serve.sock', 'lock-AAAA', 'lock-zzzz'];
    const listen = `for (const name of ${JSON.stringify(names)}) require('net').createServer().listen(name);`;
    const { signal } = spawnSync(process.execPath, ['-e', `${listen} process.kill(process.pid, 'SIGKILL')`], {
      cwd: join(path, '..'),
    });
    assert.equal(signal, 'SIGKILL');
  };

  it('is had by one of many that come at the same moment behind a killed one', async () => {
    for (let round = 0; round < 20; round++) {
      newDoor();
      leaveDead();
      const came = await Promise.allSettled([1, 2, 3, 4, 5, 6].map((pid) => open(pid)));
      const [winner, ...more] = came.filter(({ status }) => status === 'fulfilled');
      assert.ok(winner, 'no one has it');
      assert.deepEqual(more, [], 'several have it');
      for (const { reason } of came) assert.ok(!reason || reason.code === 'in_use', reason);
      assert.ok(existsSync(path));
      winner.value.close();
      assert.deepEqual(readdirSync(join(path, '..')), [], 'what was left behind is gone');
    }
  });

  it('stays where its sockets are removed: one is enough, and both come back', async () => {
    newDoor();
    const door = await open(1);
    rmSync(path);
    await assert.rejects(open(2), { ...inUse, message: /in use by process 1, which serves http:\/\/1\.$/ });
    await door.check();
    assert.equal((await occupantOf(path)).pid, 1);
    for (const name of readdirSync(join(path, '..'))) if (name !== 'serve.sock') rmSync(join(path, '..', name));
    await assert.rejects(open(2), inUse);
    empty();
    assert.equal(await door.check(), true);
    await assert.rejects(open(2), inUse);
    door.close();
    (await open(2)).close();
  });

  it('is lost where another one took it after all sockets were removed, and nothing of that one is removed', async () => {
    newDoor();
    const lost = [];
    const first = await open(1, (error) => lost.push(error));
    empty();
    const second = await open(2);
    assert.equal(await first.check(), false);
    assert.match(lost[0].message, /in use by process 2/);
    first.close();
    assert.equal((await occupantOf(path)).pid, 2);
    await assert.rejects(open(3), inUse);
    second.close();
  });

  it('lies in the folder however long its path is', async () => {
    newDoor('a'.repeat(120), 'ä'.repeat(60));
    const cwd = process.cwd();
    const door = await open(1);
    assert.ok(existsSync(path));
    await assert.rejects(open(2), inUse);
    door.close();
    assert.deepEqual([readdirSync(join(path, '..')), process.cwd()], [[], cwd]);
  });
});

describe('tocsin serve', () => {
  let tocsin;
  before(async () => {
    tocsin = await kit();
  });
  after(() => tocsin.close());

  it('keeps its folder where all of run is removed, and no other one ends its workerd', async () => {
    const state = join(tocsin.folder, 'emptied');
    const server = await tocsin.serve(['--state', state]);
    const other = join(tocsin.folder, 'other-name');
    symlinkSync(state, other);
    for (const name of [state, other]) {
      rmSync(join(state, 'run'), { recursive: true });
      const refused = await tocsin.run(['serve', '--port', '0', '--state', name]);
      assert.equal(refused.code, 1);
      assert.match(refused.stderr, new RegExp(`is in use by process ${server.child.pid}`));
    }
    await server.add({ type: 'any.job', args: [] });
    assert.ok(!server.lines.some(({ message }) => message.startsWith('workerd ended')));
    server.child.kill('SIGTERM');
    assert.equal(await server.ended, 0, server.stderr);
  });

  it('serves a folder with a long path, once, whatever TMPDIR is', async () => {
    const state = join(tocsin.folder, 'a'.repeat(60), 'b'.repeat(60));
    mkdirSync(join(state, '..'));
    const server = await tocsin.serve(['--state', state], { env: { TMPDIR: tocsin.folder } });
    const refused = await tocsin.run(['serve', '--port', '0', '--state', state], { env: { TMPDIR: tocsin.project } });
    assert.match(refused.stderr, new RegExp(`is in use by process ${server.child.pid}, which serves `));
    const backup = join(tocsin.folder, 'long-backup');
    const copied = await tocsin.run(['backup', backup, '--state', state]);
    assert.equal(copied.code, 0, copied.stderr);
    server.child.kill('SIGTERM');
    assert.equal(await server.ended, 0, server.stderr);
    assert.ok(server.lines.some(({ message }) => /calls to handlers that run: 0/.test(message)));
  });
});
