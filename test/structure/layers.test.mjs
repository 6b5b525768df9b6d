/** The floor plan of `src`, as the code has it: imports go one way, and one room writes jobs. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const SRC = fileURLToPath(new URL('../../src/', import.meta.url));

/** Rules alone, without storage, clock or network: what a job is, and what else is said of jobs and queues. */
const RULES = [
  'job',
  'ojs',
  'access',
  'export',
  'metrics',
  'notifications',
  'pools',
  'schedules',
  'schemas',
  'settings',
];

/** What each room may import beside itself; type imports count. */
const ROOMS = {
  job: [],
  access: ['job'],
  export: ['job'],
  metrics: ['job'],
  notifications: ['job', 'ojs'],
  ojs: ['job'],
  pools: ['job'],
  schedules: ['job'],
  schemas: ['job'],
  settings: ['job', 'notifications', 'schemas'],
  contract: RULES,
  durable: ['job'],
  producer: ['job'],
  handler: ['job', 'producer'],
  dispatch: ['job', 'access', 'notifications', 'durable', 'declaration', 'handler'],
  declaration: ['job', 'settings'],
  config: ['job', 'access', 'settings', 'declaration', 'dispatch'],
  rpc: [...RULES, 'contract', 'durable', 'config'],
  allowance: ['job', 'rpc'],
  across: [...RULES, 'durable', 'declaration', 'config', 'rpc'],
  directory: [...RULES, 'durable', 'dispatch', 'config', 'rpc', 'across'],
  locks: ['job', 'durable', 'config', 'rpc', 'allowance', 'across'],
  workflow: ['job', 'durable', 'config', 'rpc', 'across'],
  queue: [...RULES, 'contract', 'durable', 'dispatch', 'config', 'rpc', 'allowance', 'across'],
  mcp: ['job', 'contract', 'config'],
  http: [...RULES, 'contract', 'mcp', 'durable', 'declaration', 'dispatch', 'config', 'rpc', 'across'],
  client: ['job', 'export', 'notifications', 'contract', 'producer', 'handler'],
  cli: ['client', 'contract', 'producer', 'handler', 'job', 'access', 'export', 'schedules'],
  library: [
    ...['job', 'access', 'notifications', 'schedules', 'settings'],
    ...['durable', 'declaration', 'config', 'across', 'directory', 'locks', 'workflow', 'queue', 'http'],
    ...['producer', 'handler', 'client'],
  ],
  testing: ['job', 'producer', 'handler', 'client', 'library'],
  ui: ['job', 'contract', 'producer'],
  index: ['library'],
};

/** From these rooms they take types only: nothing of the engine is in the libraries and the dashboard. */
const TYPES_ONLY = {
  producer: ['job'],
  handler: ['job'],
  client: ['job', 'export', 'notifications', 'contract'],
  // A program, not a library: jobs that move in are checked by the rules themselves before anything is sent.
  cli: ['contract'],
  queue: ['contract'],
  rpc: ['contract'],
  testing: ['job'],
  ui: ['job', 'contract', 'producer'],
};

/** What both sides have: it is shared as it is, so it may import nothing that runs. */
const SHARED = [
  'job/options.ts',
  'job/thrown.ts',
  'job/duration.ts',
  'job/envelope/names.ts',
  'job/envelope/nesting.ts',
  'job/event-types.ts',
  'export/file.ts',
  'job/fnv.ts',
  'job/ids.ts',
  'job/near-miss.ts',
  'job/own.ts',
  'job/retry/delay.ts',
  'job/step-order.ts',
  'job/undo-names.ts',
];

/** The order inside the queue: an import goes to the left, or stays. Features do not know each other. */
const QUEUE = ['store', 'read', 'jobs', 'features', 'engine', 'object'];
const ENGINE = ['feature.ts', 'others.ts', 'creation.ts', 'engine.ts'];

function* filesBelow(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* filesBelow(path);
    else if (/\.tsx?$/.test(entry.name) && !entry.name.endsWith('.d.ts')) yield path;
  }
}

