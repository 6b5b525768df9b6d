// The commands over HTTP, against the queue in `wrangler dev`.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { dev, until } from '../docs/dev.mjs';
import { against, load, start, tocsin } from './cli.mjs';

const UNKNOWN = '01962222-bbbb-7ccc-8ddd-eeeeeeeeeeee';
const LIMIT_MS = 120_000;

let folder;
let server;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'tocsin-commands-'));
  server = await dev(['wrangler.toml'], { state: join(folder, 'state'), registry: join(folder, 'registry') });
});
after(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const { run, json, call } = against(() => server.url);

/** Runs the next job of a queue as a worker does, and fails it for good. */
async function failNext(queue, error) {
  const { jobs } = await call('POST', '/workers/fetch', { queues: [queue], worker_id: 'tester' });
  assert.equal(jobs.length, 1);
  await call('POST', '/workers/nack', { job_id: jobs[0].id, error });
}

describe('tocsin', { timeout: 900_000 }, () => {
  it('enqueues with arguments as JSON or text, and shows the job', async () => {
    const { job } = await json('enqueue', 'email.send', 'Ada', '{"to":1}', '7', '--queue', 'first', '--priority', '5');
    assert.deepEqual([job.args, job.queue, job.priority], [['Ada', { to: 1 }, 7], 'first', 5]);
    assert.ok(job.created_at && job.max_attempts, 'JSON has the names of the wire');
    const shown = await run('job', job.id);
    assert.equal(shown.code, 0, shown.stderr);
    assert.match(shown.stdout, new RegExp(`^id +${job.id}$`, 'm'));
    assert.match(shown.stdout, /^state +available$/m);
    assert.match(shown.stdout, /^args +\["Ada",\{"to":1\},7\]$/m);
  });

  it('has a flag for every option of a job, and sends what it says', async () => {
    const flags = ['--expires-at', '2999-01-01T00:00:00Z', '--timeout', '5000', '--visibility-timeout', '6000'];
    const policies = [
      '--retry',
      '{"maxAttempts":7}',
      '--retention',
      '{"completed":"1h"}',
      '--unique',
      '{"keys":["type"]}',
    ];
    const others = ['--tag', 'a,b', '--meta', '{"x":1}', '--schema', 's', '--schema-version', '2', '--pending'];
    const limit = ['--rate-limit', '{"key":"k","concurrency":1}'];
    const at = ['--at', '2998-01-01T00:00:00Z'];
    const { job } = await json(
      'enqueue',
      'flag.all',
      '--queue',
      'flags',
      ...flags,
      ...policies,
      ...others,
      ...limit,
      ...at,
    );
    const { expires_at, timeout_ms, visibility_timeout_ms, max_attempts, retention, tags, meta, schema, version } = job;
    assert.deepEqual(
      { expires_at, timeout_ms, visibility_timeout_ms, max_attempts, tags, x: meta.x, schema, version },
      {
        ...{ expires_at: '2999-01-01T00:00:00Z', timeout_ms: 5000, visibility_timeout_ms: 6000, max_attempts: 7 },
        ...{ tags: ['a', 'b'], x: 1, schema: 's', version: 2 },
      },
    );
    assert.deepEqual([Object.keys(retention), job.state, job.rate_limit.key], [['completed'], 'pending', 'k']);
    const { CLIENT_OPTIONS } = await load('../producer/options.ts');
    const { addJobFlags } = await load('commands/enqueue.ts');
    const added = [];
    addJobFlags({ addOption: (option) => added.push(option) });
    assert.equal(new Set(added.map(({ long }) => long)).size, CLIENT_OPTIONS.length);
    const wrong = await run('enqueue', 'a.b', '--retry', '7');
    assert.match(wrong.stderr, /--retry must be a JSON object/);
  });

  it('lists the jobs that match', async () => {
    const { job } = await json('enqueue', 'report.build', '--queue', 'listed', '--delay', '1h');
    await json('enqueue', 'report.other', '--queue', 'listed');
    assert.equal(job.state, 'scheduled');
    const { jobs } = await json('jobs', '--queue', 'listed', '--state', 'scheduled', '--type', 'report.*');
    assert.deepEqual(
      jobs.map(({ id }) => id),
      [job.id],
    );
    const { stdout } = await run('jobs', '--queue', 'listed', '--limit', '1');
    assert.match(stdout, /^ID +STATE +QUEUE +TYPE/);
    assert.equal(stdout.trim().split('\n').length, 2);
  });

  it('lists the jobs of a group', async () => {
    const { job } = await json('enqueue', 'a.b', '--queue', 'owned', '--group', 'acme');
    await json('enqueue', 'a.b', '--queue', 'owned', '--group', 'other');
    const { jobs } = await json('jobs', '--queue', 'owned', '--group', 'acme');
    assert.deepEqual(
      jobs.map(({ id, group }) => [id, group]),
      [[job.id, 'acme']],
    );
    assert.deepEqual((await json('dead', '--group', 'acme')).jobs, []);
  });

  it('lists the groups of a queue', async () => {
    await call('PUT', '/queues/grouped/config', { groups: { order: 'strict' } });
    const { job } = await json('enqueue', 'a.b', '--queue', 'grouped', '--group', 'acme');
    await json('enqueue', 'a.b', '--queue', 'grouped', '--group', 'acme');
    await call('POST', '/workers/fetch', { queues: ['grouped'], worker_id: 'w', count: 1 });
    const { groups, total } = await json('groups', 'grouped');
    assert.deepEqual([groups[0].group, groups[0].running, groups[0].blocked_by, total], ['acme', 1, job.id, 1]);
    const { stdout } = await run('groups', 'grouped');
    assert.match(stdout, /^GROUP +WAITING +LIMITED +RUNNING +WEIGHT +OLDEST +BLOCKED BY\nacme +1 +0 +1 +1 /);
    assert.match((await run('groups', 'ungrouped')).stdout, /No groups/);
  });

  it('pauses, resumes and limits a group of a queue', async () => {
    await call('PUT', '/queues/shared/config', { groups: { order: 'fair' } });
    await json('enqueue', 'a.b', '--queue', 'shared', '--group', 'big one');
    const paused = (await json('groups', 'pause', 'shared', 'big one')).group;
    assert.deepEqual([paused.paused, paused.waiting_for.reason], [true, 'group_paused']);
    assert.match((await run('groups', 'shared')).stdout, /^GROUP .*\nbig one +paused +1 /);
    assert.match((await run('groups', 'show', 'shared', 'big one')).stdout, /has paused the group "big one"/);
    assert.equal((await json('groups', 'resume', 'shared', 'big one')).group.paused, false);
    const words = ['--concurrency', '2', '--rate', '5', '--period', 'minute', '--max-waiting', '9', '--weight', '3'];
    const { group } = await json('groups', 'limit', 'shared', 'big one', ...words);
    const limits = { concurrency: 2, rate: { limit: 5, period: 'PT1M' }, max_waiting: 9 };
    assert.deepEqual([group.limits, group.override], [limits, { ...limits, weight: 3 }]);
    assert.equal((await json('groups', 'restore', 'shared', 'big one')).group.override, null);
    await json('queues', 'create', 'plain');
    const refused = await run('groups', 'pause', 'plain', 'x');
    assert.match(refused.stderr, /does not serve its jobs by group/);
    const unknown = await run('groups', 'pause', 'nowhere', 'x');
    assert.match(unknown.stderr, /^tocsin: Queue nowhere not found\./);
  });

  it('says why a job does not run', async () => {
    const later = (await json('enqueue', 'a.b', '--queue', 'asked', '--delay', '2h')).job;
    assert.match(
      (await run('why', later.id)).stdout,
      new RegExp(`scheduled for .*\\n→ tocsin reschedule ${later.id}\\n`),
    );

    const paused = (await json('enqueue', 'a.b', '--queue', 'halted')).job;
    assert.equal((await json('queues', 'pause', 'halted')).queue.status, 'paused');
    const { stdout } = await run('why', paused.id);
    assert.match(stdout, /paused/);
    assert.match(stdout, /→ tocsin queues resume halted/);
    assert.equal((await json('why', paused.id)).job.id, paused.id);
    assert.equal((await json('queues', 'resume', 'halted')).queue.status, 'active');
  });

  it('cancels a job, refuses to do it twice, and runs it again', async () => {
    const { job } = await json('enqueue', 'a.b', '--queue', 'changed');
    assert.equal((await json('cancel', job.id)).jobs[0].state, 'cancelled');
    const again = await run('cancel', job.id);
    assert.equal(again.code, 1);
    assert.match(again.stderr, /^tocsin: .*\n/);
    assert.equal((await json('retry', job.id)).jobs[0].state, 'available');
  });

  it('changes those of many jobs that can be changed, and says that others could not', async () => {
    const { job } = await json('enqueue', 'a.b', '--queue', 'many');
    const { code, stdout, stderr } = await run('cancel', job.id, UNKNOWN, '--json');
    assert.equal(code, 1);
    assert.equal(JSON.parse(stdout).jobs[0].state, 'cancelled');
    assert.equal(JSON.parse(stdout).failed[0].id, UNKNOWN);
    assert.equal(JSON.parse(stderr).error.code, 'partial');
  });

  it('lists dead letters and runs them again by type or by id', async () => {
    await call('PUT', '/queues/mail/config', { default_retry: { on_exhaustion: 'dead_letter', max_attempts: 1 } });
    for (const type of ['email.send', 'email.send', 'sms.send']) {
      await json('enqueue', type, '--queue', 'mail');
      await failNext('mail', { code: 'smtp', type: 'SmtpError', message: 'no such host' });
    }
    assert.equal((await json('dead', '--type', 'email.send')).jobs.length, 2);
    const { jobs } = await json('dead', '--queue', 'mail', '--type', 'sms.send');
    assert.match((await run('dead')).stdout, /SmtpError: no such host/);
    const retried = await json('dead', 'retry', '--type', 'email.send');
    assert.deepEqual([retried.matched, retried.succeeded], [2, 2]);
    assert.equal((await json('dead', 'retry', jobs[0].id)).jobs[0].state, 'available');
    assert.match((await run('dead')).stdout, /No dead letters/);
  });

  it('groups failures, and redrives or discards a group', async () => {
    await call('PUT', '/queues/groups/config', { default_retry: { on_exhaustion: 'dead_letter', max_attempts: 1 } });
    for (const box of [1, 2]) {
      await json('enqueue', 'box.fill', '--queue', 'groups');
      await failNext('groups', { code: 'full', type: 'BoxError', message: `box ${box} is full` });
    }
    const { failures, more } = await json('failures', '--queue', 'groups', '--since', '1h');
    assert.deepEqual([failures.length, failures[0].count, more], [1, 2, false]);
    assert.match((await run('failures', '--queue', 'groups')).stdout, /BoxError: box <n> is full/);
    const { fingerprint } = failures[0];
    assert.equal((await json('jobs', '--q', 'full box', '--fingerprint', fingerprint)).jobs.length, 2);
    const redriven = await json('failures', 'redrive', fingerprint, '--queue', 'groups');
    assert.deepEqual([redriven.matched, redriven.succeeded], [2, 2]);
    assert.match((await run('failures', '--queue', 'groups')).stdout, /No failures/);
    await failNext('groups', { code: 'full', type: 'BoxError', message: 'box 3 is full' });
    assert.equal((await json('failures', 'discard', fingerprint)).succeeded, 1);
  });

  it('counts the jobs of each queue', async () => {
    await json('enqueue', 'a.b', '--queue', 'counted');
    const { queues } = await json('queues');
    assert.equal(queues.find(({ name }) => name === 'counted').counts.available, 1);
    assert.match((await run('queues')).stdout, /^counted +active +1 /m);
  });

  it('waits for the end of a job and prints its result', async () => {
    const waiting = run('enqueue', 'sum.add', '1', '2', '--queue', 'awaited', '--wait', '--json');
    const job = await until('the job', LIMIT_MS, async () => {
      return (await call('POST', '/workers/fetch', { queues: ['awaited'], worker_id: 'tester' })).jobs[0];
    });
    await call('POST', '/workers/ack', { job_id: job.id, result: 3 });
    const { code, stdout, stderr } = await waiting;
    assert.equal(code, 0, stderr);
    assert.equal(JSON.parse(stdout).outcome.result, 3);
  });

  it('follows the events of a queue', async () => {
    await json('enqueue', 'before.it', '--queue', 'followed');
    const tail = await start(['tail', '--queue', 'followed', '--type', 'watched.*', '--limit', '2', '--json'], {
      env: { TOCSIN_URL: server.url },
    });
    // It shows what happens from its first look on; until then nothing says that it looks.
    await until('two events', LIMIT_MS, async () => {
      await json('enqueue', 'watched.job', '--queue', 'followed');
      return tail.stdout.split('\n').length > 2;
    });
    assert.equal(await tail.ended, 0, tail.stderr);
    const events = tail.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    assert.deepEqual(
      events.map(({ type, data }) => [type, data.job_type]),
      Array(2).fill(['job.enqueued', 'watched.job']),
    );
  });

  it('prints an output stream until its job ends', async () => {
    const { job } = await json('enqueue', 'write.it', '--queue', 'streamed');
    await call('POST', '/workers/fetch', { queues: ['streamed'], worker_id: 'tester' });
    const env = { TOCSIN_URL: server.url };
    const readers = await Promise.all(
      [[], ['--json']].map((more) => start(['stream', job.id, 'out', ...more], { env })),
    );
    await call('POST', `/jobs/${job.id}/streams/out`, { first: 0, chunks: ['Hello ', 'you', { n: 1 }] });
    await call('POST', `/jobs/${job.id}/streams/out`, { first: 0, chunks: ['Again'], execution: 1 });
    await until('both to print it', LIMIT_MS, () => readers.every(({ stdout }) => stdout.includes('Again')));
    await call('POST', '/workers/ack', { job_id: job.id });
    for (const reader of readers) assert.equal(await reader.ended, 0, reader.stderr);
    const [text, lines] = readers.map(({ stdout }) => stdout);
    assert.ok(text.endsWith('Again\n'), text);
    const chunk = (data, is_reset, id) => ({ data, is_reset, id });
    const last = lines
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
      .at(-1);
    assert.partialDeepStrictEqual(last, chunk('Again', last.is_reset, '1025.0'));
  });

  it('shows what the jobs returned whose end it tells', async () => {
    await json('enqueue', 'sum.add', '--queue', 'summed');
    const args = ['tail', '--queue', 'summed', '--type', 'job.completed'];
    const env = { TOCSIN_URL: server.url };
    const tails = await Promise.all([[], ['--json']].map((more) => start([...args, '--limit', '2', ...more], { env })));
    // Until something has ended nothing says that they look.
    await until('two events in both', LIMIT_MS, async () => {
      const { job } = await json('enqueue', 'sum.add', '--queue', 'summed');
      await call('POST', '/workers/fetch', { queues: ['summed'], worker_id: 'tester', count: 2 });
      await call('POST', '/workers/ack', { job_id: job.id, result: { sum: 3 } });
      return tails.every(({ stdout }) => stdout.split('\n').length > 2);
    });
    for (const tail of tails) assert.equal(await tail.ended, 0, tail.stderr);
    const [text, lines] = tails.map(({ stdout }) => stdout.trim().split('\n'));
    for (const line of text) assert.match(line, / result=\{"sum":3\}$/);
    assert.deepEqual(
      lines.map((line) => JSON.parse(line).data.result),
      Array(2).fill({ sum: 3 }),
    );
  });

  it('repeats a warning with the error that comes after it', async () => {
    const broken = createServer((request, response) => {
      const job = { id: UNKNOWN, type: 'a.b', queue: 'default', state: 'available' };
      const refusal = { error: { code: 'forbidden', message: 'Not for you.' } };
      const [status, answer] = request.method === 'POST' ? [201, { job, warnings: ['Look out.'] }] : [403, refusal];
      request.resume();
      response.writeHead(status).end(JSON.stringify(answer));
    }).listen(0, '127.0.0.1');
    await once(broken, 'listening');
    const env = { TOCSIN_URL: `http://127.0.0.1:${broken.address().port}` };
    const { code, stdout, stderr } = await tocsin(['enqueue', 'a.b', '--wait', '--json'], { env });
    broken.close();
    assert.deepEqual([code, stdout], [1, '']);
    assert.deepEqual(JSON.parse(stderr).warnings, ['Look out.']);
    assert.equal(JSON.parse(stderr).error.code, 'forbidden');
  });

  it('prints no password of an address, whatever is wrong with it', async () => {
    const addresses = [
      'http://ada:hunter2@127.0.0.1:9',
      'http//ada:hunter2@host',
      'ftp://a@b:hunter2@host',
      'http://hunter2@h',
    ];
    const runs = [
      ...addresses.map((address) => [['jobs'], { TOCSIN_URL: address }]),
      ...[['doctor', '--json'], ['top'], ['tail']].map((args) => [[...args, '--url', addresses[0]], {}]),
    ];
    for (const [args, env] of runs) {
      const { code, stdout, stderr } = await tocsin(args, { env });
      assert.equal(code, 2, stderr);
      assert.doesNotMatch(stdout + stderr, /hunter2/);
      assert.match(stderr, /…@(?:127|h).* (?:is not an address|contains a user name or a password)/);
    }
  });

  it('says where it looked for a queue and why none is there', async () => {
    const other = createServer((request, response) => {
      request.resume();
      const status = request.url.startsWith('/broken') ? 502 : request.url.startsWith('/page') ? 200 : 404;
      response.writeHead(status, { 'Content-Type': 'text/html' }).end('<h1>Shop</h1>');
    }).listen(0, '127.0.0.1');
    await once(other, 'listening');
    const shop = `http://127.0.0.1:${other.address().port}`;
    const gone = createServer().listen(0, '127.0.0.1');
    await once(gone, 'listening');
    const nobody = `http://127.0.0.1:${gone.address().port}`;
    gone.close();
    const cases = [
      [nobody, new RegExp(`^tocsin: No queue answers at ${nobody}: the connection was refused \\(ECONNREFUSED\\)\\.`)],
      [shop, new RegExp(`${shop} is not a Tocsin queue: The queue answered 404.*\\n→ If the queue is mounted below`)],
      [`${shop}/page`, new RegExp(`${shop}/page is not a Tocsin queue: The answer to GET \\S+ is not JSON`)],
      [`${shop}/broken`, new RegExp(`${shop}/broken answered 502 without an error of the queue`)],
    ];
    try {
      await Promise.all(
        cases.map(async ([address, says]) => {
          const { code, stderr } = await tocsin(['jobs', '--url', address]);
          assert.equal(code, 1);
          assert.match(stderr, says);
        }),
      );
    } finally {
      other.close();
    }
  });

  it('says of a wrong key that it is wrong, and of a missing one how to give it', async () => {
    const answers = { true: 'This API key is not known.', false: 'An API key is required.' };
    const closed = createServer((request, response) => {
      const message = answers[request.headers.authorization !== undefined];
      const error = { code: 'unauthorized', message, hint: 'Send "Authorization: Bearer <key>".' };
      response.writeHead(401).end(JSON.stringify({ error }));
    }).listen(0, '127.0.0.1');
    await once(closed, 'listening');
    const env = { TOCSIN_URL: `http://127.0.0.1:${closed.address().port}` };
    const wrong = await tocsin(['jobs', '--key', 'typo'], { env });
    assert.match(wrong.stderr, /key is not known\.\n→ Check that the key in --key or TOCSIN_KEY is one of API_KEYS/);
    const named = await tocsin(['jobs'], { env: { ...env, TOCSIN_KEY: 'typo' } });
    assert.equal(named.stderr, wrong.stderr);
    const none = await tocsin(['jobs'], { env });
    assert.match(none.stderr, /key is required\.\n→ Pass a key with --key or TOCSIN_KEY\. In development, /);
    closed.close();
  });

  it('fails in one line with a hint, and never with a stack', async () => {
    const cases = [
      { args: ['job', UNKNOWN], code: 1, says: /not found/ },
      { args: ['enqueue', 'Not A Type'], code: 1, says: /type/ },
      { args: ['enqueue', 'a.b', '{"to'], code: 2, says: /is not JSON/ },
      { args: ['jobs', '--state', 'asleep'], code: 2, says: /asleep is not a state/ },
      { args: ['jobs', '--limit', 'x'], code: 2, says: /whole number/ },
      { args: ['jobz'], code: 2, says: /nknown command/ },
      { args: ['dead', 'retry'], code: 2, says: /Which dead letters/ },
      { args: ['jobs', '--url', 'http://127.0.0.1:9'], code: 1, says: /No queue answers at http:\/\/127\.0\.0\.1:9/ },
      { args: ['jobs', '--url', 'nonsense'], code: 2, says: /not an address/ },
    ];
    for (const { args, code, says } of cases) {
      const failed = await run(...args);
      assert.equal(failed.code, code, `${args.join(' ')}: ${failed.stderr}`);
      assert.match(failed.stderr, says);
      assert.equal(failed.stdout, '');
      assert.ok(failed.stderr.split('\n').length <= 3, failed.stderr);
      const inJson = await run(...args, '--json');
      assert.match(JSON.parse(inJson.stderr).error.message, says);
    }
  });

  it('begins and ends maintenance', async () => {
    const { maintenance } = await json('maintenance', 'on', '--reason', 'moving', '--for', '20m');
    assert.deepEqual([maintenance.enabled, maintenance.reason], [true, 'moving']);
    assert.match((await run('maintenance')).stdout, /^on since .* ends .*: moving\n$/);
    assert.equal((await json('maintenance', 'off')).maintenance.enabled, false);
    assert.equal((await run('maintenance')).stdout, 'off\n');
    assert.match((await run('maintenance', 'on', '--for', 'soon')).stderr, /duration/);
  });

  it('tells a receiver of events, shows what became of them, and stops', async () => {
    const taken = [];
    const receiver = createServer((request, response) => {
      taken.push(request.headers['webhook-id']);
      request.resume().on('end', () => response.writeHead(taken.length === 1 ? 204 : 500).end());
    });
    await once(receiver.listen(0, '127.0.0.1'), 'listening');
    try {
      const url = `http://127.0.0.1:${receiver.address().port}/`;
      const { subscription, secret } = await json('webhooks', 'add', url, '--event', 'queue.paused', '--queue', 'told');
      assert.deepEqual([subscription.events, subscription.filter.queues], [['queue.paused'], ['told']]);
      assert.match(secret, /^whsec_/);
      assert.match((await run('webhooks', 'test', subscription.id)).stdout, /^delivered {2}204/);
      const refused = await run('webhooks', 'test', subscription.id);
      assert.equal(refused.code, 1);
      assert.match(refused.stdout, /^not delivered {2}500/);
      assert.equal((await json('webhooks', 'pause', subscription.id)).subscription.active, false);
      assert.match((await run('webhooks')).stdout, new RegExp(`${subscription.id} +off +${url}`));
      assert.notEqual((await json('webhooks', 'rotate', subscription.id)).secret, secret);
      const jobs = (await json('webhooks', 'add', url, '--event', 'job.enqueued', '--queue', 'told')).subscription;
      const { job } = await json('enqueue', 'a.b', '--queue', 'told');
      const [{ id }] = await until('a delivery', LIMIT_MS, async () => {
        const { deliveries } = await json('webhooks', 'deliveries', '--limit', '5');
        return deliveries.length > 0 && deliveries;
      });
      assert.match((await run('webhooks', 'deliveries')).stdout, new RegExp(`^${id} .* ${job.id} `, 'm'));
      assert.equal((await run('webhooks', 'deliveries', '--status', 'lost')).code, 2);
      const forms = ['--format', '{"said": "{{type}}"}'];
      const formed = await json('webhooks', 'add', url, '--event', 'alert.*', ...forms);
      assert.deepEqual(formed.subscription.format, { template: { said: '{{type}}' } });
      assert.match((await run('webhooks')).stdout, /alert\.\* +template /);
      const keyless = await run('webhooks', 'add', url, '--event', 'alert.*', '--format', 'pagerduty');
      assert.match(keyless.stderr, /routing_key is required/);
      for (const one of [subscription, jobs, formed.subscription]) await json('webhooks', 'remove', one.id);
      assert.match((await run('webhooks')).stdout, /No webhooks/);
    } finally {
      receiver.close();
    }
  });

  it('says who changed what', async () => {
    await json('queues', 'create', 'seen');
    await json('queues', 'pause', 'seen');
    const { entries } = await json('audit', '--queue', 'seen', '--action', 'queue.*', '--since', '1h');
    assert.deepEqual(
      entries.map(({ action, target, request_id: request }) => [action, target, typeof request]),
      [
        ['queue.pause', 'seen', 'string'],
        ['queue.create', 'seen', 'string'],
      ],
    );
    assert.match((await run('audit', '--limit', '1')).stdout, /^AT +WHO +ACTION.*\n.* anybody +queue\.pause +seen/);
    assert.equal((await run('audit', '--action', 'No Action')).code, 1);
  });
});
