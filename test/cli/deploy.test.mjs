// `tocsin deploy` and `tocsin apply`, with a wrangler that deploys nowhere and a queue that says what it was asked.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import { load, tocsin } from './cli.mjs';

/** Says what it is called with, and where it has deployed to. */
const WRANGLER = `
import { writeFileSync } from 'node:fs';
console.log('wrangler', process.argv.slice(2).join(' '));
const { WRANGLER_OUTPUT_FILE_PATH: file, TARGETS = '[]', EXIT = '0' } = process.env;
const lines = ['{"type":"wrangler-session"}', JSON.stringify({ type: 'deploy', targets: JSON.parse(TARGETS) })];
writeFileSync(file, lines.join('\\n') + '\\n');
process.exit(Number(EXIT));
`;

const KEY = 'secret';

let folder;
let server;
let url;
let asked;
/** What the queue answers to the next requests to put it into effect. */
let answers;

const deployment = (change = {}) => ({
  ...{ version: '0.2.0', digest: 'd', in_effect: true, applied_at: new Date().toISOString() },
  ...{ handlers: [], queues: [], queues_total: 0, limits: [] },
  crons: [{ name: 'nightly', state: 'declared', enabled: true }],
  ...change,
});

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'tocsin-deploy-'));
  const wrangler = join(folder, 'node_modules/wrangler');
  mkdirSync(wrangler, { recursive: true });
  writeFileSync(join(wrangler, 'package.json'), JSON.stringify({ version: '4.0.0', bin: './run.mjs' }));
  writeFileSync(join(wrangler, 'run.mjs'), WRANGLER);
  server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url} ${request.headers.authorization ?? 'without key'}`);
    const isOpen = request.url === '/ojs/v1/health';
    const isKnown = isOpen || request.headers.authorization === `Bearer ${KEY}`;
    const [status, body] = isKnown
      ? (answers.shift() ?? [200, deployment()])
      : [401, { error: { code: 'unauthorized', message: 'no' } }];
    response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${server.address().port}`;
});
after(() => {
  server.close();
  rmSync(folder, { recursive: true, force: true });
});
beforeEach(() => {
  asked = [];
  answers = [];
});

const run = (args, env = {}) => tocsin(args, { cwd: folder, env });
const deploy = (args = [], env = {}) =>
  run(['deploy', ...args], { TARGETS: JSON.stringify(['schedule: * * * * *', url]), ...env });
const APPLY = `POST /ojs/v1/admin/deployment/apply Bearer ${KEY}`;

describe('tocsin deploy', { timeout: 900_000 }, () => {
  it('hands its arguments to wrangler, and puts into effect what is declared where that has deployed to', async () => {
    const { code, stdout, stderr } = await deploy(['--env', 'production', '--minify'], { TOCSIN_KEY: KEY });
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^wrangler deploy --env production --minify$/m);
    assert.match(stdout, /^In effect at http.*\nschedules +in code: nightly$/m);
    assert.deepEqual(asked, [APPLY]);
  });

  it('prefers the address that it is given, and prints JSON alone', async () => {
    const { code, stdout } = await deploy(['--url', url, '--key', KEY, '--json'], {
      TARGETS: '["https://elsewhere.test"]',
    });
    assert.equal(code, 0);
    assert.deepEqual({ ...JSON.parse(stdout), applied_at: 0 }, { url, ...deployment(), applied_at: 0 });
    assert.deepEqual(asked, [APPLY]);
    assert.equal((await deploy([], { TOCSIN_URL: url, TOCSIN_KEY: KEY, TARGETS: '[]' })).code, 0);
    assert.equal(asked.length, 2);
  });

  it('asks again while the version before may still answer, or nothing does', async () => {
    answers = [
      [404, { error: { code: 'not_found', message: 'no queue here' } }],
      [200, deployment({ applied_at: '2026-01-01T00:00:00Z' })],
    ];
    assert.equal((await deploy([], { TOCSIN_KEY: KEY })).code, 0);
    assert.deepEqual(asked, [APPLY, APPLY, APPLY]);
  });

  it('without a key wakes the Worker, and says that nothing is confirmed', async () => {
    const { code, stdout } = await deploy();
    assert.equal(code, 0);
    assert.match(stdout, /^asked +http.*\n→ +.*TOCSIN_KEY/m);
    assert.deepEqual(asked, ['GET /ojs/v1/health without key']);
  });

  it('fails at once where the key is refused, or what is declared is wrong', async () => {
    const refused = await deploy([], { TOCSIN_KEY: 'other' });
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /key/);
    assert.equal(asked.length, 1);
    const message = 'crons.nightly: expression must be a cron expression.';
    answers = Array(20).fill([500, { error: { code: 'invalid_configuration', message } }]);
    const wrong = await deploy([], { TOCSIN_KEY: KEY });
    assert.notEqual(wrong.code, 0);
    assert.match(wrong.stderr, /crons\.nightly: expression must be/);
  });

  it('sends no request after a failed deploy, a dry run, or without an address from wrangler', async () => {
    assert.equal((await deploy([], { EXIT: '3' })).code, 3);
    assert.equal((await deploy(['--dry-run'])).code, 0);
    const unknown = await deploy([], { TARGETS: '["example.com/api/* (zone name: example.com)"]' });
    assert.equal(unknown.code, 0);
    assert.match(unknown.stderr, /address is not known.*\n→ .*TOCSIN_URL/);
    assert.deepEqual(asked, []);
  });
});

describe('tocsin apply', () => {
  it('puts it into effect, and puts schedules back that are named', async () => {
    const { code, stdout } = await run(['apply', '--url', url, '--key', KEY, '--reset', 'nightly']);
    assert.equal(code, 0);
    assert.match(stdout, /^In effect at .*\nschedules +in code: nightly$/m);
    assert.deepEqual(asked, [APPLY]);
  });

  it('fails where it is not in effect after that', async () => {
    const problem = 'webhooks.slack: url: the variable SLACK_URL is not set.';
    const observers = { webhooks: [{ name: 'slack', state: 'pending' }], alerts: [{ name: 'late', state: 'changed' }] };
    answers = [[200, deployment({ in_effect: false, problems: [problem], ...observers })]];
    const { code, stdout, stderr } = await run(['apply', '--url', url, '--key', KEY]);
    assert.equal(code, 1);
    assert.match(stdout, /^webhooks +in code: slack$/m);
    assert.match(stdout, /^alerts +in code: late; changed by an operator: late \(changed\)$/m);
    assert.match(stderr, /is not in effect: webhooks\.slack: url: the variable SLACK_URL is not set/);
  });
});

describe('the address of a deploy', () => {
  const file = () => join(folder, 'output.ndjson');
  const addressOf = async (...targets) => {
    writeFileSync(file(), `not JSON\n${JSON.stringify({ type: 'deploy', targets })}\n{"type":"other"}\n`);
    return (await load('commands/deploy.ts')).deployedAt(file());
  };

  it('is the first that leads to all of a host', async () => {
    assert.equal(
      await addressOf('schedule: 0 * * * *', 'https://shop.ada.workers.dev'),
      'https://shop.ada.workers.dev',
    );
    assert.equal(await addressOf('shop.example.com (custom domain)'), 'https://shop.example.com');
    assert.equal(await addressOf('example.com/* (zone name: example.com)'), 'https://example.com');
    assert.equal(await addressOf('example.com/api/*', '*.example.com/*', 'Producer for jobs'), undefined);
    assert.equal(await addressOf(), undefined);
  });
});
