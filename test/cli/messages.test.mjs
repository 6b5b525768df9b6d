// What the command line says of a slip: what is wrong, and what to do about it.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { tocsin } from './cli.mjs';

let folder;
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'tocsin-messages-'));
});
const servers = [];
after(() => {
  for (const server of servers) server.close().closeAllConnections();
  rmSync(folder, { recursive: true, force: true });
});

/** A server that answers in one way. @returns what it was asked, and a command against it */
async function answering(answer) {
  const asked = [];
  const server = createServer((request, response) => {
    asked.push({ url: request.url, key: request.headers.authorization });
    answer(request, response);
  });
  servers.push(server.listen(0, '127.0.0.1'));
  await once(server, 'listening');
  const url = `http://127.0.0.1:${server.address().port}`;
  return { asked, url, run: (...args) => tocsin(args, { env: { TOCSIN_URL: url, TOCSIN_KEY: 'secret' } }) };
}

const json = (response, status, body) =>
  response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));

describe('an address', () => {
  it('that redirects is named with the one that it leads to, and the request does not follow', async () => {
    const target = await answering((_, response) => json(response, 401, {}));
    const moved = await answering(({ url }, response) =>
      response.writeHead(301, { Location: `${target.url}/mounted${url}` }).end(),
    );
    for (const args of [['enqueue', 'a.b'], ['tail']]) {
      const { code, stderr } = await moved.run(...args);
      assert.equal(code, 1);
      assert.match(stderr, new RegExp(`^tocsin: ${moved.url} redirects to ${target.url}/mounted: use that`), args[0]);
      assert.match(stderr, /\n→ .*--url or TOCSIN_URL/);
    }
    assert.deepEqual(target.asked, []);
  });

  it('may end with the path of the API or of the dashboard', async () => {
    const server = await answering((_, response) => json(response, 200, { jobs: [], items: [], pagination: {} }));
    for (const path of ['/', '/ojs/v1', '/ojs/ui/']) await tocsin(['jobs', '--url', server.url + path]);
    assert.deepEqual(new Set(server.asked.map(({ url }) => url.split('?')[0])), new Set(['/ojs/v1/jobs']));
  });
});

it('a hint names the field itself, since a terminal shows no details', async () => {
  const error = {
    ...{ code: 'invalid_request', message: 'It must be less.', retryable: false },
    ...{ details: { field: 'options.priority' } },
    hint: 'Correct the field named in details.field and send the request again.',
  };
  const server = await answering((_, response) => json(response, 400, { error }));
  const { stderr } = await server.run('enqueue', 'a.b');
  assert.equal(stderr, 'tocsin: It must be less.\n→ Correct options.priority and run the command again.\n');
});

it('a command that is not there, or behind its options, is not treated as a value', async () => {
  const listed = await tocsin(['queues', 'list']);
  assert.match(listed.stderr, /Too many arguments for 'queues'.*\n→ tocsin queues --help\n$/);
  const before = await tocsin(['--key', 'secret', 'queues']);
  assert.match(before.stderr, /Unknown option '--key'\n→ Write options behind the command: /);
  const wrong = await tocsin(['queues', '--kee', 'top']);
  assert.match(wrong.stderr, /Unknown option '--kee'\n→ /);
  const below = await tocsin(['dead', 'retry', '--yes']);
  assert.match(below.stderr, /Unknown option '--yes'\n→ tocsin dead retry --help\n$/);
});

it('a value that the shell has cut into words must be quoted', async () => {
  const { code, stderr } = await tocsin(['crons', 'set', 'nightly', '--expression', '0', '2', 'x', 'x', 'x']);
  assert.equal(code, 2);
  assert.match(stderr, /Too many arguments.*\n→ Put quotes around a value that has spaces.*'0 2 \* \* \*'/);
});

it('a file that is not there is named without the codes of the system', async () => {
  const server = await answering((_, response) => json(response, 200, {}));
  const missing = join(folder, 'missing.json');
  const nowhere = join(folder, 'nowhere/file');
  const cases = [
    [['import', missing], `There is no file ${missing}.`],
    [['export', 'mail', '--output', nowhere], `There is no folder ${join(folder, 'nowhere')}.`],
    [['import', folder], 'Cannot read or write a file: it is a folder.'],
    [['crons', 'set', 'x', '--file', missing], `${missing} cannot be read: there is no such file.`],
    [['serve', '--config', missing], `There is no ${missing}.`],
    [['restore', nowhere], `${nowhere} is not a whole backup: it has no backup.json.`],
  ];
  for (const [args, says] of cases) {
    const { code, stderr } = await server.run(...args);
    assert.notEqual(code, 0);
    assert.ok(stderr.startsWith(`tocsin: ${says}`), `${args.join(' ')}: ${stderr}`);
    assert.doesNotMatch(stderr, /E[A-Z]{4,}|no such file or directory|node:/);
  }
});

describe('a queue that does not exist', () => {
  it('is not paused, and the name that was probably meant is named', async () => {
    const error = { code: 'not_found', message: 'Queue ordres not found.', retryable: false };
    const queues = [{ name: 'orders', status: 'active', paused: false }];
    const server = await answering(({ method }, response) =>
      method === 'POST'
        ? json(response, 404, { error })
        : json(response, 200, { queues, items: queues, pagination: {} }),
    );
    const near = await server.run('queues', 'pause', 'ordres');
    assert.deepEqual([near.code, near.stderr], [1, 'tocsin: There is no queue ordres.\n→ Did you mean "orders"?\n']);
    const far = await server.run('queues', 'resume', 'invoices');
    assert.equal(far.stderr, 'tocsin: There is no queue invoices.\n→ Create it with: tocsin queues create invoices\n');
  });
});
