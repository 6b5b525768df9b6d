// What the program writes: for its user alone, harmless to a terminal, and never silently incomplete.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, openSync, readFileSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { cli, load, tocsin } from './cli.mjs';

const { Log, print, jsonText, facts, PartWriter } = await load(
  ...['serve/log.ts', 'command.ts', 'output.ts', '../export/file.ts'],
);

/** Steers a terminal, and forges a line. */
const EVIL = 'user \u001b]0;title\u0007\u001b[2J\u009b31m\u202e\n12:00:00.000 info  serve   ended';
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
const STEERING = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/;

describe('text of others', () => {
  const printed = (json, value, text) => {
    let out = '';
    const terminal = { out: (piece) => (out += piece), warnings: [] };
    print(terminal, json, value, () => text);
    return out;
  };

  it('steers no terminal, as text or as JSON', () => {
    assert.doesNotMatch(printed(false, {}, EVIL), STEERING);
    const json = printed(true, { job: { args: [EVIL] } }, '');
    assert.doesNotMatch(json, STEERING);
    assert.equal(JSON.parse(json).job.args[0], EVIL);
    assert.equal(JSON.parse(jsonText(EVIL)), EVIL);
  });

  it('is one line of the log', () => {
    for (const pretty of [true, false]) {
      let out = '';
      const log = new Log(
        (text) => (out += text),
        () => 0,
        pretty,
        false,
      );
      log.reader()(`${JSON.stringify({ timestamp: 1, level: 'info', message: EVIL })}\n\u001b[2Jplain\n`);
      assert.doesNotMatch(out, STEERING);
      assert.equal(out.trimEnd().split('\n').length, 2);
    }
  });

  it('does not pass for a fact', () => {
    assert.equal(
      facts([
        ['id', '1'],
        ['result', 'a\nstate  completed'],
      ]),
      'id      1\nresult  a\n        state  completed',
    );
  });
});

describe('output', { timeout: 900_000 }, () => {
  let folder;
  let server;
  let env;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'tocsin-written-'));
    const writer = new PartWriter({ tocsin: 'export', version: 1, queue: 'mail', ended: false });
    const line = JSON.stringify({ settings: { mode: 'active', config: {}, note: 'x'.repeat(10_000) } });
    const text = `${writer.begin()}${await writer.add(line)}${await writer.end({}, {})}`;
    server = createServer((_, response) => response.setHeader('Content-Type', 'application/x-ndjson').end(text));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    env = { TOCSIN_URL: `http://127.0.0.1:${server.address().port}` };
  });
  after(() => {
    server.close();
    rmSync(folder, { recursive: true, force: true });
  });

  it('of an export is a file that only its user may read', async () => {
    const file = join(folder, 'mail.ndjson');
    const { code, stderr } = await tocsin(['export', 'mail', '-o', file], { env });
    assert.equal(code, 0, stderr);
    assert.equal(statSync(file).mode & 0o777, 0o600);
    assert.match(readFileSync(file, 'utf8'), /"end":true/);
  });

  const lacks = existsSync('/dev/full') ? false : 'this system has no /dev/full';

  it('that finds no room ends the program, which says so', { skip: lacks }, async () => {
    for (const args of [['--help'], ['export', 'mail'], ['serve', '--help']]) {
      const stdio = ['ignore', openSync('/dev/full', 'w'), 'pipe'];
      const child = spawn(process.execPath, [await cli(), ...args], {
        env: { ...process.env, CI: 'true', ...env },
        stdio,
      });
      let stderr = '';
      child.stderr.on('data', (piece) => (stderr += piece));
      const [code] = await once(child, 'close');
      assert.equal(code, 1, args.join(' '));
      assert.match(stderr, /^tocsin: The output cannot be written: the disk is full\./);
    }
    const silent = spawn(process.execPath, [await cli(), 'nonsense'], {
      stdio: ['ignore', 'ignore', openSync('/dev/full', 'w')],
    });
    assert.notEqual((await once(silent, 'close'))[0], 0);
  });

  it('into a file that finds no room names the file', { skip: lacks }, async () => {
    const { code, stderr } = await tocsin(['export', 'mail', '-o', '/dev/full'], { env });
    assert.equal(code, 1);
    assert.match(stderr, /^tocsin: \/dev\/full cannot be written: the disk is full\.\n→ Free some space/);
    assert.ok(statSync('/dev/full').isCharacterDevice(), 'a device is not replaced by a file');
  });

  it('ends quietly when its reader has seen enough', async () => {
    const command = `"${process.execPath}" "${await cli()}" export mail | head -c 1`;
    const ended = await new Promise((resolve) => {
      execFile(
        'bash',
        ['-c', `set -o pipefail; ${command}`],
        { env: { ...process.env, CI: 'true', ...env } },
        (error, stdout, stderr) => resolve({ code: error?.code ?? 0, stdout, stderr }),
      );
    });
    assert.deepEqual(ended, { code: 0, stdout: '{', stderr: '' });
  });
});
