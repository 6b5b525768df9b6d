/** Which Workers `tocsin serve` serves, how they are bound, and what it refuses before anything starts. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { load } from './cli.mjs';

const { clusterWarning, configText, countKeys, hasLogin, misspelt, planWorkers, quote, readVariables } = await load(
  ...['serve/cluster.ts', 'serve/config.ts', 'serve/plan.ts', 'serve/variables.ts'],
);

const scratch = mkdtempSync(join(tmpdir(), 'tocsin-plan-'));
after(() => rmSync(scratch, { recursive: true, force: true }));

let folders = 0;

/** A folder with these files. */
function folder(files) {
  const path = join(scratch, `folder-${++folders}`);
  mkdirSync(path);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(path, name), text);
  return path;
}

/** A configuration of a Worker that holds the queue. */
const QUEUE = `name = "mine"
main = "index.ts"
compatibility_date = "2026-11-01"
[[migrations]]
tag = "v1"
new_sqlite_classes = ["QueueObject", "DirectoryObject", "UniqueLockObject", "WorkflowObject"]
`;

const handler = (name) => folder({ 'wrangler.toml': `name = "${name}"\nmain = "h.ts"\n` });
const plan = (cwd, options = {}, table) => planWorkers(cwd, { handlers: [], ...options }, table);

describe('the plan of tocsin serve', () => {
  it('is the queue alone where nothing is configured, and a handler gets all its jobs', () => {
    const { workers, table } = plan(folder({}), { handlers: [handler('shop-jobs')] });
    assert.deepEqual(
      workers.map(({ name }) => name),
      ['tocsin', 'shop-jobs'],
    );
    assert.deepEqual(table, { '*': 'SHOP_JOBS' });
    assert.deepEqual(workers[0].services, [{ binding: 'SHOP_JOBS', service: 'shop-jobs' }]);
  });

  it('gives handlers the jobs that they are named for, and refuses two for the same', () => {
    const [mail, rest] = [handler('mail'), handler('rest')];
    const { table } = plan(folder({}), { handlers: [`email.*=${mail}`, `reports/*=${rest}`] });
    assert.deepEqual(table, { 'email.*': 'MAIL', 'reports/*': 'REST' });
    assert.throws(() => plan(folder({}), { handlers: [mail, rest] }), /The jobs "\*" have a handler already/);
  });

  it('never names a binding as a variable of the queue is named', () => {
    const { table } = plan(folder({}), { handlers: [handler('handlers')] });
    assert.deepEqual(table, { '*': 'HANDLERS_2' });
  });

  it('keeps the table of a project that maps its handler, and refuses a binding that leads nowhere', () => {
    const bound = `${QUEUE}[[services]]\nbinding = "JOBS"\nservice = "shop-jobs"\n[vars.HANDLERS]\n"a.*" = "JOBS"\n`;
    const cwd = folder({ 'wrangler.toml': bound });
    const { workers, table } = plan(cwd, { handlers: [handler('shop-jobs')] });
    assert.equal(table, undefined);
    assert.deepEqual(workers[0].services, [{ binding: 'JOBS', service: 'shop-jobs' }]);
    assert.throws(() => plan(cwd), /mine binds JOBS to the Worker shop-jobs, which is not served here/);
  });

  it('refuses what plain workerd does not have, unless an environment leaves it out', () => {
    const text = `${QUEUE}[[kv_namespaces]]\nbinding = "KV"\nid = "x"\n[env.here]\nname = "here"\n`;
    const cwd = folder({ 'wrangler.toml': text });
    assert.throws(() => plan(cwd), /asks for kv_namespaces, which plain workerd does not have/);
    assert.equal(plan(cwd, { env: 'here' }).workers[0].name, 'here');
    assert.throws(() => plan(cwd, { env: 'there' }), /has no environment there/);
  });

  it('refuses a project without the queue, unless it is served as handlers', () => {
    const cwd = handler('only');
    assert.throws(() => plan(cwd), /does not hold the queue/);
    assert.deepEqual(
      plan(cwd, { handlers: ['.'] }).workers.map(({ name }) => name),
      ['tocsin', 'only'],
    );
  });

  it('reads classes that exports declares, and keeps the databases of one that was renamed', () => {
    const object = (name, rest) => `[exports.${name}]\ntype = "durable-object"\n${rest}\n`;
    const text = [
      QUEUE.slice(0, QUEUE.indexOf('[[migrations]]')),
      ...['QueueObject', 'DirectoryObject', 'UniqueLockObject', 'WorkflowObject', 'New'].map((name) =>
        object(name, 'storage = "sqlite"'),
      ),
      object('Old', 'state = "renamed"\nrenamed_to = "New"'),
      object('Gone', 'state = "deleted"'),
    ].join('');
    const [{ classes }] = plan(folder({ 'wrangler.toml': text })).workers;
    assert.deepEqual(
      classes.map(({ className, key }) => [className, key]),
      [
        ...['QueueObject', 'DirectoryObject', 'UniqueLockObject', 'WorkflowObject'].map((name) => [name, name]),
        ['New', 'Old'],
      ],
    );
  });

  it('keeps the databases of a class that was renamed', () => {
    const renamed = `${QUEUE}[[migrations]]\ntag = "v2"\nnew_classes = ["Old"]\n[[migrations]]\ntag = "v3"
renamed_classes = [{ from = "Old", to = "New" }]\n`;
    const [{ classes }] = plan(folder({ 'wrangler.toml': renamed })).workers;
    assert.deepEqual(classes.at(-1), { className: 'New', key: 'Old', sql: false });
  });
});

