// Lists that the documents give whole are whole: what is added to the code must be told, and nothing else is.
import assert from 'node:assert/strict';
import { globSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { lexer } from 'marked';
import { root } from './dev.mjs';
import { load, membersOf, read } from './source.mjs';
import { section } from './text.mjs';

const source = await load(
  'access/access.ts',
  'client/index.ts',
  'dispatch/config.ts',
  ...['event-data', 'event-types', 'limits/policy', 'options', 'retention', 'retry/presets', 'retry/preview'].map(
    (name) => `job/${name}.ts`,
  ),
  ...['states', 'unique/policy', 'waiting'].map((name) => `job/${name}.ts`),
  ...['alert/parse', 'alert/rule', 'webhook/schedule', 'webhook/subscription'].map(
    (name) => `notifications/${name}.ts`,
  ),
  'pools/pool.ts',
  'rpc/failures.ts',
  ...['definition', 'missed'].map((name) => `schedules/${name}.ts`),
  'schemas/misfit.ts',
);

/** The texts of a union such as `'a' | 'b'`. */
function unionOf(path, name) {
  const [, body] = new RegExp(`type ${name} =([^;]+);`).exec(read(`src/${path}`)) ?? [];
  return Array.from(body.matchAll(/'([^']+)'/g), ([, text]) => text);
}

/** The texts of a list such as `const MEMBERS = ['a', 'b'];` */
function namesIn(path, name) {
  const [, body] = new RegExp(`const ${name} = \\[([^\\]]*)\\]`).exec(read(`src/${path}`)) ?? [];
  return Array.from(body.matchAll(/'([^']+)'/g), ([, text]) => text);
}

/** The names of the members of a table such as `const SETTINGS = { a: …, b: … };` */
function keysOf(path, name) {
  const [, body] = new RegExp(`const ${name}\\b[^=]*= \\{\\n([\\s\\S]*?)\\n\\};`).exec(read(`src/${path}`)) ?? [];
  return Array.from(body.matchAll(/^ {2}(\w+):/gm), ([, key]) => key);
}

/** What stands in code at the beginning of each item of the lists of a section, up to the colon. */
const items = (text) =>
  lexer(text)
    .filter(({ type }) => type === 'list')
    .flatMap((list) => list.items.map((item) => item.text.split(/:(?=\s)/)[0]))
    .flatMap((head) => Array.from(head.matchAll(/`([^`\s({]+)[^`]*`/g), ([, name]) => name));

/** What stands in code in the first column of a table. */
const firstColumn = (text) =>
  lexer(text)
    .filter(({ type }) => type === 'table')
    .flatMap(({ rows }) =>
      rows.flatMap(([{ text: cell }]) => Array.from(cell.matchAll(/`([^`]+)`/g), ([, name]) => name)),
    );

/** `a_{b,c}_total` stands for two names, and `_c` after `a_b` for `a_c`'s ending. */
function expanded(name) {
  const [, before, list, after] = /^(.*)\{([^}]*)\}(.*)$/.exec(name) ?? [];
  if (list) return list.split(',').map((part) => before + part + after);
  return name.startsWith('_') ? `ojs_queue${name}` : name;
}

/** Everything in code. */
const spans = (text) => Array.from(text.matchAll(/`([^`\n]+)`/g), ([, name]) => name);

const only = (names, pattern) => names.filter((name) => pattern.test(name));
const without = (names, ...others) => names.filter((name) => !others.includes(name));

/** Both the same, in whatever order, each once. */
function same(found, expected) {
  assert.ok(expected.length > 0);
  assert.deepEqual([...new Set(found)].sort(), [...new Set(expected)].sort());
}

const EVENT = /^(job|queue|worker|workflow|cron|alert|webhook)\.[a-z_]+$/;

describe('the documents list all', () => {
  it('events', () => {
    same(only(spans(section('docs/operate/operations.md', '## Events')), EVENT), source.EVENT_TYPES);
  });

  it('scopes, with what each role has', () => {
    const text = section('docs/operate/access.md', '## Keys and roles').split('### ')[0];
    same(firstColumn(text), [...source.SCOPES, ...Object.keys(source.ROLES)]);
    const roles = lexer(text).filter(({ type }) => type === 'table')[1].rows;
    const saidOf = (name) => spans(roles.find(([cell]) => cell.text === `\`${name}\``)[1].text);
    same(saidOf('viewer'), source.ROLES.viewer);
    // Those of a viewer, and these.
    same(
      saidOf('operator'),
      source.ROLES.operator.filter((scope) => !source.ROLES.viewer.includes(scope)),
    );
    assert.deepEqual(source.ROLES.admin, source.SCOPES);
  });

  it('error codes', () => {
    const parts = ['## Fix the request', '## Wait and retry', '## Fix the deployment'];
    const page = parts.map((part) => section('docs/reference/errors.md', part)).join('\n');
    const heads = page.match(/^- `\w+`, \d{3}:/gm);
    const [, codes] = /const HINTS = \{([^}]*)\}/.exec(read('src/job/errors.ts')) ?? [];
    same(
      heads.flatMap(spans),
      Array.from(codes.matchAll(/^ {2}(\w+):/gm), ([, code]) => code),
    );
  });

  it('types of failures that the product itself reports', () => {
    const rooms = ['client', 'dispatch', 'handler', 'queue'].map((room) => `src/${room}/**/*.ts`);
    const code = globSync(rooms, { cwd: root }).map(read).join('\n');
    const named = items(section('docs/reference/errors.md', '## Errors of jobs'));
    const made = Array.from(code.matchAll(/type: '(tocsin\.[a-z_]+)'/g), ([, type]) => type);
    same(
      only(named, /^tocsin\./),
      // How a job ends whose Worker or thread did.
      [...made, 'tocsin.crash'],
    );
    assert.deepEqual(
      without(named, ...made, 'tocsin.crash').filter(
        (code_) => !code.includes(`'${code_}'`) && !read('src/job/attempt/result.ts').includes(code_),
      ),
      [],
    );
  });

  it('states of a job', () => {
    const [entry] = /- \*\*State\*\*: [^.]*\./.exec(read('docs/glossary.md'));
    same(spans(entry.replaceAll('\n', ' ')), source.JOB_STATES);
  });

  it('reasons why a job waits, in the order in which they are looked for', () => {
    const [list] = section('docs/operate/why-waiting.md', '## The reasons').split('How to read the answers');
    assert.deepEqual(items(list), [...source.WAITING_REASONS]);
  });

  it('reasons why a failed job is discarded', () => {
    const named = section('docs/guides/retries.md', '## How a failure ends').matchAll(/reasons?\s+`(\w+)`/g);
    const reasons = Array.from(named, ([, name]) => name);
    same(without(reasons, 'expired'), unionOf('job/retry/decide.ts', 'DiscardReason'));
  });

  it('presets of retry policies', () => {
    same(items(section('docs/guides/retries.md', '## Presets').split('Coming from')[0]), Object.keys(source.PRESETS));
  });

  it('policies of schedules', () => {
    const text = section('docs/guides/schedules.md', '## Overlapping and missed fires');
    same(items(text), [...source.OVERLAP_POLICIES, ...source.MISSED_POLICIES]);
  });

  it('metrics of alert rules', () => {
    same(firstColumn(section('docs/operate/alerts.md', '## What a rule says')), source.ALERT_METRICS);
  });

  it('what a limit does with a job that finds no room', () => {
    same(items(section('docs/guides/limits.md', '### When a job finds no room')), source.ON_LIMIT);
  });

  it('ways to treat a job that does not fit its schema', () => {
    const text = section('docs/guides/schemas.md', '## When a job does not match');
    same(items(text), source.SCHEMA_MODES);
  });

  it('strategies of pools', () => {
    const [, text] = /- `strategy`: ([\s\S]*?)\n- /.exec(
      section('docs/operate/queues.md', '## Pools: several queues in turn'),
    );
    same(without(spans(text), 'weights', 'queues', 'fair'), source.POOL_STRATEGIES);
  });

  it('states of deliveries and of failures', () => {
    const calls = section('docs/operate/webhooks.md', '## Calls').replace(/\s+/g, ' ');
    same(spans(/`status` is ([^.]*)\./.exec(calls)[1]), source.DELIVERY_STATUSES);
    const [counted] = section('docs/operate/failures.md', '## Which jobs count').split('`GET /admin');
    same(spans(counted), source.FAILURE_STATES);
  });

  it('rooms of the source', () => {
    const rooms = readdirSync(join(root, 'src'), { withFileTypes: true }).filter((entry) => entry.isDirectory());
    const [table] = section('docs/reference/architecture.md', '## Rooms').split('Imports go one way');
    same(
      firstColumn(table),
      rooms.map(({ name }) => `src/${name}`),
    );
  });

  it('entries of the package', () => {
    const { exports, bin } = JSON.parse(read('package.json'));
    const entries = Object.keys(exports).filter((name) => name !== './package.json');
    const names = [...entries.map((name) => name.replace('.', 'tocsin')), ...Object.keys(bin)];
    same(items(section('README.md', '## Install')), names);
  });

  it('classes of errors of the client', () => {
    const classes = Object.keys(source).filter((name) => name.endsWith('Error') && name !== 'ApiError');
    same(only(spans(section('docs/reference/client.md', '## Errors')), /Error$/), classes);
  });

  it('metrics for Prometheus', () => {
    const written = read('src/http/metrics/prometheus.ts').match(/(?<=')ojs_[a-z_]+(?=')/g);
    const [, rows] = /const COUNTED[^=]*= \[\n([\s\S]*?)\n\];/.exec(read('src/http/metrics/prometheus.ts')) ?? [];
    const counters = Array.from(rows.matchAll(/\['(\w+)'/g), ([, name]) => `ojs_job_${name}_total`);
    const shown = firstColumn(section('docs/operate/metrics.md', '## Prometheus')).flatMap(expanded);
    same(shown, [...written, ...counters]);
  });

  it('pauses of a delivery that failed', () => {
    const units = [
      ['h', 3_600_000],
      ['min', 60_000],
      ['s', 1_000],
    ];
    const text = (ms) => {
      const [unit, size] = units.find(([name, bound]) => ms >= bound && (ms % bound === 0 || name === 's'));
      return `${ms / size} ${unit}`;
    };
    const pauses = source.DELAYS_MS.map(text);
    const page = section('docs/operate/webhooks.md', '## When it fails').replace(/\s+/g, ' ');
    assert.ok(page.includes(`after ${pauses.slice(0, -1).join(', ')} and ${pauses.at(-1)}`), pauses.join(', '));
  });
});

describe('the documents list every member of', () => {
  it('the options of createTocsin', () => {
    const text = read('docs/start/in-your-worker.md');
    const named = new Set(text.match(/\b[a-z]+\b(?=`|:|,| \})/g));
    assert.deepEqual(
      membersOf('library/options.ts', 'TocsinOptions').filter((name) => !named.has(name)),
      [],
    );
  });

  it('the options of a client', () => {
    const own = membersOf('client/options.ts', 'ClientOptions');
    same(items(section('docs/reference/client.md', '## Options')), [...own, 'url', 'service', 'fetch']);
  });

  it('the registration of a handler, and of all', () => {
    const text = section('docs/start/handlers.md', '## What a handler gets');
    const members = [
      ...membersOf('handler/types.ts', 'HandlerDefinition'),
      ...membersOf('handler/worker-types.ts', 'WorkerOptions'),
    ];
    assert.deepEqual(
      members.filter((name) => !new RegExp(`\\b${name}\\b`).test(text)),
      [],
    );
  });

  it('the queue in a test', () => {
    const text = section('docs/guides/testing.md', '## The whole Worker');
    const [, body] = /export class TestQueue[^{]*\{([\s\S]*)\n\}/.exec(read('src/testing/vitest/queue.ts'));
    const calls = Array.from(body.matchAll(/^ {2}(?:async |get )?(\w+)[<(]/gm), ([, name]) => name);
    const named = items(text).filter((name) => name !== 'Date.now');
    same(
      named.map((name) => name.replace('queue.', '')),
      without(calls, 'constructor', 'beforeEach', 'afterEach'),
    );
  });

  it('what another Worker calls over its binding', () => {
    const [calls] = /The calls travel by RPC: [^.]*\./.exec(read('docs/start/in-your-worker.md').replace(/\s+/g, ' '));
    same(spans(calls), unionOf('client/service.ts', 'Calls'));
  });

  it('the messages of a worker on a socket', () => {
    const text = section('docs/reference/worker-socket.md', '## What a worker sends');
    same(
      Array.from(text.matchAll(/^- `\{"type":"(\w+)"/gm), ([, type]) => type),
      namesIn('job/worker/socket.ts', 'TYPES'),
    );
  });

  it('the options of a worker that runs', () => {
    const text = section('docs/start/workers.md', '### Options of run');
    // It is an option of the worker itself, and counts for how it runs.
    same(without(firstColumn(text), 'visibilityTimeoutMs'), membersOf('client/pull-types.ts', 'RunOptions'));
  });

  it('what a handler gets', () => {
    const text = section('docs/start/handlers.md', '## What a handler gets').split('### ')[0];
    same(
      items(text)
        .map((name) => name.split('.')[0])
        .filter((name) => membersOf('handler/types.ts', 'HandlerContext').includes(name)),
      membersOf('handler/types.ts', 'HandlerContext'),
    );
  });

  it('the run of a handler in a test, and of its options', () => {
    const text = section('docs/guides/testing.md', '## One handler');
    same(firstColumn(text), membersOf('testing/types.ts', 'HandlerRun'));
    const [, options] = /Pass options to set the state that the run starts with: ([\s\S]*?)\.\s/.exec(text);
    same(spans(options), membersOf('testing/types.ts', 'RunOptions'));
  });

  it('an alert rule and a subscription', () => {
    same(items(section('docs/operate/alerts.md', '## What a rule says')), source.readAlertRule.names);
    // The secret is kept elsewhere, and what the code declares is not asked for.
    same(
      items(section('docs/operate/webhooks.md', '## What a subscription says')),
      unionOf('notifications/webhook/subscription.ts', 'WebhookMembers')
        .filter((name) => name !== 'declared')
        .concat('secret'),
    );
  });

  it('a unique policy, with its other spellings', () => {
    const text =
      section('docs/guides/unique.md', '## The policy') + section('docs/guides/unique.md', '## Other spellings');
    const members = source.readUniquePolicy.names;
    same(
      text.match(/(?<=[`" {])[a-z]+(_[a-z]+)*(?=`|: ["[])/g).filter((name) => members.includes(name)),
      members,
    );
  });

  it('a limit', () => {
    const [list] = section('docs/guides/limits.md', '## Limits of a job').split('### ');
    same(items(list), Object.keys(source.LIMIT_POLICY_SCHEMA().properties));
  });

  it('a preview of a retry policy', () => {
    same(items(section('docs/guides/retries.md', '## See it before you use it')), source.previewReader(0).names);
  });

  it('the options of a job', () => {
    const text = items(section('docs/reference/http.md', '### What a job may say'));
    same(without(text, 'id', 'x_…'), without(source.OPTION_NAMES, 'metadata'));
  });

  it('a change of a job that waits', () => {
    const text = section('docs/guides/bulk-and-queries.md', '## Changing a job that waits');
    same(items(text), source.optionsThat('patch'));
  });

  it('the options of a handler in HANDLERS', () => {
    const text = items(section('docs/reference/configuration.md', '## Options of a handler'));
    const { BINDING_OPTIONS: binding, URL_OPTIONS: url } = source;
    same(text, [...binding, ...url]);
    same(items(section('docs/guides/https-targets.md', '## Mapping types to a URL')), [...binding, ...url].slice(1));
  });

  it('the settings of a queue', () => {
    const settings = keysOf('http/queues/config.ts', 'SETTINGS');
    same(
      without(items(section('docs/reference/configuration.md', '## Settings of a queue')), 'backpressure'),
      settings,
    );
    const [list] = section('docs/operate/queues.md', '## Settings').split('### ');
    const bounds = items(section('docs/guides/limits.md', '## Backpressure').split('What happens')[0]);
    const named = [...items(list), ...bounds].map((name) => name.split('.')[0]);
    // That page has a section of its own about the limit of a queue.
    same([...without(named, 'backpressure', 'max_count'), 'rate_limit'], settings);
  });
});