/** Every import between files of `src`: from, to, and whether it is of types alone. */
const imports = [];
const texts = new Map();
for (const path of filesBelow(SRC)) {
  const text = readFileSync(path, 'utf8');
  const from = relative(SRC, path);
  texts.set(from, text);
  for (const [, type, names, spec] of text.matchAll(
    /(?:import|export) (type )?([\w*\s{},]*?)\s*from '(\.{1,2}\/[^']*)'/g,
  )) {
    if (/\.(sql|json|css)$/.test(spec) || existsSync(join(SRC, dirname(from), `${spec}.d.ts`))) continue;
    const target = normalize(join(dirname(from), spec));
    const members = names
      .replace(/[{}]/g, '')
      .split(',')
      .map((name) => name.trim())
      .filter(Boolean);
    const types = type !== undefined || (members.length > 0 && members.every((name) => name.startsWith('type ')));
    imports.push({ from, to: target, types });
  }
}
for (const found of imports) {
  if (texts.has(`${found.to}.ts`)) found.to = `${found.to}.ts`;
  else if (texts.has(`${found.to}.tsx`)) found.to = `${found.to}.tsx`;
  else if (texts.has(`${found.to}/index.ts`)) found.to = `${found.to}/index.ts`;
  else throw new Error(`${found.from} imports ${found.to}, which is not there`);
}

const room = (file) => file.split('/')[0].replace(/\.ts$/, '');
const shown = ({ from, to }) => `${from} → ${to}`;

test('an import stays in its room or goes in the direction of the floor plan', () => {
  const wrong = imports.filter(({ from, to }) => {
    const [here, there] = [room(from), room(to)];
    assert.ok(ROOMS[here], `${from} is in no room of the floor plan`);
    return here !== there && !ROOMS[here].includes(there);
  });
  assert.deepEqual(wrong.map(shown), []);
});

test('the libraries take only types from the rules of jobs', () => {
  const running = imports.filter(({ types }) => !types);
  const wrong = running.filter(({ from, to }) => TYPES_ONLY[room(from)]?.includes(room(to)) && !SHARED.includes(to));
  assert.deepEqual(wrong.map(shown), []);
  assert.deepEqual(running.filter(({ from }) => SHARED.includes(from)).map(shown), []);
});

/** Where a file of the queue stands: its floor, and the feature it belongs to. */
function place(file) {
  const [, folder, feature] = file.split('/');
  if (folder === 'features') return { floor: 3, feature };
  if (folder === 'verbs') return { floor: 5 };
  const floor = folder.endsWith('.ts') ? (ENGINE.includes(folder) ? 4 : 5) : QUEUE.indexOf(folder);
  assert.ok(floor >= 0, `${file} is on no floor of the queue`);
  return { floor };
}

test('inside the queue an import goes down, and features do not know each other', () => {
  const inside = imports.filter(({ from, to }) => room(from) === 'queue' && room(to) === 'queue');
  const wrong = inside.filter(({ from, to }) => {
    // The interface of a feature is what features are made to.
    if (to === 'queue/feature.ts') return place(from).floor < 3;
    const [here, there] = [place(from), place(to)];
    return here.floor < there.floor || (here.floor === 3 && there.floor === 3 && here.feature !== there.feature);
  });
  assert.deepEqual(wrong.map(shown), []);
});

test('only the store of a queue has SQL that writes jobs', () => {
  const writes = /\b(INSERT\s+(OR\s+\w+\s+)?INTO|REPLACE\s+INTO|UPDATE|DELETE\s+FROM)\s+jobs\b|\bput\([^,]*,\s*'jobs'/i;
  const wrong = [...texts].filter(([file, text]) => !file.startsWith('queue/store/') && writes.test(text));
  assert.deepEqual(
    wrong.map(([file]) => file),
    [],
  );
  assert.deepEqual(
    [...texts].filter(([, text]) => writes.test(text)).map(([file]) => file),
    ['queue/store/own-rows.ts'],
  );
});