describe('the variables of tocsin serve', () => {
  const file = join(folder({ env: 'API_KEYS=of-the-file\nMAIL_URL="https://mail.example"\n' }), 'env');

  it('are the queue’s own or everybody’s, and one that is empty takes none away', () => {
    const env = { API_KEYS: '', PATH: '/bin', STRIPE_KEY: 'sk', REDACT: 'args.*' };
    assert.deepEqual(readVariables({ env, file, named: ['STRIPE_KEY'] }), {
      queue: { API_KEYS: 'of-the-file', REDACT: 'args.*' },
      shared: { MAIL_URL: 'https://mail.example', STRIPE_KEY: 'sk' },
      runtime: {},
    });
    assert.throws(() => readVariables({ env: {}, named: ['STRIPE_KEY'] }), /has no STRIPE_KEY/);
  });

  it('are the runtime’s alone where it needs them, unless they are named', () => {
    const env = { CLUSTER_KEY: 'key', AWS_REGION: 'auto' };
    const ofRuntime = ['CLUSTER_KEY', 'AWS_REGION'];
    const { shared, runtime } = readVariables({ env, file, named: ['AWS_REGION'], ofRuntime });
    assert.deepEqual(runtime, env);
    assert.deepEqual(shared, { MAIL_URL: 'https://mail.example', AWS_REGION: 'auto' });
  });

  it('say how many keys there are', () => {
    for (const [text, keys] of [
      [undefined, 0],
      ['', 0],
      ['a', 1],
      ['a, b c', 3],
      ['[{"key":"a"}]', 1],
    ]) {
      assert.equal(countKeys(text), keys, text);
    }
    for (const wrong of ['[{', '[{"key":"k","rolle":"viewer"}]', '{"key":"k","role":"viewer"}', '[]']) {
      assert.throws(() => countKeys(wrong), /API_KEYS: /);
    }
  });

  it('say whether people log in', () => {
    const given = { issuer: 'https://id.example', audience: 'tocsin', roles: { claim: 'groups', viewer: ['staff'] } };
    const withClient = JSON.stringify({ ...given, client_id: 'c' });
    assert.equal(hasLogin(undefined, undefined), false);
    assert.equal(hasLogin(JSON.stringify(given), undefined), true);
    assert.equal(hasLogin(withClient, 'secret'), true);
    assert.throws(() => hasLogin(withClient, undefined), /LOGIN: .*LOGIN_SECRET/);
    assert.throws(
      () => hasLogin(JSON.stringify({ ...given, rolls: {} }), undefined),
      /LOGIN: rolls is not known.*"roles"/,
    );
  });

  it('are warned of where a name is nearly that of one of the queue', () => {
    const [warning, ...others] = misspelt(['API_KEY', 'MAIL_URL', 'HANDLERS', 'STRIPE_KEY']);
    assert.match(warning, /API_KEY is not known.*API_KEYS/);
    assert.deepEqual(others, []);
  });

  it('are named in the configuration, not written', () => {
    const [worker] = plan(
      folder({ 'wrangler.toml': `${QUEUE}[vars]\nAPI_KEYS = "old"\nPLAIN = "a\\"b\\n"\n` }),
    ).workers;
    const text = configText({
      ...{ workers: [{ worker, modules: [], variables: ['API_KEYS'] }], objects: '/o', address: '127.0.0.1:0' },
      ...{ networks: [], authorities: [] },
    });
    assert.match(text, /\(name = "API_KEYS", fromEnvironment = "API_KEYS"\)/);
    assert.match(text, /\(name = "PLAIN", text = "a\\"b\\x0a"\)/);
    assert.doesNotMatch(text, /old/);
    // What a client says of itself counts behind a proxy alone.
    assert.match(text, /http = \(injectRequestHeaders = \[.*\(name = "X-Forwarded-Proto"\).*\]\)/);
    assert.doesNotMatch(text, /forwardedProtoHeader/);
    assert.equal(quote('\\"\u0001é'), '"\\\\\\"\\x01é"');
  });

  it('warns of a workerd that aborts when another process of its cluster ends', () => {
    assert.match(clusterWarning('1.20261102.1')[0], /may abort when another process of the cluster ends/);
    assert.deepEqual([clusterWarning('1.20261117.1'), clusterWarning('1.20270101.0')], [[], []]);
  });
});
